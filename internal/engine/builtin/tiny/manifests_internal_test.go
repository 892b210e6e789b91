package tiny

import (
	"io/fs"
	"maps"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"atelier/tools"
)

type field struct {
	Key, Type string
	Options   []struct{ Value string }
	Fields    []field
}

// shipped are the fields of the tools of this engine, by operation.
func shipped(t *testing.T) map[string][]field {
	t.Helper()
	names, err := fs.Glob(tools.Files, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]field{}
	for _, name := range names {
		b, err := fs.ReadFile(tools.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		var m struct {
			Engine struct {
				Name string
				With struct{ Operation string }
			}
			Fields []field
		}
		// Tags and kits have another form.
		if yaml.Unmarshal(b, &m) == nil && m.Engine.Name == "tiny" {
			all[m.Engine.With.Operation] = leaves(m.Fields)
		}
	}
	return all
}

func leaves(list []field) (all []field) {
	for _, f := range list {
		all = append(all, leaves(f.Fields)...)
		if f.Key != "" {
			all = append(all, f)
		}
	}
	return all
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
	for operation, fields := range shipped(t) {
		for _, f := range fields {
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
