package replicatetest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"atelier/internal/engine/enginetest"
)

// prediction is where its clock says: it starts, works and ends by itself.
type prediction struct {
	id, model, version, deployment string
	input                          map[string]any
	created                        time.Time
	fault                          Fault     // how it fails, "" for not
	cancelled                      time.Time // zero: not
	outputs                        []string  // addresses of what it makes
}

// file is an upload.
type file struct {
	id, kind, name string
	content        []byte
	metadata       json.RawMessage
}

// status is where it is: the first tenth of its time it starts.
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

// failures are the words of predictions that fail.
var failures = map[Fault]string{
	Fails:      "CUDA out of memory at /src/predict.py, see https://internal.example/logs/1",
	Flags:      "The input or output was flagged as sensitive. Please try again with different inputs. (E005)",
	Interrupts: "Prediction interrupted; please retry (code: PA)",
}

// snapshot is what the API says about it now.
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

// output has the form that its model gives it.
func (p *prediction) output() any {
	switch p.model {
	case Writer:
		return []string{"Once", " upon", " a time"}
	case Film:
		return map[string]any{"poster": p.outputs[0] + "0.png", "seconds": 4, "video": p.outputs[0] + "0.mp4"}
	}
	return p.outputs
}

// logs show a progress bar of tqdm, which writes over itself.
func (p *prediction) logs(takes time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Using seed: %v\n", p.input["seed"])
	gone := min(float64(time.Since(p.created))/float64(takes), 1)
	for percent := 0; float64(percent) <= gone*100 && p.status(takes) != "starting"; percent += 10 {
		fmt.Fprintf(&b, "%3d%%|%-10s| %d/50 [00:00<00:00, 25.00it/s]\n", percent, strings.Repeat("█", percent/10), percent/2)
	}
	return b.String()
}

// picture is what the painter makes of its inputs: the same of the same.
func picture(input map[string]any, number int) []byte {
	text, err := json.Marshal(input)
	if err != nil {
		panic(err) // it came as JSON
	}
	return enginetest.StripedPNG(16, 16, fmt.Sprintf("%s#%d", text, number))
}

// readable tells whether a file input can be read by a model: it is inline, or
// an upload.
func (s *Server) readable(ref string) bool {
	if rest, ok := strings.CutPrefix(ref, "data:"); ok {
		_, body, ok := strings.Cut(rest, ";base64,")
		content, err := base64.StdEncoding.DecodeString(body)
		return ok && err == nil && len(content) <= 256<<10
	}
	id, ok := strings.CutPrefix(ref, s.URL+"/files/")
	return ok && s.files[id] != nil
}
