package comfyui

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// FuzzImport imports mutated workflows: none may panic, hang, or bind inputs
// that do not exist.
func FuzzImport(f *testing.F) {
	text, err := os.ReadFile(filepath.Join("testdata", "object_info.json"))
	if err != nil {
		f.Fatal(err)
	}
	var classes map[string]nodeClass
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
	f.Fuzz(func(t *testing.T, data []byte) { importMutated(t, classes, data) })
}

// importMutated imports a workflow that may be invalid in any way.
func importMutated(t *testing.T, classes map[string]nodeClass, data []byte) {
	t.Helper()
	src, err := findWorkflow(data)
	if err != nil {
		return
	}
	d := newBuilder()
	d.classes = classes
	if src.api != nil {
		if d.nodes, err = readGraph(src.api); err != nil {
			return
		}
	} else {
		w, err := parseEditorWorkflow(src.editor)
		if err != nil {
			return
		}
		converted, err := convertWorkflow(w, classes)
		if err != nil {
			return
		}
		d.nodes = converted.nodes
		d.app = readAppMode(w.root, d.nodes, converted.places)
	}
	tool, _, err := d.draftTool(Workflow{File: "x.json", Engine: "x"})
	if err != nil {
		return
	}
	with, err := json.Marshal(map[string]any{"workflow": json.RawMessage(tool.Files["x.json"]), "bind": tool.Engine.With["bind"]})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseGraph(string(with)); err != nil {
		t.Errorf("the engine refuses the manifest: %v", err)
	}
}
