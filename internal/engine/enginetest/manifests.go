package enginetest

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"go.yaml.in/yaml/v3"

	"atelier/internal/catalog/catalog"
	"atelier/internal/engine/manifestdraft"
	"atelier/tools"
)

// Manifest is the part of a shipped tool manifest that tests of engines use.
type Manifest struct {
	Engine struct {
		Name string
		With struct{ Operation string }
	}
	Output struct {
		MimeTypes []string `yaml:"mime_types"`
	}
	Fields []ManifestField
}

// ManifestField is a field of a tool's form, or a group of fields.
type ManifestField struct {
	Key, Type string
	Default   any
	Min, Max  float64
	Options   []struct{ Value string }
	Fields    []ManifestField // fields of a group
}

// ShippedManifests returns the shipped tool manifests of an engine, by file
// name without the ending. The test fails if there are none.
func ShippedManifests(t testing.TB, engineName string) map[string]Manifest {
	t.Helper()
	names, err := fs.Glob(tools.Files, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}

	all := map[string]Manifest{}
	for _, name := range names {
		b, err := fs.ReadFile(tools.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		var m Manifest
		// Files of tags and kits have no engine and are skipped.
		if yaml.Unmarshal(b, &m) == nil && m.Engine.Name == engineName {
			all[strings.TrimSuffix(name, ".yaml")] = m
		}
	}
	if len(all) == 0 {
		t.Fatalf("no shipped tool uses the engine %s", engineName)
	}
	return all
}

// ByOperation returns the manifests in a map whose keys are the operations in
// their engine.with sections.
func ByOperation(manifests map[string]Manifest) map[string]Manifest {
	all := map[string]Manifest{}
	for _, m := range manifests {
		all[m.Engine.With.Operation] = m
	}
	return all
}

// InputFields returns all fields that have a key, including fields in groups.
func (m Manifest) InputFields() []ManifestField { return inputFields(m.Fields) }

func inputFields(list []ManifestField) []ManifestField {
	var all []ManifestField
	for _, f := range list {
		all = append(all, inputFields(f.Fields)...)
		if f.Key != "" {
			all = append(all, f)
		}
	}
	return all
}

// DefaultValues returns the default values of all fields by key, with the types
// that engine.Job.Values has.
func (m Manifest) DefaultValues() map[string]any {
	all := map[string]any{}
	for _, f := range m.InputFields() {
		if n, ok := f.Default.(int); ok {
			all[f.Key] = int64(n)
		} else if f.Default != nil {
			all[f.Key] = f.Default
		}
	}
	return all
}

// LintDraft checks the draft of a tool's manifest against the rules of the
// catalog.
func LintDraft(t testing.TB, tool manifestdraft.Tool) {
	t.Helper()
	text, err := tool.YAML("A draft.")
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{manifestdraft.Slug(tool.Name) + ".yaml": {Data: text}}
	for name, data := range tool.Files {
		files[name] = &fstest.MapFile{Data: data}
	}
	set, err := catalog.Read(catalog.ManifestFolder{Source: catalog.Directory, Files: files})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range set.Problems {
		t.Errorf("%v\n%s", p, text)
	}
	if set.Len() != 1 {
		t.Errorf("tools = %d, want 1", set.Len())
	}
}
