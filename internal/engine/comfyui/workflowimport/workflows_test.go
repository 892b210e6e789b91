package workflowimport_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"atelier/internal/engine/backend"
	"atelier/internal/engine/comfyui"
	"atelier/internal/engine/comfyui/workflowimport"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/manifestdraft"
)

// describedServer serves the descriptions of node classes in
// testdata/object_info.json, and a history. The stand-in server runs only some
// of these classes.
func describedServer(t *testing.T, history string) *comfyui.Engine {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "object_info.json"))
	if err != nil {
		t.Fatal(err)
	}
	var classes map[string]json.RawMessage
	if err := json.Unmarshal(text, &classes); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /object_info/{class}", func(w http.ResponseWriter, r *http.Request) {
		found := map[string]json.RawMessage{}
		if class, ok := classes[r.PathValue("class")]; ok {
			found[r.PathValue("class")] = class
		}
		_ = json.NewEncoder(w).Encode(found)
	})
	mux.HandleFunc("GET /history", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(history)) })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	c, err := backend.New(backend.Options{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return comfyui.New(c, comfyui.Options{})
}

func readRecorded(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "workflows", file+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func importRecorded(t *testing.T, e *comfyui.Engine, data []byte) (manifestdraft.Tool, workflowimport.Report) {
	t.Helper()
	tool, report, err := e.ImportTool(t.Context(), workflowimport.Request{Name: "Recorded", Data: data, File: "recorded.json", Engine: "studio"})
	if err != nil {
		t.Fatalf("import: %v", err)
	}
	return tool, report
}

func boundTo(tool manifestdraft.Tool, key string) string {
	return strings.Join(tool.Engine.With["bind"].(map[string][]string)[key], " ")
}

// TestRecordedWorkflows imports every workflow of testdata and checks what its
// fields bind. It prints and checks the shares of the workflows whose prompt,
// seed, size and length became fields.
func TestRecordedWorkflows(t *testing.T) {
	t.Parallel()
	e := describedServer(t, "{}")
	share := map[string][2]int{} // number of bound inputs and of all, by purpose
	for _, want := range recordedWorkflows {
		tool, report := importRecorded(t, e, readRecorded(t, want.file))
		enginetest.LintDraft(t, tool)
		if got := fmt.Sprint(tool.Output.Type, " ", tool.Output.MimeTypes); got != want.output {
			t.Errorf("%s: output = %s, want %s", want.file, got, want.output)
		}
		if got := resultsOf(tool); got != want.results {
			t.Errorf("%s: results = %s, want %s", want.file, got, want.results)
		}
		for _, purpose := range []struct{ name, key, want string }{
			{"prompt", promptKey(tool), want.prompt}, {"negative prompt", "negative_prompt", want.negative}, {"seed", "seed", want.seed},
			{"size", "size.width", want.size}, {"length", "length", want.length}, {"seconds", "seconds", want.seconds},
		} {
			got := boundTo(tool, purpose.key)
			if got != purpose.want {
				t.Errorf("%s: %s = %q, want %q", want.file, purpose.name, got, purpose.want)
			}
			if purpose.want != "" {
				n := share[purpose.name]
				n[1]++
				if got != "" {
					n[0]++
				}
				share[purpose.name] = n
			}
		}
		checkFields(t, want, tool, report)
	}
	for _, name := range slices.Sorted(maps.Keys(share)) {
		n := share[name]
		t.Logf("%s: %d of %d workflows", name, n[0], n[1])
		if n[0] != n[1] {
			t.Errorf("%s: bound in %d of %d workflows", name, n[0], n[1])
		}
	}
	files, err := filepath.Glob(filepath.Join("testdata", "workflows", "*.json"))
	if err != nil || len(files) != len(recordedWorkflows) {
		t.Errorf("files = %d, %v, want %d", len(files), err, len(recordedWorkflows))
	}
}

// checkFields checks the further fields, the fixed inputs and the warnings of
// an import.
func checkFields(t *testing.T, want recordedWorkflow, tool manifestdraft.Tool, report workflowimport.Report) {
	t.Helper()
	var key string
	further := map[string][]string{}
	for _, word := range strings.Fields(want.more) {
		if name, first, ok := strings.Cut(word, "="); ok {
			key = name
			word = first
		}
		further[key] = append(further[key], word)
	}
	for key, inputs := range further {
		if got := boundTo(tool, key); got != strings.Join(inputs, " ") {
			t.Errorf("%s: %s = %q, want %q", want.file, key, got, inputs)
		}
	}
	for _, input := range strings.Fields(want.fixed) {
		at := slices.IndexFunc(report.Fixed, func(f workflowimport.FixedInput) bool { return f.Input == input })
		if at < 0 || report.Fixed[at].Minor || report.Fixed[at].Reason == "" {
			t.Errorf("%s: %s is not reported as fixed: %+v", want.file, input, report.Fixed)
		}
	}
	for _, w := range want.warns {
		if !slices.Contains(report.Warnings, w) {
			t.Errorf("%s: warnings = %q, want %q", want.file, report.Warnings, w)
		}
	}
	if len(report.Warnings) != len(want.warns) {
		t.Errorf("%s: warnings = %q, want %q", want.file, report.Warnings, want.warns)
	}
}

// promptKey returns the key of the tool's first prompt field.
func promptKey(tool manifestdraft.Tool) string {
	at := slices.IndexFunc(tool.Fields, func(f manifestdraft.Field) bool { return f.Type == "PROMPT" })
	if at < 0 {
		return ""
	}
	return tool.Fields[at].Key
}

func resultsOf(tool manifestdraft.Tool) string {
	if tool.NumResults == nil {
		return "1-1"
	}
	return fmt.Sprintf("%d-%d", tool.NumResults.Min, tool.NumResults.Max)
}
