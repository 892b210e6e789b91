package speech_test

import (
	"testing"

	"atelier/internal/engine/enginetest"
)

// TestEveryFieldMatters changes one field at a time, to each option or to both
// ends of its range.
func TestEveryFieldMatters(t *testing.T) {
	t.Parallel()
	e := installed(t)
	const text = "Der Regen zog über das Land, 1 2 3."
	for _, f := range enginetest.ShippedManifests(t, "speech")["speech"].InputFields() {
		t.Run(f.Key, func(t *testing.T) {
			t.Parallel()
			var all []any
			switch f.Type {
			case "TEXT_AREA":
				all = []any{"One.", "Two."}
			case "SLIDER":
				all = []any{f.Min, (f.Min + f.Max) / 2, f.Max}
			case "SINGLE_SELECT":
				for _, o := range f.Options {
					all = append(all, o.Value)
				}
			default:
				t.Fatalf("a field of type %s", f.Type)
			}
			seen := map[string]any{}
			for _, v := range all {
				b, _ := spoken(t, e, job(text, values{f.Key: v}))
				if before, ok := seen[string(b)]; ok {
					t.Errorf("%v and %v make no difference", before, v)
				}
				seen[string(b)] = v
			}
		})
	}
}

func TestDefaultsAreThoseOfTheEngine(t *testing.T) {
	t.Parallel()
	e := installed(t)
	defaults := values(enginetest.ShippedManifests(t, "speech")["speech"].DefaultValues())
	with, _ := spoken(t, e, job("Hello.", defaults))
	without, _ := spoken(t, e, job("Hello.", nil))
	if string(with) != string(without) {
		t.Error("the manifest's defaults are not the engine's")
	}
}
