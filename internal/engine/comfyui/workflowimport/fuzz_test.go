package workflowimport_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"atelier/internal/engine/comfyui"
	"atelier/internal/engine/comfyui/workflowimport"
)

// FuzzImport imports mutated workflows: none may panic, hang, or bind inputs
// that do not exist.
func FuzzImport(f *testing.F) {
	text, err := os.ReadFile(filepath.Join("testdata", "object_info.json"))
	if err != nil {
		f.Fatal(err)
	}
	var classes workflowimport.NodeClasses
	if err := json.Unmarshal(text, &classes); err != nil {
		f.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join("testdata", "workflows", "*.json"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkMutated(t, classes, data) })
}

// checkMutated imports a workflow that may be invalid in any way.
func checkMutated(t *testing.T, classes workflowimport.NodeClasses, data []byte) {
	t.Helper()
	tool, err := workflowimport.DraftWithClasses(classes, data, workflowimport.Request{File: "x.json", Engine: "x"})
	if err != nil {
		return
	}
	with, err := json.Marshal(map[string]any{"workflow": json.RawMessage(tool.Files["x.json"]), "bind": tool.Engine.With["bind"]})
	if err != nil {
		t.Fatal(err)
	}
	if err := comfyui.ManifestSpec().Check(string(with)); err != nil {
		t.Errorf("the engine refuses the manifest: %v", err)
	}
}
