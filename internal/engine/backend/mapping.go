package backend

import (
	"context"
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
	m.seed(all, seed)
	if m.Results != "" {
		all[m.Results] = results
	}
	maps.Copy(all, m.Input)
	return all, nil
}

// Again gives the same inputs with another seed, for one more call of a job.
func (m Mapping) Again(inputs map[string]any, seed uint32) map[string]any {
	again := maps.Clone(inputs)
	if _, fixed := m.Input[m.Seed]; !fixed {
		m.seed(again, seed)
	}
	return again
}

func (m Mapping) seed(all map[string]any, seed uint32) {
	if m.SeedMax > 0 && m.SeedMax < math.MaxUint32 {
		seed %= m.SeedMax + 1
	}
	if m.Seed != "" {
		all[m.Seed] = seed
	}
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
