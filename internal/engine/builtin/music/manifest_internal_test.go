package music

import (
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
)

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
	for _, f := range enginetest.ShippedManifests(t, "music")["tune"].InputFields() {
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
	tune := enginetest.ShippedManifests(t, "music")["tune"]
	for _, f := range tune.InputFields() {
		if n, ok := want[f.Key]; ok && len(f.Options) != n {
			t.Errorf("%s has %d options, want %d", f.Key, len(f.Options), n)
		}
	}
	if score1(t, tune.DefaultValues()) != score1(t, nil) {
		t.Error("the manifest's defaults are not the engine's")
	}
}
