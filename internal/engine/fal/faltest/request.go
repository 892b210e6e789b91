package faltest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"atelier/internal/engine/enginetest"
)

// request is a request in the queue. Its state is derived from the time since
// its creation: it waits, runs and ends by itself.
type request struct {
	id, app, endpoint string
	input             map[string]any
	created           time.Time
	fault             Fault // how the request fails; empty if it succeeds
	cancelled         bool
}

// status returns the state of a request that takes the given time. It is in
// the queue for the first tenth of that time.
func (r *request) status(takes time.Duration) string {
	gone := time.Since(r.created)
	switch {
	case r.cancelled || gone >= takes:
		return "COMPLETED"
	case gone < takes/10:
		return "IN_QUEUE"
	}
	return "IN_PROGRESS"
}

// cancel cancels the request and returns the HTTP status and the state of the
// queue's response.
func (r *request) cancel(takes time.Duration) (int, string) {
	switch r.status(takes) {
	case "COMPLETED":
		return http.StatusBadRequest, "ALREADY_COMPLETED"
	case "IN_QUEUE":
		r.cancelled = true
		return http.StatusOK, "OK"
	}
	r.cancelled = true
	return http.StatusAccepted, "CANCELLATION_REQUESTED"
}

// logs returns the log of the model so far: a progress bar as tqdm prints it,
// one line per step.
func (r *request) logs(takes time.Duration) []any {
	all := []any{}
	gone := min(float64(time.Since(r.created))/float64(takes), 1)
	for percent := 0; float64(percent) <= gone*100; percent += 10 {
		all = append(all, map[string]any{
			"message": fmt.Sprintf("%3d%%|%-10s| %d/50 [00:00<00:00, 25.00it/s]", percent, strings.Repeat("█", percent/10), percent/2),
			"level":   "STDERR", "source": "USER", "timestamp": r.created.UTC().Format(time.RFC3339Nano),
		})
	}
	return all
}

// detail returns the detail value of a model's error response.
func detail(msg, kind string, loc ...string) []any {
	return []any{map[string]any{"loc": loc, "msg": msg, "type": kind, "url": "https://docs.fal.ai/errors#" + kind}}
}

// answer returns the response to a query of the request's result: HTTP status
// and body. host is the base URL of the file host.
func (r *request) answer(host string) (int, map[string]any) {
	switch {
	case r.cancelled:
		return 499, map[string]any{"detail": "Request cancelled by the client", "error_type": "client_cancelled"}
	case r.fault == Refuses:
		return http.StatusUnprocessableEntity, map[string]any{"detail": detail("Input should be less than or equal to 50", "less_than_equal", "body", "num_inference_steps")}
	case r.fault == Flags:
		return http.StatusUnprocessableEntity, map[string]any{"detail": detail("The content could not be processed because it was flagged by a content checker.", "content_policy_violation", "body", "prompt")}
	case r.fault == Fails:
		return http.StatusInternalServerError, map[string]any{"detail": "CUDA out of memory at /app/main.py, see https://internal.example/1", "error_type": "runner_server_error"}
	case r.fault == Interrupts:
		return http.StatusServiceUnavailable, map[string]any{"detail": "Runner disconnected", "error_type": "runner_disconnected"}
	}
	if prompt, ok := r.input["prompt"].(string); !ok || prompt == "" {
		return http.StatusUnprocessableEntity, map[string]any{"detail": detail("Field required", "missing", "body", "prompt")}
	}
	base := host + "/files/" + r.id + "/"
	switch r.endpoint {
	case Writer:
		return http.StatusOK, map[string]any{"output": "Once upon a time", "partial": false}
	case Film:
		return http.StatusOK, map[string]any{
			"thumbnail": map[string]any{"url": base + "0.png", "content_type": "image/png"},
			"video":     map[string]any{"url": base + "0.mp4", "content_type": "video/mp4", "file_name": "0.mp4"},
		}
	}
	images := []any{}
	unsafe := []bool{}
	for i := range r.count() {
		images = append(images, map[string]any{"url": fmt.Sprintf("%s%d.png", base, i), "content_type": "image/png", "width": 16, "height": 16})
		unsafe = append(unsafe, r.fault == Blackens)
	}
	return http.StatusOK, map[string]any{
		"images": images, "has_nsfw_concepts": unsafe, "prompt": r.input["prompt"], "seed": r.input["seed"], "timings": map[string]any{"inference": 0.5},
	}
}

func (r *request) count() int {
	if r.fault == Fewer {
		return 0
	}
	if n, ok := r.input["num_images"].(float64); ok {
		return int(n)
	}
	return 1
}

// picture returns the painter's picture with the given number for its inputs.
// Equal inputs have equal pictures.
func picture(input map[string]any, number int) []byte {
	text, err := json.Marshal(input)
	if err != nil {
		panic(err) // never happens, because the input was decoded from JSON
	}
	return enginetest.StripedPNG(16, 16, fmt.Sprintf("%s#%d", text, number))
}

// readable reports whether a model can read an input file: ref must be a data:
// URI or the URL of an upload.
func (s *Server) readable(ref string) bool {
	if rest, ok := strings.CutPrefix(ref, "data:"); ok {
		_, body, ok := strings.Cut(rest, ";base64,")
		_, err := base64.StdEncoding.DecodeString(body)
		return ok && err == nil
	}
	id, ok := strings.CutPrefix(ref, s.host+"/uploads/")
	return ok && s.uploads[id] != nil
}
