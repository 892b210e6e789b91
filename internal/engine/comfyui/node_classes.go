package comfyui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"atelier/internal/engine/backend"
)

// class is what the server says about a kind of node.
type class struct {
	Input struct {
		Required map[string]inputSpec `json:"required"`
		Optional map[string]inputSpec `json:"optional"`
	} `json:"input"`
	Output []json.RawMessage `json:"output"` // a type each; a list is a choice
}

// spec gives what an input takes, the zero one where it is not known.
func (c class) spec(input string) inputSpec {
	if s, ok := c.Input.Required[input]; ok {
		return s
	}
	return c.Input.Optional[input]
}

// makes tells whether an output of the node has this type.
func (c class) makes(kind string) bool {
	for i := range c.Output {
		if c.outputs(i) == kind {
			return true
		}
	}
	return false
}

func (c class) outputs(slot int) string {
	if slot < 0 || slot >= len(c.Output) {
		return ""
	}
	var kind string
	_ = json.Unmarshal(c.Output[slot], &kind) // a choice is no type that is asked for
	return kind
}

// inputSpec is what an input takes: [type, {…}], where the type of an older
// choice is the list of its options.
type inputSpec struct {
	kind    string // INT, FLOAT, STRING, BOOLEAN, COMBO, or what links carry
	options []any
	about   struct {
		Options     []any        `json:"options"`
		Min         *json.Number `json:"min"`
		Max         *json.Number `json:"max"`
		Step        *json.Number `json:"step"`
		Multiline   bool         `json:"multiline"`
		ImageUpload bool         `json:"image_upload"`
		VideoUpload bool         `json:"video_upload"`
		AudioUpload bool         `json:"audio_upload"`
	}
}

const combo = "COMBO"

// UnmarshalJSON takes what it knows: a custom node may say anything, and then
// its input is left alone.
func (s *inputSpec) UnmarshalJSON(raw []byte) error {
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil || len(parts) == 0 {
		return nil
	}
	if json.Unmarshal(parts[0], &s.kind) != nil {
		s.kind = combo
		_ = decode(parts[0], &s.options) // else it has none
	}
	if len(parts) > 1 {
		_ = decode(parts[1], &s.about)
	}
	if s.options == nil {
		s.options = s.about.Options
	}
	return nil
}

func decode(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(into)
}

// bounds gives the range and the step as numbers, nil for what is not said.
func (s inputSpec) bounds() (low, high, step *float64) {
	number := func(n *json.Number) *float64 {
		if n == nil {
			return nil
		}
		f, err := n.Float64()
		if err != nil {
			return nil
		}
		return &f
	}
	return number(s.about.Min), number(s.about.Max), number(s.about.Step)
}

// node is one of a graph that somebody wants a manifest for.
type node struct {
	Class  string         `json:"class_type"`
	Inputs map[string]any `json:"inputs"`
}

// link is an input that comes from another node.
type link struct {
	from string
	slot int
}

// linked tells whether an input is a link.
func linked(v any) (link, bool) {
	list, ok := v.([]any)
	if !ok || len(list) != 2 {
		return link{}, false
	}
	from, ok := list[0].(string)
	number, isNumber := list[1].(json.Number)
	if !ok || !isNumber {
		return link{}, false
	}
	slot, err := number.Int64()
	return link{from, int(slot)}, err == nil
}

// readGraph takes a workflow in API format.
func readGraph(text []byte) (map[string]node, error) {
	var raw map[string]json.RawMessage
	if err := decode(text, &raw); err != nil {
		return nil, fmt.Errorf("the workflow is not JSON: %w", err)
	}
	if list, ok := raw["nodes"]; ok && bytes.HasPrefix(bytes.TrimSpace(list), []byte("[")) {
		return nil, errors.New("the workflow is in the format of the editor; export it in API format (Workflow, Export (API))")
	}
	if len(raw) == 0 {
		return nil, errors.New("the workflow has no nodes")
	}
	all := map[string]node{}
	for id, text := range raw {
		var n node
		if decode(text, &n) != nil || n.Class == "" || n.Inputs == nil {
			return nil, fmt.Errorf("node %q has no class_type and inputs; export the workflow in API format (Workflow, Export (API))", id)
		}
		all[id] = n
	}
	return all, nil
}

// classes asks the server about every kind of node in a graph.
func (e *Engine) classes(ctx context.Context, nodes map[string]node) (map[string]class, error) {
	all := map[string]class{}
	for _, n := range nodes {
		if _, ok := all[n.Class]; ok {
			continue
		}
		var answer map[string]class
		short, cancel := e.server.WithTimeout(ctx)
		err := e.server.CallJSON(short, "GET", "/object_info/"+url.PathEscape(n.Class), nil, &answer)
		cancel()
		if err != nil {
			return nil, backend.CallFailure(ctx, fmt.Errorf("ask about %s: %w", n.Class, err))
		}
		c, ok := answer[n.Class]
		if !ok {
			return nil, fmt.Errorf("the server does not know the node %s; are its custom nodes installed?", n.Class)
		}
		all[n.Class] = c
	}
	return all, nil
}
