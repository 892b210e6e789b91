package workflowimport

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"atelier/internal/engine/backend"
)

// nodeClass is the server's description of a node class.
type nodeClass struct {
	Input struct {
		Required inputSpecs `json:"required"`
		Optional inputSpecs `json:"optional"`
	} `json:"input"`
	// InputOrder has the names of the inputs in their order. Older servers omit
	// it; then the order of the JSON keys is used.
	InputOrder struct {
		Required []string `json:"required"`
		Optional []string `json:"optional"`
	} `json:"input_order"`
	Output      []json.RawMessage `json:"output"` // types of the outputs; for a choice, the list of its options
	OutputName  []any             `json:"output_name"`
	OutputNode  bool              `json:"output_node"` // the server runs such nodes and the nodes that they depend on
	DisplayName string            `json:"display_name"`
}

// inputSpecs are descriptions of inputs by name, with the order of the JSON
// keys.
type inputSpecs struct {
	names  []string
	byName map[string]inputSpec
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *inputSpecs) UnmarshalJSON(raw []byte) error {
	s.byName = map[string]inputSpec{}
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil // a custom node may have an invalid description; the node then has no known inputs
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := t.(string)
		var spec inputSpec
		if err := d.Decode(&spec); err != nil {
			return err
		}
		if _, twice := s.byName[name]; !twice {
			s.names = append(s.names, name)
		}
		s.byName[name] = spec
	}
	return nil
}

// orderedNames returns the names of the inputs, first the names in the list
// order, then all other names.
func (s inputSpecs) orderedNames(order []string) []string {
	var all []string
	for _, name := range slices.Concat(order, s.names) {
		if _, known := s.byName[name]; known && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// inputSpecOf returns the description of an input. It returns the zero value
// if the input is unknown.
func (c nodeClass) inputSpecOf(input string) inputSpec {
	if s, ok := c.Input.Required.byName[input]; ok {
		return s
	}
	return c.Input.Optional.byName[input]
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
	if json.Unmarshal(c.Output[slot], &kind) != nil {
		return combo // the type of a choice is the list of its options
	}
	return kind
}

func (c nodeClass) outputName(slot int) string {
	if slot < 0 || slot >= len(c.OutputName) {
		return ""
	}
	name, _ := c.OutputName[slot].(string)
	return strings.ToLower(name)
}

// inputSpec describes an input of a node. Its JSON is [type, {…}]. For a
// choice, older servers have the list of options instead of the type.
type inputSpec struct {
	kind    string // INT, FLOAT, STRING, BOOLEAN, COMBO, or the type of linked values, such as LATENT
	options []any
	// choices are the options of a dynamic choice, each with further inputs
	// that nodes with that option have. In a graph, the names of these inputs
	// begin with the name of the choice and a dot.
	choices []dynamicChoice
	about   struct {
		Options      []any           `json:"options"`
		Default      any             `json:"default"`
		Min          *json.Number    `json:"min"`
		Max          *json.Number    `json:"max"`
		Step         *json.Number    `json:"step"`
		Multiline    bool            `json:"multiline"`
		ImageUpload  bool            `json:"image_upload"`
		VideoUpload  bool            `json:"video_upload"`
		AudioUpload  bool            `json:"audio_upload"`
		FileUpload   bool            `json:"file_upload"`
		ForceInput   bool            `json:"forceInput"`
		WidgetType   string          `json:"widgetType"`
		Control      any             `json:"control_after_generate"`
		Remote       json.RawMessage `json:"remote"` // the front end fetches the options from elsewhere
		TemplateHint json.RawMessage `json:"template"`
	}
}

// dynamicChoice is an option of a dynamic choice, with its further inputs.
type dynamicChoice struct {
	Key    string `json:"key"`
	Inputs struct {
		Required inputSpecs `json:"required"`
		Optional inputSpecs `json:"optional"`
	} `json:"inputs"`
}

// Input types that are handled specially.
const (
	combo        = "COMBO"
	dynamicCombo = "COMFY_DYNAMICCOMBO_V3"
	autogrow     = "COMFY_AUTOGROW_V3"  // a list of inputs that grows as needed
	matchType    = "COMFY_MATCHTYPE_V3" // any type, but the same type as an output
)

// UnmarshalJSON implements json.Unmarshaler. It ignores unknown parts, because
// the description of a custom node may have any form. An input that is not
// understood keeps its value in the workflow.
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
	if s.kind == dynamicCombo && len(parts) > 1 {
		var dynamic struct {
			Options []dynamicChoice `json:"options"`
		}
		_ = decodeJSON(parts[1], &dynamic)
		s.choices = dynamic.Options
		for _, c := range dynamic.Options {
			s.options = append(s.options, c.Key)
		}
		s.about.Options = nil
	}
	if s.options == nil {
		s.options = s.about.Options
	}
	return nil
}

// isChoice reports whether the input's value is chosen from a list.
func (s inputSpec) isChoice() bool { return s.kind == combo || s.kind == dynamicCombo }

// isUpload reports whether the input's value is the name of an uploaded file.
func (s inputSpec) isUpload() bool {
	return s.about.ImageUpload || s.about.VideoUpload || s.about.AudioUpload || s.about.FileUpload
}

// choiceNamed returns the option of a dynamic choice with the given key.
func (s inputSpec) choiceNamed(key any) (dynamicChoice, bool) {
	at := slices.IndexFunc(s.choices, func(c dynamicChoice) bool { return any(c.Key) == key })
	if at < 0 {
		return dynamicChoice{}, false
	}
	return s.choices[at], true
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

// missingClass is a node class that the server does not have.
type missingClass struct {
	name string
	pack string // the custom node pack that contains the class, if the workflow names it
}

// refuseMissing returns an error that names the classes that the server does
// not have.
func refuseMissing(missing []missingClass) error {
	var names []string
	for _, m := range missing {
		name := m.name
		if m.pack != "" {
			name += " (custom node pack " + m.pack + ")"
		}
		names = append(names, truncateText(singleLine(name), 160))
	}
	const most = 20
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[:most]
	}
	return fmt.Errorf("the server does not have these nodes of the workflow: %s%s; install the custom nodes or update the server, then import again",
		strings.Join(names, ", "), more)
}

// fetchClasses fetches the server's descriptions of node classes. Classes that
// the server does not have are absent in the result.
func (fetch FetchJSON) fetchClasses(ctx context.Context, names []string) (map[string]nodeClass, error) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if len(names) > maxClasses {
		return nil, fmt.Errorf("the workflow has nodes of %d classes; at most %d are supported", len(names), maxClasses)
	}
	all := map[string]nodeClass{}
	for _, name := range names {
		var answer map[string]nodeClass
		if err := fetch(ctx, "/object_info/"+url.PathEscape(name), &answer); err != nil {
			return nil, backend.CallFailure(ctx, fmt.Errorf("fetch node class %s: %w", name, err))
		}
		if c, ok := answer[name]; ok {
			all[name] = c
		}
	}
	return all, nil
}

// titleOf returns the title of a node if the workflow's author changed it,
// otherwise "".
func (c nodeClass) titleOf(n graphNode) string {
	if n.Meta == nil {
		return ""
	}
	title := strings.TrimSpace(singleLine(n.Meta.Title))
	if title == n.Class || title == cmp.Or(c.DisplayName, n.Class) {
		return ""
	}
	return truncateText(title, 60)
}
