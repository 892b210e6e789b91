package replicatetest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"atelier/internal/engine/enginetest"
)

// prediction is a prediction of the stand-in server. Its state is derived from
// the time since its creation: it starts, runs and ends by itself.
type prediction struct {
	id, model, version, deployment string
	input                          map[string]any
	created                        time.Time
	fault                          Fault     // how the prediction fails; empty if it succeeds
	cancelled                      time.Time // time of the cancellation; zero if it was not cancelled
	outputs                        []string  // URLs of the outputs
}

// file is a file that a client has uploaded.
type file struct {
	id, kind, name string
	content        []byte
	metadata       json.RawMessage
}

// status returns the state of a prediction that takes the given time. It is
// starting for the first tenth of that time.
func (p *prediction) status(takes time.Duration) string {
	if !p.cancelled.IsZero() {
		return "canceled"
	}
	switch gone := time.Since(p.created); {
	case gone < takes/10:
		return "starting"
	case gone < takes:
		return "processing"
	case p.fault != "":
		return "failed"
	}
	return "succeeded"
}

func ended(status string) bool { return status != "starting" && status != "processing" }

func (p *prediction) cancel(takes time.Duration) {
	if !ended(p.status(takes)) {
		p.cancelled = time.Now()
	}
}

// failures are the error messages of failed predictions, by fault.
var failures = map[Fault]string{
	Fails:      "CUDA out of memory at /src/predict.py, see https://internal.example/logs/1",
	Flags:      "The input or output was flagged as sensitive. Please try again with different inputs. (E005)",
	Interrupts: "Prediction interrupted; please retry (code: PA)",
}

// snapshot returns the JSON of the API's response about the prediction. base
// is the API's base URL.
func (p *prediction) snapshot(base string, takes time.Duration) map[string]any {
	status := p.status(takes)
	all := map[string]any{
		"id": p.id, "model": p.model, "version": p.version, "input": p.input, "logs": p.logs(takes), "output": nil, "error": nil,
		"status": status, "source": "api", "data_removed": false, "created_at": p.created.UTC().Format(time.RFC3339Nano),
		"metrics": map[string]any{}, "urls": map[string]any{
			"get": base + "/predictions/" + p.id, "cancel": base + "/predictions/" + p.id + "/cancel", "web": "https://replicate.com/p/" + p.id,
		},
	}
	if p.deployment != "" {
		all["deployment"] = p.deployment
	}
	if status != "starting" {
		all["started_at"] = p.created.Add(takes / 10).UTC().Format(time.RFC3339Nano)
	}
	if ended(status) {
		all["completed_at"] = p.created.Add(takes).UTC().Format(time.RFC3339Nano)
		all["metrics"] = map[string]any{"predict_time": (takes * 9 / 10).Seconds(), "total_time": takes.Seconds()}
	}
	switch status {
	case "failed":
		all["error"] = failures[p.fault]
	case "succeeded":
		all["output"] = p.output()
	}
	return all
}

// output returns the prediction's output in the format of its model.
func (p *prediction) output() any {
	switch p.model {
	case Writer:
		return []string{"Once", " upon", " a time"}
	case Film:
		return map[string]any{"poster": p.outputs[0] + "0.png", "seconds": 4, "video": p.outputs[0] + "0.mp4"}
	}
	return p.outputs
}

// logs returns the log of the model so far: the seed, and a progress bar as
// tqdm prints it.
func (p *prediction) logs(takes time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Using seed: %v\n", p.input["seed"])
	gone := min(float64(time.Since(p.created))/float64(takes), 1)
	for percent := 0; float64(percent) <= gone*100 && p.status(takes) != "starting"; percent += 10 {
		fmt.Fprintf(&b, "%3d%%|%-10s| %d/50 [00:00<00:00, 25.00it/s]\n", percent, strings.Repeat("█", percent/10), percent/2)
	}
	return b.String()
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
// URI of at most 256 KiB or the URL of an upload.
func (s *Server) readable(ref string) bool {
	if rest, ok := strings.CutPrefix(ref, "data:"); ok {
		_, body, ok := strings.Cut(rest, ";base64,")
		content, err := base64.StdEncoding.DecodeString(body)
		return ok && err == nil && len(content) <= 256<<10
	}
	id, ok := strings.CutPrefix(ref, s.URL+"/files/")
	return ok && s.files[id] != nil
}
