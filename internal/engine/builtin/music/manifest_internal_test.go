package music

import (
	"io/fs"
	"testing"

	"go.yaml.in/yaml/v3"

	"atelier/internal/engine"
	"atelier/tools"
)

type field struct {
	Key, Type string
	Default   any
	Min, Max  float64
	Options   []struct{ Value string }
}

func shipped(t *testing.T) []field {
	t.Helper()
	b, err := fs.ReadFile(tools.Files, "tune.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Engine struct{ Name string }
		Fields []field
	}
	if err := yaml.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	if m.Engine.Name != "music" {
		t.Fatalf("engine = %q", m.Engine.Name)
	}
	return m.Fields
}

func score1(t *testing.T, values map[string]any) string {
	t.Helper()
	w, err := readRequest(engine.Job{Values: values})
	if err != nil {
		t.Fatal(err)
	}
	w.seed = 9
	return string(composeTune(w).encodeMIDI())
}

// TestEveryFieldMatters changes one field at a time, to each option or to both
// ends of its range. What is left to the mood is one of the others.
func TestEveryFieldMatters(t *testing.T) {
	t.Parallel()
	for _, f := range shipped(t) {
		var all []any
		switch f.Type {
		case "SEED": // shown by other tests
		case "SLIDER":
			all = []any{f.Min, int64(f.Min+f.Max) / 2, f.Max}
		case "BOOLEAN":
			all = []any{true, false}
		case "SINGLE_SELECT":
			for _, o := range f.Options {
				if o.Value != byMood {
					all = append(all, o.Value)
				}
			}
		default:
			t.Fatalf("a field of type %s", f.Type)
		}
		seen := map[string]any{}
		for _, v := range all {
			s := score1(t, map[string]any{"mood": "happy", f.Key: v})
			if before, ok := seen[s]; ok {
				t.Errorf("%s: %v and %v make no difference", f.Key, before, v)
			}
			seen[s] = v
		}
	}
}

// TestTheManifestHasAllThereIs compares the choices with what the engine knows.
func TestTheManifestHasAllThereIs(t *testing.T) {
	t.Parallel()
	want := map[string]int{"mood": len(moods), "key": len(keys), "scale": len(scales) + 1, "instruments": len(ensembles) + 1}
	defaults := map[string]any{}
	for _, f := range shipped(t) {
		if n, ok := want[f.Key]; ok && len(f.Options) != n {
			t.Errorf("%s has %d options, want %d", f.Key, len(f.Options), n)
		}
		if n, ok := f.Default.(int); ok {
			defaults[f.Key] = int64(n)
		} else if f.Default != nil {
			defaults[f.Key] = f.Default
		}
	}
	if score1(t, defaults) != score1(t, nil) {
		t.Error("the manifest's defaults are not the engine's")
	}
}
