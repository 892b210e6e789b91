package openaitest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"atelier/internal/engine/enginetest"
)

// known are the request parameters that OpenAI accepts, by path. OpenAI refuses
// all other parameters.
var known = map[string][]string{
	"/v1/images/generations": strings.Fields("prompt model n size quality background moderation output_format output_compression partial_images stream response_format style user"),
	"/v1/images/edits":       strings.Fields("prompt model n size quality background input_fidelity output_format output_compression partial_images stream response_format user"),
	"/v1/audio/speech":       strings.Fields("model input voice response_format speed instructions stream_format"),
	"/v1/videos":             strings.Fields("prompt model seconds size input_reference"),
}

// check validates a request before it is processed. needs is a required
// parameter. If the request is invalid, check sends an error response and
// returns false.
func (s *Server) check(w http.ResponseWriter, q Request, needs string) bool {
	if q.text(needs) == "" {
		if s.o.Dialect == VLLMOmni || s.o.Dialect == SGLang {
			answer(w, http.StatusUnprocessableEntity, map[string]any{"detail": []any{map[string]any{"type": "missing", "loc": []any{"body", needs}, "msg": "Field required", "input": nil}}})
		} else {
			s.complain(w, http.StatusBadRequest, "missing_required_parameter", "Missing required parameter: '"+needs+"'.")
		}
		return false
	}
	if s.o.Dialect != OpenAI {
		return true
	}
	if !slices.Contains(s.o.Models, q.text("model")) {
		s.complain(w, http.StatusNotFound, "model_not_found", "The model '"+q.text("model")+"' does not exist.")
		return false
	}
	for name := range q.Values {
		if !slices.Contains(known[q.Path], name) {
			s.complain(w, http.StatusBadRequest, "unknown_parameter", "Unknown parameter: '"+name+"'.")
			return false
		}
	}
	return true
}

func (s *Server) generate(w http.ResponseWriter, r *http.Request, q Request) {
	if s.o.Dialect == SGLang && q.text("response_format") != "b64_json" {
		s.complain(w, http.StatusBadRequest, "invalid_request_error", "response_format=url needs cloud storage, which is not set up")
		return
	}
	s.draw(w, r, q, "image_generation")
}

func (s *Server) edit(w http.ResponseWriter, r *http.Request, q Request) {
	if len(q.Files["image"])+len(q.Files["image[]"]) == 0 {
		s.complain(w, http.StatusBadRequest, "missing_required_parameter", "Missing required parameter: 'image'.")
		return
	}
	s.draw(w, r, q, "image_edit")
}

// draw handles requests for pictures. event is the prefix of event types if
// the response is streamed.
func (s *Server) draw(w http.ResponseWriter, r *http.Request, q Request, event string) {
	if !s.check(w, q, "prompt") {
		return
	}
	n, err := strconv.Atoi(q.text("n"))
	if err != nil {
		n = 1
	}
	gpt := strings.HasPrefix(q.text("model"), "gpt-image")
	width, height, fits := s.size(q)
	switch format := q.text("response_format"); {
	case gpt && format != "":
		s.complain(w, http.StatusBadRequest, "unknown_parameter", "Unknown parameter: 'response_format'.")
		return
	case n < 1 || n > 10 || n > 1 && q.text("model") == "dall-e-3":
		s.complain(w, http.StatusBadRequest, "invalid_value", "Invalid 'n'.")
		return
	case !fits:
		s.complain(w, http.StatusBadRequest, "invalid_value", "Invalid size '"+q.text("size")+"'.")
		return
	}
	if s.o.Most > 0 {
		n = min(n, s.o.Most)
	}
	files := make([][]byte, n)
	for i := range files {
		files[i] = enginetest.StripedPNG(width, height, s.origin(q, i))
	}
	if q.text("stream") == "true" && s.o.Dialect == OpenAI {
		s.stream(w, r, q, event, files[0])
		return
	}
	inside := true
	folder := "/v1/images/*/content"
	switch s.o.Dialect {
	case OpenAI:
		inside = gpt || q.text("response_format") == "b64_json"
	case LocalAI:
		inside = q.text("response_format") == "b64_json"
		folder = "/generated-images/*.png"
	case SGLang:
		inside = event == "image_generation" || q.text("response_format") == "b64_json"
	}
	s.results(w, r, inside, "image/png", folder, files)
}

// origin returns the string that determines the content of result i: the
// prompts and the seed if the server supports seeds, otherwise the prompts and
// a number that is never used again.
func (s *Server) origin(q Request, i int) string {
	seed, err := strconv.ParseUint(q.text("seed"), 10, 64)
	prompt := q.text("prompt")
	switch s.o.Dialect {
	case SDCpp: // ignores the seed and uses its default, 42
		return fmt.Sprint(q.text("prompt"), "|", 42+i)
	case LocalAI:
		i = 0 // all pictures of a request have the same seed
		if int32(seed) < 0 {
			err = strconv.ErrRange // a negative number means a random seed
		}
		prompt += "|" + q.text("step")
	}
	if err != nil || s.o.Dialect == OpenAI {
		s.mu.Lock()
		s.count++
		seed = uint64(s.count)
		i = 1 << 20
		s.mu.Unlock()
	}
	return fmt.Sprint(prompt, "|", q.text("negative_prompt"), "|", seed+uint64(i))
}

// size returns the requested width and height of a picture, in pixels, and
// whether the model supports that size.
func (s *Server) size(q Request) (width, height int, fits bool) {
	text := q.text("size")
	if text == "" || text == "auto" {
		return 1024, 1024, true
	}
	if _, err := fmt.Sscanf(text, "%dx%d", &width, &height); err != nil || min(width, height) < 1 || max(width, height) > 4096 {
		return 0, 0, false
	}
	switch m := q.text("model"); {
	case strings.HasPrefix(m, "gpt-image"):
		return width, height, slices.Contains([]string{"1024x1024", "1536x1024", "1024x1536"}, text)
	case m == "dall-e-3":
		return width, height, slices.Contains([]string{"1024x1024", "1792x1024", "1024x1792"}, text)
	}
	return width, height, true
}

// stream sends the picture as a stream of server-sent events, with partial
// pictures first.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, q Request, event string, whole []byte) {
	partials, err := strconv.Atoi(q.text("partial_images"))
	if err != nil {
		partials = 0
	}
	var b strings.Builder
	tell := func(kind string, data []byte, more map[string]any) {
		more["type"] = event + "." + kind
		more["b64_json"] = base64.StdEncoding.EncodeToString(data)
		more["created_at"] = made
		more["output_format"] = "png"
		more["background"] = "opaque"
		more["quality"] = "low"
		more["size"] = "1024x1024"
		line, err := json.Marshal(more)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "event: %s.%s\ndata: %s\n\n", event, kind, line)
	}
	for i := range partials {
		tell("partial_image", enginetest.StripedPNG(64, 64, fmt.Sprint("part", i)), map[string]any{"partial_image_index": i})
	}
	if s.now() != enginetest.Fewer {
		tell("completed", whole, map[string]any{"usage": map[string]any{"total_tokens": 1, "input_tokens": 1, "output_tokens": 0, "input_tokens_details": map[string]any{"text_tokens": 1, "image_tokens": 0}}})
	}
	body := []byte(b.String())
	if s.now() == enginetest.Floods {
		body = []byte("event: x\ndata: ")
	}
	if s.now() == enginetest.Fewer {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Write(body)
		return
	}
	s.send(w, r, "text/event-stream", body)
}
