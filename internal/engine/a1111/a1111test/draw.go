package a1111test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	_ "image/jpeg" // decoder, because callers may send JPEG files
	_ "image/png"
	"net/http"
	"strings"

	"atelier/internal/engine/enginetest"
)

var samplers = []string{"Euler", "Euler a", "DPM++ 2M"}

// draw handles requests to txt2img and img2img, which make pictures.
func (s *Server) draw(w http.ResponseWriter, r *http.Request, body map[string]any, whole bool) {
	from := fmt.Sprint(body["prompt"], "|", body["negative_prompt"], "|", body["steps"])
	width := number(body, "width", 64)
	height := number(body, "height", 64)
	if strings.HasSuffix(r.URL.Path, "/img2img") {
		list, _ := body["init_images"].([]any)
		if len(list) == 0 {
			complain(w, http.StatusNotFound, "HTTPException", "Init image not found", "")
			return
		}
		for _, one := range list {
			if _, _, err := decoded(one); err != nil {
				complain(w, http.StatusInternalServerError, "HTTPException", "Invalid encoded image", "")
				return
			}
			from += fmt.Sprint("|", len(one.(string)))
		}
	}
	seed := number(body, "seed", -1)
	seeds := []int{}
	images := []string{}
	for i := range number(body, "batch_size", 1) * number(body, "n_iter", 1) {
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
	factor, ok := body["upscaling_resize"].(float64)
	if !ok {
		factor = 2
	}
	big := encoded(enginetest.StripedPNG(int(float64(width)*factor), int(float64(height)*factor), fmt.Sprint(body["upscaler_1"])))
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

// number returns the integer parameter called name of a request body, or
// otherwise if it is missing.
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
