package comfyui

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"atelier/internal/engine"
)

// Keys of bind that are no fields.
const (
	keySeed    = "seed"
	keyResults = "num_results"
)

// graph is the engine's part of a manifest. Numbers in the workflow stay as
// they are written: seeds go up to 2^64-1.
type graph struct {
	Workflow map[string]map[string]any `json:"workflow"`
	Bind     map[string][]string       `json:"bind"`
	Outputs  []string                  `json:"outputs"`

	targets map[string][]target
}

// target is an input of a node.
type target struct {
	inputs map[string]any
	name   string
}

// read takes the manifest's part and refuses what cannot work.
func read(with string) (*graph, error) {
	var g graph
	if err := engine.DecodeSetting(with, &g); err != nil {
		return nil, err
	}
	if len(g.Workflow) == 0 {
		return nil, wrong("there is no workflow")
	}
	g.targets = map[string][]target{}
	for id, n := range g.Workflow {
		class, _ := n["class_type"].(string)
		if _, ok := n["inputs"].(map[string]any); !ok || class == "" {
			return nil, wrong("node %s of the workflow is not in API format", id)
		}
	}
	for key, places := range g.Bind {
		for _, place := range places {
			id, name, ok := strings.Cut(place, ".")
			n, there := g.Workflow[id]
			if !ok || !there || name == "" {
				return nil, wrong("bind: %s: there is no input %s", key, place)
			}
			g.targets[key] = append(g.targets[key], target{n["inputs"].(map[string]any), name})
		}
	}
	for _, id := range g.Outputs {
		if _, ok := g.Workflow[id]; !ok {
			return nil, wrong("outputs: there is no node %s", id)
		}
	}
	return &g, nil
}

// Manual says what a manifest can ask of the engine.
func Manual() engine.Manual {
	return engine.Manual{
		Setting: func() any { return &graph{} },
		Check: func(with string) error {
			_, err := read(with)
			return err
		},
	}
}

func wrong(format string, args ...any) error {
	return engine.ErrMisconfigured.Because(fmt.Errorf(format, args...))
}

// bound tells whether a key has inputs.
func (g *graph) bound(key string) bool { return len(g.targets[key]) > 0 }

// nodes gives the ids of the workflow.
func (g *graph) nodes() []string { return slices.Collect(maps.Keys(g.Workflow)) }

// fill sets the bound inputs. What the job has no value for stays as the
// workflow has it.
func (g *graph) fill(j engine.Job, seed uint32, results int, names map[string][]string) error {
	for key, targets := range g.targets {
		files, isFile := names[key]
		switch {
		case key == keySeed:
			set(targets, json.Number(strconv.FormatUint(uint64(seed), 10)))
		case key == keyResults:
			set(targets, json.Number(strconv.Itoa(results)))
		case isFile && len(files) == 1:
			set(targets, files[0])
		case isFile && len(files) > len(targets):
			return engine.Fail(engine.Failed, fmt.Sprintf("This tool takes at most %d files here.", len(targets))).Because(errors.New(key))
		case isFile:
			for i, name := range files {
				targets[i].inputs[targets[i].name] = name
			}
		default:
			v, ok := valueOf(j.Values, key)
			if !ok {
				continue
			}
			plain, err := scalar(v)
			if err != nil {
				return wrong("bind: %s: %w", key, err)
			}
			set(targets, plain)
		}
	}
	return nil
}

func set(targets []target, v any) {
	for _, t := range targets {
		t.inputs[t.name] = v
	}
}

// valueOf finds what a key of bind stands for: a field, or a side of a size.
func valueOf(values map[string]any, key string) (any, bool) {
	if v, ok := values[key]; ok {
		return v, true
	}
	field, side, _ := strings.Cut(key, ".")
	pair, ok := values[field].(map[string]any)
	if !ok {
		return nil, false
	}
	v, ok := pair[side]
	return v, ok
}

// scalar lets single values pass. A list would be read as a link to another
// node, and an object can hold one: nobody but the operator draws the graph.
func scalar(v any) (any, error) {
	switch v := v.(type) {
	case string, bool, int64:
		return v, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, errors.New("no number")
		}
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v), nil
		}
		return v, nil
	}
	return nil, fmt.Errorf("a %T cannot be the value of an input", v)
}

// inOrder sorts node ids as people count: 9 before 10, numbers before names.
func inOrder(ids []string) []string {
	return slices.SortedFunc(slices.Values(ids), func(a, b string) int {
		x, errX := strconv.ParseUint(a, 10, 64)
		y, errY := strconv.ParseUint(b, 10, 64)
		switch {
		case errX == nil && errY == nil:
			return cmp.Or(cmp.Compare(x, y), strings.Compare(a, b))
		case errX == nil:
			return -1
		case errY == nil:
			return 1
		}
		return strings.Compare(a, b)
	})
}
