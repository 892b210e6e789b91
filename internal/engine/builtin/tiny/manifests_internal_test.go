package tiny

import (
	"maps"
	"slices"
	"testing"

	"atelier/internal/engine/enginetest"
)

// shipped returns the manifests of this engine by operation.
func shipped(t *testing.T) map[string]enginetest.Manifest {
	t.Helper()
	return enginetest.ByOperation(enginetest.ShippedManifests(t, "tiny"))
}

func TestEveryOperationShips(t *testing.T) {
	t.Parallel()
	if got, want := slices.Sorted(maps.Keys(shipped(t))), slices.Sorted(maps.Keys(operations)); !slices.Equal(got, want) {
		t.Errorf("operations = %v, want %v", got, want)
	}
}

// TestEveryChoiceHasItsWords holds the options of the forms to what is added to
// a prompt: each adds words of its own, but for the one that adds none.
func TestEveryChoiceHasItsWords(t *testing.T) {
	t.Parallel()
	for operation, m := range shipped(t) {
		for _, f := range m.InputFields() {
			var words map[string]string
			none := ""
			switch f.Key {
			case "style":
				words, none = styles, "any"
			case "background":
				words, none = backgrounds, "prompt"
			default:
				continue
			}
			var offered []string
			for _, o := range f.Options {
				offered = append(offered, o.Value)
			}
			slices.Sort(offered)
			if want := slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(words)), none))); !slices.Equal(offered, want) {
				t.Errorf("%s %s = %v, want %v", operation, f.Key, offered, want)
			}
			if distinct := slices.Compact(slices.Sorted(maps.Values(words))); len(distinct) != len(words) {
				t.Errorf("%s: two choices add the same words", f.Key)
			}
		}
	}
}
