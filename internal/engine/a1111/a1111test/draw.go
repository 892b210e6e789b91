package a1111test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	_ "image/jpeg" // registers the decoder for JPEG files from callers
	_ "image/png"
	"net/http"
	"slices"
	"strings"

	"atelier/internal/engine/enginetest"
)

var (
	samplers  = []string{"Euler", "Euler a", "DPM++ 2M"}
	upscalers = []string{"None", "Lanczos", "R-ESRGAN 4x+"}
)

// listModels handles requests for the list of models.
func (s *Server) listModels(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []any{}
	for _, title := range s.models {
		file, _, _ := strings.Cut(title, " [")
		name := strings.TrimSuffix(strings.ReplaceAll(file, "/", "_"), ".safetensors")
		list = append(list, map[string]any{"title": title, "model_name": name, "hash": nil, "sha256": nil, "filename": "/models/" + file, "config": nil})
	}
	answer(w, http.StatusOK, list)
}

// refresh adds the models in Options.Added to the server's list.
func (s *Server) refresh(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models = append(s.models, s.o.Added...)
	s.o.Added = nil
	answer(w, http.StatusOK, nil)
}

// modelFor returns the title of the model that a request selects, or of the
// first model if the request selects none or an unknown one.
func (s *Server) modelFor(body map[string]any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	settings, _ := body["override_settings"].(map[string]any)
	if name, _ := settings["sd_model_checkpoint"].(string); slices.Contains(s.models, name) {
		return name
	}
	return s.models[0]
}

// draw handles requests to txt2img and img2img, which make pictures.
func (s *Server) draw(w http.ResponseWriter, r *http.Request, body map[string]any, whole bool) {
	from := fmt.Sprint(body["prompt"], "|", body["negative_prompt"], "|", body["steps"], "|", s.modelFor(body))
	width := number(body, "width", 64)
	height := number(body, "height", 64)
	if strings.HasSuffix(r.URL.Path, "/img2img") {
		list, _ := body["init_images"].([]any)
		if len(list) == 0 {
			complain(w, http.StatusNotFound, "HTTPException", "Init image not found", "")
			return
		}
		for i, one := range list {
			ownWidth, ownHeight, err := decoded(one)
			if err != nil {
				complain(w, http.StatusInternalServerError, "HTTPException", "Invalid encoded image", "")
				return
			}
			if i == 0 && s.o.Dialect == SDCpp {
				width = number(body, "width", ownWidth)
				height = number(body, "height", ownHeight)
			}
			from += fmt.Sprint("|", len(one.(string)))
		}
	}
	seed := number(body, "seed", -1)
	seeds := []int{}
	images := []string{}
	rounds := number(body, "n_iter", 1)
	if s.o.Dialect == SDCpp {
		rounds = 1
	}
	for i := range number(body, "batch_size", 1) * rounds {
		seeds = append(seeds, seed+i)
		state := "whole"
		if !whole {
			state = "half done"
		}
		images = append(images, encoded(enginetest.StripedPNG(width, height, fmt.Sprint(from, seed+i, state))))
	}
	first := 0
	if s.o.Grid {
		first = 1
		images = append([]string{encoded(enginetest.StripedPNG(width*2, height, "grid"))}, images...)
	}
	for range s.o.Extra {
		images = append(images, encoded(enginetest.StripedPNG(width, height, "a map of edges")))
	}
	if s.now() == enginetest.Fewer {
		images = []string{}
	}
	info, err := json.Marshal(map[string]any{"seed": seed, "all_seeds": seeds, "index_of_first_image": first, "infotexts": []any{}})
	if err != nil {
		panic(err)
	}
	s.send(w, r, map[string]any{"images": images, "parameters": map[string]any{}, "info": string(info)}, `{"images":["`)
}

// enlarge handles requests to extra-single-image, which enlarges a picture.
func (s *Server) enlarge(w http.ResponseWriter, r *http.Request, body map[string]any, whole bool) {
	width, height, err := decoded(body["image"])
	if err != nil {
		complain(w, http.StatusInternalServerError, "HTTPException", "Invalid encoded image", "")
		return
	}
	name, _ := body["upscaler_1"].(string)
	big, _ := body["image"].(string)
	if name != "" && name != "None" {
		factor, ok := body["upscaling_resize"].(float64)
		if !ok {
			factor = 2
		}
		width = int(float64(width) * factor)
		height = int(float64(height) * factor)
		if number(body, "resize_mode", 0) == 1 {
			width = number(body, "upscaling_resize_w", 512)
			height = number(body, "upscaling_resize_h", 512)
		}
		big = encoded(enginetest.StripedPNG(width, height, name))
	}
	if s.now() == enginetest.Fewer {
		big = ""
	}
	s.send(w, r, map[string]any{"html_info": "", "image": big}, `{"image":"`)
}

// send writes v as the JSON response, distorted by the active fault. If the
// fault is an endless response, start is its beginning.
func (s *Server) send(w http.ResponseWriter, r *http.Request, v map[string]any, start string) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	switch s.now() {
	case enginetest.Breaks:
		enginetest.SendTruncated(w, b)
	case enginetest.Floods:
		enginetest.SendEndless(w, r, start)
	case enginetest.Drips:
		enginetest.SendSlowly(w, r, b)
	default:
		w.Write(b)
	}
}

// number returns the integer parameter called name of a request body. If the
// parameter is missing, number returns the given default.
func number(body map[string]any, name string, otherwise int) int {
	if n, ok := body[name].(float64); ok {
		return int(n)
	}
	return otherwise
}

func encoded(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// decoded returns the width and height, in pixels, of a picture that was sent
// as base64 or as a data: URI.
func decoded(v any) (width, height int, err error) {
	text, ok := v.(string)
	if !ok {
		return 0, 0, fmt.Errorf("no text")
	}
	if strings.HasPrefix(text, "data:image/") {
		_, text, _ = strings.Cut(text, ",")
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return 0, 0, err
	}
	c, _, err := image.DecodeConfig(bytes.NewReader(b))
	return c.Width, c.Height, err
}
