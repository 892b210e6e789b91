package comfyui

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"atelier/internal/engine"
	"atelier/internal/engine/comfyui/nodegraph"
)

// graph is the engine.with section of a tool's manifest. Numbers in the
// workflow stay json.Number, because seeds can be as large as 2^64-1.
type graph struct {
	Workflow map[string]map[string]any `json:"workflow"`
	Bind     map[string][]string       `json:"bind"`
	Outputs  []string                  `json:"outputs"`

	targets  map[string][]target
	savers   map[string]bool   // ids of the nodes that may save results
	prefixes map[string]string // file name prefixes of the manifest, by node id
}

// target is an input of a node that a field is bound to.
type target struct {
	inputs map[string]any
	name   string
}

// parseGraph parses the engine.with section of a tool's manifest. It returns
// an error if the workflow or its bindings cannot work.
func parseGraph(with string) (*graph, error) {
	var g graph
	if err := engine.DecodeSetting(with, &g); err != nil {
		return nil, err
	}
	if len(g.Workflow) == 0 {
		return nil, misconfigured("workflow: is required")
	}
	g.targets = map[string][]target{}
	for id, n := range g.Workflow {
		class, _ := n["class_type"].(string)
		if _, ok := n["inputs"].(map[string]any); !ok || class == "" {
			return nil, misconfigured("node %s of the workflow is not in API format", id)
		}
	}
	for key, inputs := range g.Bind {
		for _, input := range inputs {
			id, name, ok := strings.Cut(input, ".")
			n, there := g.Workflow[id]
			if !ok || !there || name == "" {
				return nil, misconfigured("bind: %s: the workflow has no input %s", key, input)
			}
			g.targets[key] = append(g.targets[key], target{n["inputs"].(map[string]any), name})
		}
	}
	for _, id := range g.Outputs {
		if _, ok := g.Workflow[id]; !ok {
			return nil, misconfigured("outputs: the workflow has no node %s", id)
		}
	}
	g.savers = g.findSavers()
	g.prefixes = map[string]string{}
	for id, n := range g.Workflow {
		if prefix, ok := n["inputs"].(map[string]any)[prefixInput].(string); ok {
			g.prefixes[id] = prefix
		}
	}
	return &g, nil
}

// ManifestSpec describes the settings that a tool's manifest may have for this
// engine.
func ManifestSpec() engine.ManifestSpec {
	return engine.ManifestSpec{
		Setting: func() any { return &graph{} },
		Check: func(with string) error {
			_, err := parseGraph(with)
			return err
		},
	}
}

func misconfigured(format string, args ...any) error {
	return engine.ErrMisconfigured.WithCause(fmt.Errorf(format, args...))
}

// isBound reports whether a field key, or one of the keys seed and
// num_results, is bound to an input of the workflow.
func (g *graph) isBound(key string) bool { return len(g.targets[key]) > 0 }

// setInputs sets the bound inputs of the workflow for one prompt, and marks the
// saving nodes. names are the names of uploaded files by field key. Inputs
// without a value in the job keep the workflow's value.
func (g *graph) setInputs(j engine.Job, seed uint32, results int, names map[string][]string) error {
	for id, prefix := range g.prefixes { // undoes the prefixes of the previous prompt
		g.Workflow[id]["inputs"].(map[string]any)[prefixInput] = prefix
	}
	for key, targets := range g.targets {
		files, isFile := names[key]
		switch {
		case key == nodegraph.KeySeed:
			setTargets(targets, json.Number(strconv.FormatUint(uint64(seed), 10)))
		case key == nodegraph.KeyResults:
			setTargets(targets, json.Number(strconv.Itoa(results)))
		case isFile && len(files) == 1:
			setTargets(targets, files[0])
		case isFile && len(files) > len(targets):
			return engine.Fail(engine.Failed, fmt.Sprintf("This field accepts at most %d files.", len(targets))).WithCause(errors.New(key))
		case isFile:
			for i, name := range files {
				targets[i].inputs[targets[i].name] = name
			}
		default:
			v, ok := valueOf(j.Values, key)
			if !ok {
				continue
			}
			plain, err := asScalar(v)
			if err != nil {
				return misconfigured("bind: %s: %w", key, err)
			}
			setTargets(targets, plain)
		}
	}
	g.markSavers(newAttempt())
	return nil
}

func setTargets(targets []target, v any) {
	for _, t := range targets {
		t.inputs[t.name] = v
	}
}

// valueOf returns the job's value for a key of the bind setting: a field's
// key, or a size field's key followed by .width or .height.
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

// asScalar returns v as a single value that a workflow's input may have. It
// refuses lists and objects: the server would interpret a list as a link to
// another node, and only the operator may define the graph.
func asScalar(v any) (any, error) {
	switch v := v.(type) {
	case string, bool, int64:
		return v, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, errors.New("the value is infinite or not a number")
		}
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v), nil
		}
		return v, nil
	}
	return nil, fmt.Errorf("a value of type %T cannot be sent as an input", v)
}
