package backend

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"strings"

	"atelier/internal/engine"
)

// Mapping says how a tool's fields become a model's inputs. It is the part of a
// manifest's engine.with that servers of models with named inputs share.
type Mapping struct {
	// Input are inputs that are always the same.
	Input map[string]any `json:"input"`
	// Rename gives the input for a field; one that is not named here goes to the
	// input with its key. size.width names the width of a field called size.
	// "-" sends the field to no input.
	Rename map[string]string `json:"rename"`
	// Seed and Results name the inputs that take the seed and how many results
	// are wanted; "" is none. SeedMax is the largest seed that the model takes,
	// 0 where it takes all; greater ones start again at 0.
	Seed    string `json:"seed"`
	SeedMax uint32 `json:"seed_max"`
	Results string `json:"results"`
}

// Setting decodes an engine's part of a manifest, and refuses what it does not
// know.
func Setting(with string, into any) error {
	d := json.NewDecoder(strings.NewReader(with))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return ErrSetup.Because(err)
	}
	return nil
}

// Values gives the inputs of a job. file turns a media input into what the
// model takes.
func (m Mapping) Values(ctx context.Context, j engine.Job, seed uint32, results int, file func(context.Context, engine.File) (any, error)) (map[string]any, error) {
	all := map[string]any{}
	for key, v := range j.Values {
		m.put(all, key, v)
	}
	for key, files := range j.Files {
		list := make([]any, len(files))
		for i, f := range files {
			var err error
			if list[i], err = file(ctx, f); err != nil {
				return nil, err
			}
		}
		if len(list) == 1 && !m.many(key) {
			m.put(all, key, list[0])
		} else {
			m.put(all, key, list)
		}
	}
	if m.Seed != "" {
		if m.SeedMax > 0 && m.SeedMax < math.MaxUint32 {
			seed %= m.SeedMax + 1
		}
		all[m.Seed] = seed
	}
	if m.Results != "" {
		all[m.Results] = results
	}
	maps.Copy(all, m.Input)
	return all, nil
}

// many tells whether a field of files goes to an input that takes a list, which
// is written as key[].
func (m Mapping) many(key string) bool { return strings.HasSuffix(m.Rename[key], "[]") }

func (m Mapping) put(all map[string]any, key string, v any) {
	if pair, ok := v.(map[string]any); ok { // a size
		for side, n := range pair {
			to, named := m.Rename[key+"."+side]
			if !named {
				to = side
			}
			if to != "-" {
				all[to] = n
			}
		}
		return
	}
	to, named := m.Rename[key]
	if !named {
		to = key
	}
	if to != "-" {
		all[strings.TrimSuffix(to, "[]")] = v
	}
}
