package comfyui

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"atelier/internal/engine"
)

// FuzzParseGraph proves that settings are refused as a mistake of the operator,
// or lead to a graph whose bindings and outputs all exist.
func FuzzParseGraph(f *testing.F) {
	for _, with := range []string{
		`{"workflow": {"1": {"class_type": "SaveImage", "inputs": {"filename_prefix": "a"}}}}`,
		`{"workflow": {"1": {"class_type": "KSampler", "inputs": {"seed": 1}}, "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0]}}}, "bind": {"seed": ["1.seed"]}, "outputs": ["2"]}`,
		`{"workflow": {"1": {"class_type": "", "inputs": {}}}}`, `{"workflow": {"1": null}}`, `{"workflow": {"1": {"class_type": "a", "inputs": []}}}`,
		`{"bind": {"a": ["1."]}}`, `{"outputs": [""]}`, `null`, `{}`, `[`, `{"workflow": {"1": {"class_type": "a", "inputs": {}}}, "bind": {"a": ["1"]}}`,
	} {
		f.Add(with)
	}
	f.Fuzz(func(t *testing.T, with string) {
		g, err := parseGraph(with)
		if err != nil {
			if e, ok := errors.AsType[*engine.Error](err); !ok || e.Code != engine.Failed {
				t.Errorf("%q = %v", with, err)
			}
			return
		}
		if len(g.Workflow) == 0 {
			t.Error("a graph without nodes")
		}
		for key, all := range g.targets {
			if len(all) != len(g.Bind[key]) {
				t.Errorf("%s is bound to %d inputs, want %d", key, len(all), len(g.Bind[key]))
			}
		}
		for _, id := range g.Outputs {
			if g.Workflow[id] == nil {
				t.Errorf("the output %q is no node", id)
			}
		}
	})
}

// FuzzDecodeQueue proves that the queue of a server is refused, or has as many
// entries as encoding/json finds in it.
func FuzzDecodeQueue(f *testing.F) {
	for _, text := range []string{`{"queue_running": [[1, "a", {}]], "queue_pending": []}`, `{"queue_pending": [[1], [], null, {}, [1, 2], ["x", "y"]], "other": {"a": [1]}}`, `[]`, `{"queue_running": {}}`, `{"queue_running": [`, `{}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		queue := map[string][]queueItem{}
		if err := decodeQueue(json.NewDecoder(strings.NewReader(text)), queue); err != nil {
			return
		}
		var want map[string]json.RawMessage
		if err := json.NewDecoder(strings.NewReader(text)).Decode(&want); err != nil {
			t.Fatalf("%q is no object, and was taken: %v", text, err)
		}
		for _, name := range []string{"queue_running", "queue_pending"} {
			var list []json.RawMessage
			if json.Unmarshal(want[name], &list) == nil && len(list) != len(queue[name]) {
				t.Errorf("%q has %d entries in %s, want %d", text, len(queue[name]), name, len(list))
			}
		}
	})
}
