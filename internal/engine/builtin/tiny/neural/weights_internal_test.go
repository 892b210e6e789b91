package neural

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"atelier/internal/engine/builtin/tiny/kernel"
)

// changed gives the files with another index.
func changed(t *testing.T, name string, change func(index map[string]any)) map[string]string {
	t.Helper()
	files := embeddedFiles()
	var v map[string]any
	if err := json.Unmarshal([]byte(files[name]), &v); err != nil {
		t.Fatal(err)
	}
	change(v)
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	files[name] = string(b)
	return files
}

// Whatever an index says, opening it is an error: no panic, and no memory that
// grows with the numbers in it.
func TestWrongIndexesAreRefused(t *testing.T) {
	t.Parallel()
	refused := func(what string, files map[string]string) {
		t.Helper()
		defer func() {
			if p := recover(); p != nil {
				t.Errorf("%s: panic: %v", what, p)
			}
		}()
		if m, err := openFiles(kernel.Best(), 1, files); err == nil {
			m.Close()
			t.Errorf("%s was taken", what)
		} else if !strings.HasPrefix(err.Error(), "weights: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, name := range []string{"model.json", "upscale.json"} {
		var fields []string
		changed(t, name, func(v map[string]any) {
			for f := range maps.Keys(v["config"].(map[string]any)) {
				fields = append(fields, f)
			}
		})
		for _, f := range fields {
			for _, v := range []int{0, -32, 16, 512, 1 << 29} {
				if f == "theta" && v > 0 || f == "res" && (v == 16 || v == 512) {
					continue // no tensor tells
				}
				refused(fmt.Sprintf("%s: %s %d", name, f, v), changed(t, name, func(x map[string]any) { x["config"].(map[string]any)[f] = v }))
			}
		}
		tensor := func(x map[string]any, i int) map[string]any { return x["tensors"].([]any)[i].(map[string]any) }
		for what, change := range map[string]func(x map[string]any){
			"an offset below zero":     func(x map[string]any) { tensor(x, 1)["offset"] = -1 },
			"an offset beyond the end": func(x map[string]any) { tensor(x, 1)["offset"] = 1 << 30 },
			"an offset near the end": func(x map[string]any) {
				tensor(x, 1)["offset"] = x["files"].([]any)[0].(map[string]any)["size"].(float64) - 8
			},
			"two in the same place":      func(x map[string]any) { tensor(x, 1)["offset"] = tensor(x, 0)["offset"] },
			"two that overlap":           func(x map[string]any) { tensor(x, 1)["offset"] = tensor(x, 1)["offset"].(float64) - 2 },
			"two of a name":              func(x map[string]any) { tensor(x, 1)["name"] = tensor(x, 0)["name"] },
			"a file below zero":          func(x map[string]any) { tensor(x, 1)["file"] = -1 },
			"a file that is not there":   func(x map[string]any) { tensor(x, 1)["file"] = 9 },
			"another kind":               func(x map[string]any) { tensor(x, 1)["kind"] = "rows" },
			"a kind that nobody knows":   func(x map[string]any) { tensor(x, 1)["kind"] = "double" },
			"a dimension below zero":     func(x map[string]any) { tensor(x, 1)["shape"].([]any)[0] = -1 },
			"dimensions beyond counting": func(x map[string]any) { tensor(x, 1)["shape"] = []int64{1 << 31, 1 << 31, 2} },
			"no tensors":                 func(x map[string]any) { x["tensors"] = nil },
			"no files":                   func(x map[string]any) { x["files"] = nil },
			"no last file":               func(x map[string]any) { x["files"] = x["files"].([]any)[:len(x["files"].([]any))-1] },
		} {
			refused(name+": "+what, changed(t, name, change))
		}
	}
	for what, change := range map[string]func(x map[string]any){
		"a shift of zero":       func(x map[string]any) { x["sampler"].(map[string]any)["shift"] = 0 },
		"a shift below zero":    func(x map[string]any) { x["sampler"].(map[string]any)["shift"] = -1 },
		"more steps than drawn": func(x map[string]any) { x["sampler"].(map[string]any)["steps"] = maxSteps + 1 },
		"no text":               func(x map[string]any) { x["text_len"] = 0 },
		"much text":             func(x map[string]any) { x["text_len"] = 1 << 29 },
	} {
		refused(what, changed(t, "model.json", change))
	}
	files := embeddedFiles()
	files["model.0.bin"], files["model.1.bin"] = files["model.1.bin"], files["model.0.bin"]
	refused("files that were swapped", files)
	refused("nothing", nil)
}
