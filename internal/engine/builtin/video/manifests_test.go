package video_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"atelier/tools"
)

type manifest struct {
	Engine struct {
		Name string
		With map[string]any
	}
	Output struct {
		MimeTypes []string `yaml:"mime_types"`
	}
	Fields []field
}

type field struct {
	Key, Type string
	Default   any
	Options   []struct{ Value string }
	Fields    []field
}

func (m manifest) leaves() []field {
	var all []field
	var walk func([]field)
	walk = func(list []field) {
		for _, f := range list {
			walk(f.Fields)
			if f.Key != "" {
				all = append(all, f)
			}
		}
	}
	walk(m.Fields)
	return all
}

// shipped are the manifests for this engine, by operation.
func shipped(t *testing.T) map[string]manifest {
	t.Helper()
	names, err := fs.Glob(tools.Files, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]manifest{}
	for _, name := range names {
		b, err := fs.ReadFile(tools.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		var m manifest
		// Tags and kits have another form.
		if yaml.Unmarshal(b, &m) == nil && m.Engine.Name == "video" {
			all[fmt.Sprint(m.Engine.With["operation"])] = m
		}
	}
	return all
}

func TestEveryOperationShips(t *testing.T) {
	t.Parallel()
	got := slices.Sorted(maps.Keys(shipped(t)))
	if want := []string{"pan-zoom", "slideshow", "smooth-motion", "video-to-gif", "waveform"}; !slices.Equal(got, want) {
		t.Errorf("operations = %v, want %v", got, want)
	}
}

// TestEveryOptionOfEveryTool runs with each option of each select, and wants
// results that differ.
func TestEveryOptionOfEveryTool(t *testing.T) {
	t.Parallel()
	for operation, m := range shipped(t) {
		for _, f := range m.leaves() {
			if f.Type != "SINGLE_SELECT" {
				continue
			}
			if !slices.Contains(selects[operation], f.Key) {
				t.Errorf("%s: the test for strange words misses %s", operation, f.Key)
			}
			t.Run(operation+" "+f.Key, func(t *testing.T) {
				t.Parallel()
				seen := map[string]string{}
				for _, o := range f.Options {
					if o.Value == "mixed" {
						continue // one of the others
					}
					j := cases(t)[operation]
					j.MimeTypes = m.Output.MimeTypes
					j.Values[f.Key] = o.Value
					out := result(t, j)
					if before, ok := seen[string(out)]; ok && !alike(operation, f.Key) {
						t.Errorf("%s and %s make no difference", before, o.Value)
					}
					seen[string(out)] = o.Value
				}
			})
		}
	}
}

// alike are fields that change nothing for the small files of these tests.
func alike(operation, key string) bool { return operation == "smooth-motion" && key == "size" }

func TestDefaultsAreThoseOfNoValues(t *testing.T) {
	t.Parallel()
	for operation, m := range shipped(t) {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			bare, filled := cases(t)[operation], cases(t)[operation]
			filled.Values = maps.Clone(bare.Values)
			for _, f := range m.leaves() {
				if _, set := bare.Values[f.Key]; !set && f.Default != nil {
					filled.Values[f.Key] = asJSON(f.Default)
				}
			}
			if !bytes.Equal(result(t, bare), result(t, filled)) {
				t.Error("the defaults of the manifest are others than those of the operation")
			}
		})
	}
}

// asJSON gives a value of a manifest as jobs have it.
func asJSON(v any) any {
	if n, ok := v.(int); ok {
		return int64(n)
	}
	return v
}
