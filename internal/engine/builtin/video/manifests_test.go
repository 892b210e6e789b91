package video_test

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"atelier/internal/engine/enginetest"
)

// shipped returns the manifests of this engine by operation.
func shipped(t *testing.T) map[string]enginetest.Manifest {
	t.Helper()
	return enginetest.ByOperation(enginetest.ShippedManifests(t, "video"))
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
		for _, f := range m.InputFields() {
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
			for key, v := range m.DefaultValues() {
				if _, set := bare.Values[key]; !set {
					filled.Values[key] = v
				}
			}
			if !bytes.Equal(result(t, bare), result(t, filled)) {
				t.Error("the defaults of the manifest are others than those of the operation")
			}
		})
	}
}
