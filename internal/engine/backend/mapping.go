package backend

import (
	"context"
	"maps"
	"math"
	"strings"

	"atelier/internal/engine"
)

// Mapping maps a tool's fields to a model's inputs. It is the part of a
// manifest's engine.with section that is the same for all engines whose models
// have named inputs.
type Mapping struct {
	// Input are constant inputs, by input name.
	Input map[string]any `json:"input"`
	// Rename maps a field's key to the name of an input. Other fields are sent
	// to the input with the same name as their key. size.width is the width of
	// a field called size. "-" means that the field is not sent.
	Rename map[string]string `json:"rename"`
	// Seed and Results are the names of the inputs for the seed and the number
	// of results. They are empty if the model has no such input. SeedMax is
	// the model's largest seed; larger seeds wrap around to 0. If SeedMax is
	// 0, there is no limit.
	Seed    string `json:"seed"`
	SeedMax uint32 `json:"seed_max"`
	Results string `json:"results"`
	// Several means that one request makes several results, whose number the
	// model decides. No further requests are sent if there are too few.
	Several bool `json:"several"`
}

// MakesAllAtOnce reports whether one request makes all results of a job.
func (m Mapping) MakesAllAtOnce() bool { return m.Results != "" || m.Several }

// InputValues returns the model's inputs for a job, by input name. file
// converts a file of the job to the form that the model accepts, such as a
// URL.
func (m Mapping) InputValues(ctx context.Context, j engine.Job, seed uint32, results int, file func(context.Context, engine.File) (any, error)) (map[string]any, error) {
	all := map[string]any{}
	for key, v := range j.Values {
		m.setInput(all, key, v)
	}
	for key, files := range j.Files {
		list := make([]any, len(files))
		for i, f := range files {
			var err error
			if list[i], err = file(ctx, f); err != nil {
				return nil, err
			}
		}
		if len(list) == 1 && !m.takesList(key) {
			m.setInput(all, key, list[0])
		} else {
			m.setInput(all, key, list)
		}
	}
	m.setSeed(all, seed)
	if m.Results != "" {
		all[m.Results] = results
	}
	maps.Copy(all, m.Input)
	return all, nil
}

// WithSeed returns a copy of inputs with another seed, for the next request of
// the same job.
func (m Mapping) WithSeed(inputs map[string]any, seed uint32) map[string]any {
	again := maps.Clone(inputs)
	if _, fixed := m.Input[m.Seed]; !fixed {
		m.setSeed(again, seed)
	}
	return again
}

func (m Mapping) setSeed(all map[string]any, seed uint32) {
	if m.Seed != "" {
		all[m.Seed] = LimitSeed(seed, m.SeedMax)
	}
}

// LimitSeed returns a seed that is not above most, the largest one that a
// server accepts. Larger seeds wrap around to 0. If most is 0, there is no
// limit.
func LimitSeed(seed, most uint32) uint32 {
	if most > 0 && most < math.MaxUint32 {
		seed %= most + 1
	}
	return seed
}

// takesList reports whether the files of a field are sent to an input that
// takes a list. In Rename, the name of such an input ends in [].
func (m Mapping) takesList(key string) bool { return strings.HasSuffix(m.Rename[key], "[]") }

func (m Mapping) setInput(all map[string]any, key string, v any) {
	if pair, ok := v.(map[string]any); ok { // a size field has a width and a height
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
