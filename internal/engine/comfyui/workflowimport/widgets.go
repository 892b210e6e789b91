package workflowimport

import (
	"encoding/json"
	"slices"
	"strings"
)

// widgetTypes are the types of inputs for which the editor shows a widget. All
// other inputs are slots for links.
var widgetTypes = []string{
	"INT", "FLOAT", "STRING", "BOOLEAN", combo, dynamicCombo,
	"COLOR", "COLORS", "MARKDOWN", "TEXTAREA", "BOUNDING_BOX", "BOUNDING_BOXES", "CURVE", "RANGE", "PAINTER",
}

// isWidget reports whether the editor shows a widget for an input.
func isWidget(s inputSpec) bool {
	if s.about.ForceInput {
		return false
	}
	return slices.Contains(widgetTypes, s.kind) || slices.Contains(widgetTypes, s.about.WidgetType)
}

// widget is an input of a node that has a widget in the editor.
type widget struct {
	name string
	spec inputSpec
}

// controls are the values of the extra widget after a seed, which chooses how
// the seed changes after a run.
var controls = []any{"fixed", "increment", "decrement", "randomize", "increment-wrap"}

// widgetInputs returns the values of a node's widgets by input name. The second
// result is false if the saved values do not match the server's description of
// the node.
func widgetInputs(n *editorNode, class nodeClass) (map[string]any, bool) {
	var byName map[string]any
	if n.Named != nil {
		byName = n.Named
	} else {
		_ = decodeJSON(n.Values, &byName) // fails if the values are a list, as in most nodes
	}
	if byName != nil {
		return namedInputs(byName, class), true
	}
	var values []any
	_ = decodeJSON(n.Values, &values) // without values all inputs have the server's defaults
	r := &valueReader{
		node:   n,
		values: values,
		inputs: map[string]any{},
		fits:   true,
	}
	required := class.Input.Required.orderedNames(class.InputOrder.Required)
	upload := inputSpec{}
	for _, name := range required {
		spec := class.Input.Required.byName[name]
		if spec.isUpload() {
			upload = spec
		}
		r.readInput(name, spec)
	}
	optional := class.Input.Optional.orderedNames(class.InputOrder.Optional)
	if upload.isUpload() {
		r.skipUpload(optional, class)
	}
	for _, name := range optional {
		r.readInput(name, class.Input.Optional.byName[name])
	}
	return r.inputs, r.fits
}

// namedInputs returns the values of widgets that were saved by name. Some
// custom nodes have widgets that the server does not describe, so plain values
// without a description are kept too.
func namedInputs(values map[string]any, class nodeClass) map[string]any {
	inputs := map[string]any{}
	for name, v := range values {
		switch v.(type) {
		case string, bool, json.Number:
			inputs[name] = v
		case []any:
			if isWidget(class.inputSpecOf(name)) {
				inputs[name] = v
			}
		}
	}
	for _, name := range []string{"control_after_generate", "upload", "choose file to upload", "choose video to upload", "videopreview", "audioUI"} {
		delete(inputs, name)
	}
	for _, specs := range []inputSpecs{class.Input.Required, class.Input.Optional} {
		for name, spec := range specs.byName {
			if _, has := inputs[name]; !has && isWidget(spec) {
				if v := defaultOf(spec); v != nil {
					inputs[name] = v
				}
			}
		}
	}
	return inputs
}

// valueReader assigns the saved values of a node, which are in the order of
// its widgets, to the node's inputs.
type valueReader struct {
	node   *editorNode
	values []any
	next   int
	inputs map[string]any
	fits   bool
}

// readInput reads the value of an input. If the input is a dynamic choice, it
// also reads the further inputs that the chosen option has.
func (r *valueReader) readInput(name string, spec inputSpec) {
	if spec.kind == autogrow {
		r.readAutogrow(name)
		return
	}
	if !isWidget(spec) {
		return
	}
	v, ok := r.nextValue(widget{name, spec})
	if !ok {
		return
	}
	r.inputs[name] = v
	choice, ok := spec.choiceNamed(v)
	if !ok {
		return
	}
	for _, specs := range []inputSpecs{choice.Inputs.Required, choice.Inputs.Optional} {
		for _, further := range specs.names {
			r.readInput(name+"."+further, specs.byName[further])
		}
	}
}

// readAutogrow reads the values of a list of inputs that grows as needed. The
// node lists the inputs that have a widget.
func (r *valueReader) readAutogrow(name string) {
	for _, in := range r.node.Inputs {
		if strings.HasPrefix(in.Name, name+".") && in.Widget != nil {
			if v, ok := r.nextValue(widget{in.Name, inputSpec{kind: typeName(in.Type)}}); ok {
				r.inputs[in.Name] = v
			}
		}
	}
}

// nextValue returns the saved value of a widget, or the server's default if
// there is none.
func (r *valueReader) nextValue(w widget) (any, bool) {
	if r.next >= len(r.values) {
		v := defaultOf(w.spec)
		return v, v != nil
	}
	at := r.next
	if !valueFits(w.spec, r.values[at]) {
		for at < len(r.values) && at <= r.next+1 && !valueFits(w.spec, r.values[at]) {
			at++
		}
		r.fits = false
		if at >= len(r.values) || !valueFits(w.spec, r.values[at]) {
			r.next++
			v := defaultOf(w.spec)
			return v, v != nil
		}
	}
	v := r.values[at]
	r.next = at + 1
	r.skipControl(w)
	if v == nil {
		v = defaultOf(w.spec)
	}
	return v, v != nil
}

// skipControl skips the value of the widget that chooses how a seed changes
// after a run. If the seed is a choice, a filter for the options follows and is
// skipped too.
func (r *valueReader) skipControl(w widget) {
	controlled := w.spec.about.Control != nil && w.spec.about.Control != false
	if w.spec.about.Control == nil {
		controlled = w.spec.kind == "INT" && (w.name == "seed" || w.name == "noise_seed")
	}
	if !controlled || r.next >= len(r.values) || !slices.Contains(controls, r.values[r.next]) {
		return
	}
	r.next++
	if w.spec.isChoice() && r.next < len(r.values) {
		if _, isText := r.values[r.next].(string); isText {
			r.next++
		}
	}
}

// skipUpload skips the values of the buttons and players that the editor adds
// to nodes for uploads, after the required inputs. optional are the names of
// the inputs that follow.
func (r *valueReader) skipUpload(optional []string, class nodeClass) {
	following := 0
	for _, name := range optional {
		if isWidget(class.Input.Optional.byName[name]) {
			following++
		}
	}
	r.next = max(r.next, len(r.values)-following)
}

// valueFits reports whether a saved value can be the value of an input.
func valueFits(s inputSpec, v any) bool {
	if v == nil {
		return true
	}
	switch s.kind {
	case "INT", "FLOAT":
		_, ok := v.(json.Number)
		return ok
	case "BOOLEAN":
		_, ok := v.(bool)
		return ok
	case "STRING", "TEXTAREA", "MARKDOWN":
		_, ok := v.(string)
		return ok
	case combo, dynamicCombo:
		_, isObject := v.(map[string]any)
		return !isObject
	}
	return true
}

// defaultOf returns the editor's value for an input without a saved value.
func defaultOf(s inputSpec) any {
	if s.about.Default != nil {
		return s.about.Default
	}
	switch s.kind {
	case combo, dynamicCombo:
		if len(s.options) > 0 {
			return s.options[0]
		}
	case "INT", "FLOAT":
		if s.about.Min != nil {
			return *s.about.Min
		}
		return json.Number("0")
	case "BOOLEAN":
		return false
	case "STRING":
		return ""
	}
	return nil
}
