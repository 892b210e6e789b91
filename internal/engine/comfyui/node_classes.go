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

// nodeClass is the server's description of a node class.
type nodeClass struct {
	Input struct {
		Required map[string]inputSpec `json:"required"`
		Optional map[string]inputSpec `json:"optional"`
	} `json:"input"`
	Output []json.RawMessage `json:"output"` // types of the outputs; for a choice, the list of its options
}

// inputSpecOf returns the description of an input. It returns the zero value
// if the input is unknown.
func (c nodeClass) inputSpecOf(input string) inputSpec {
	if s, ok := c.Input.Required[input]; ok {
		return s
	}
	return c.Input.Optional[input]
}

// hasOutput reports whether nodes of the class have an output of the given
// type.
func (c nodeClass) hasOutput(kind string) bool {
	for i := range c.Output {
		if c.outputType(i) == kind {
			return true
		}
	}
	return false
}

func (c nodeClass) outputType(slot int) string {
	if slot < 0 || slot >= len(c.Output) {
		return ""
	}
	var kind string
	_ = json.Unmarshal(c.Output[slot], &kind) // fails for a choice, whose type is a list; no caller needs that type
	return kind
}

// inputSpec describes an input of a node. Its JSON is [type, {…}]. For a
// choice, older servers have the list of options instead of the type.
type inputSpec struct {
	kind    string // INT, FLOAT, STRING, BOOLEAN, COMBO, or the type of linked values, such as LATENT
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

// UnmarshalJSON implements json.Unmarshaler. It ignores unknown parts, because
// a custom node may have any description; such an input then stays as it is in
// the workflow.
func (s *inputSpec) UnmarshalJSON(raw []byte) error {
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil || len(parts) == 0 {
		return nil
	}
	if json.Unmarshal(parts[0], &s.kind) != nil {
		s.kind = combo
		_ = decodeJSON(parts[0], &s.options) // if the list is invalid, the input has no options
	}
	if len(parts) > 1 {
		_ = decodeJSON(parts[1], &s.about)
	}
	if s.options == nil {
		s.options = s.about.Options
	}
	return nil
}

func decodeJSON(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(into)
}

// numberBounds returns the minimum, the maximum and the step of a numeric
// input. Each is nil if it is not specified.
func (s inputSpec) numberBounds() (low, high, step *float64) {
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

// graphNode is a node of a workflow for which a manifest is drafted.
type graphNode struct {
	Class  string         `json:"class_type"`
	Inputs map[string]any `json:"inputs"`
}

// link is the connection of an input to an output slot of another node.
type link struct {
	from string
	slot int
}

// asLink returns the value of an input as a link. It returns false if the
// input is not linked to another node.
func asLink(v any) (link, bool) {
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

// readGraph parses a workflow in ComfyUI's API format. It returns the nodes by
// id.
func readGraph(text []byte) (map[string]graphNode, error) {
	var raw map[string]json.RawMessage
	if err := decodeJSON(text, &raw); err != nil {
		return nil, fmt.Errorf("the workflow is not JSON: %w", err)
	}
	if list, ok := raw["nodes"]; ok && bytes.HasPrefix(bytes.TrimSpace(list), []byte("[")) {
		return nil, errors.New("the workflow is in the format of the editor; export it in API format (Workflow, Export (API))")
	}
	if len(raw) == 0 {
		return nil, errors.New("the workflow has no nodes")
	}
	all := map[string]graphNode{}
	for id, text := range raw {
		var n graphNode
		if decodeJSON(text, &n) != nil || n.Class == "" || n.Inputs == nil {
			return nil, fmt.Errorf("node %q has no class_type and inputs; export the workflow in API format (Workflow, Export (API))", id)
		}
		all[id] = n
	}
	return all, nil
}

// fetchClasses fetches the server's descriptions of all node classes in a
// workflow, by class name.
func (e *Engine) fetchClasses(ctx context.Context, nodes map[string]graphNode) (map[string]nodeClass, error) {
	all := map[string]nodeClass{}
	for _, n := range nodes {
		if _, ok := all[n.Class]; ok {
			continue
		}
		var answer map[string]nodeClass
		short, cancel := e.server.WithTimeout(ctx)
		err := e.server.CallJSON(short, "GET", "/object_info/"+url.PathEscape(n.Class), nil, &answer)
		cancel()
		if err != nil {
			return nil, backend.CallFailure(ctx, fmt.Errorf("fetch node class %s: %w", n.Class, err))
		}
		c, ok := answer[n.Class]
		if !ok {
			return nil, fmt.Errorf("the server does not know the node %s; are its custom nodes installed?", n.Class)
		}
		all[n.Class] = c
	}
	return all, nil
}
