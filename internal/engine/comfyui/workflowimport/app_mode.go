package workflowimport

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"atelier/internal/engine/comfyui/nodegraph"
	"atelier/internal/engine/manifestdraft"
)

// appMode is the form that a workflow's author chose for the App mode of the
// editor: the inputs of its form, and the nodes whose results it shows.
type appMode struct {
	inputs  []inputRef
	outputs []string
}

// readAppMode returns the App mode of a workflow, or nil if the author chose
// none. targets are the inputs that the widgets of the editor set.
func readAppMode(g *editorGraph, nodes map[string]graphNode, targets map[inputRef][]inputRef) *appMode {
	if g.Extra.Linear == nil || len(g.Extra.Linear.Inputs) == 0 && len(g.Extra.Linear.Outputs) == 0 {
		return nil
	}
	const most = 500 // maximum number of inputs
	m := &appMode{}
	for _, raw := range g.Extra.Linear.Inputs[:min(len(g.Extra.Linear.Inputs), most)] {
		var parts []json.RawMessage
		var id nodeID
		var widget string
		if json.Unmarshal(raw, &parts) != nil || len(parts) < 2 || json.Unmarshal(parts[0], &id) != nil || json.Unmarshal(parts[1], &widget) != nil {
			continue
		}
		for _, ref := range findWidgetInputs(string(id), widget, nodes, targets) {
			if !slices.Contains(m.inputs, ref) {
				m.inputs = append(m.inputs, ref)
			}
		}
	}
	for _, raw := range g.Extra.Linear.Outputs[:min(len(g.Extra.Linear.Outputs), most)] {
		var id nodeID
		if json.Unmarshal(raw, &id) == nil {
			m.outputs = append(m.outputs, findNodes(string(id), nodes)...)
		}
	}
	return m
}

// findWidgetInputs returns the inputs that a widget of the editor sets. The id
// is the id of a node or, in newer versions, graph:node:widget with escaped
// parts.
func findWidgetInputs(id, widget string, nodes map[string]graphNode, targets map[inputRef][]inputRef) []inputRef {
	if parts := strings.Split(id, ":"); len(parts) == 3 && strings.Contains(parts[0], "-") {
		node, errNode := url.PathUnescape(parts[1])
		name, errName := url.PathUnescape(parts[2])
		if errNode == nil && errName == nil {
			id = node
			widget = name
		}
	}
	if all := targets[inputRef{id, widget}]; len(all) > 0 {
		return all
	}
	var all []inputRef
	for _, node := range findNodes(id, nodes) {
		if _, has := nodes[node].Inputs[widget]; has {
			all = append(all, inputRef{node, widget})
		}
	}
	if len(all) > 1 {
		return nil // several copies of a subgraph; the author's choice is ambiguous
	}
	return all
}

// findNodes returns the full ids of the nodes that have the given id: the node
// of the workflow itself or, if it has none, the nodes of its subgraphs.
func findNodes(id string, nodes map[string]graphNode) []string {
	if _, ok := nodes[id]; ok {
		return []string{id}
	}
	var all []string
	for _, at := range nodegraph.SortIDs(slices.Collect(maps.Keys(nodes))) {
		if strings.HasSuffix(at, ":"+id) || strings.HasPrefix(at, id+":") {
			all = append(all, at)
		}
	}
	return all
}

const notChosen = "the author did not choose it for App mode"

// applyAppMode keeps only the fields that the author chose for App mode, in the
// author's order, and adds fields for chosen inputs that have none yet. If the
// author chose no inputs, the form stays as it is.
func (in *importedWorkflow) applyAppMode(f *form) {
	if in.app == nil {
		return
	}
	var order []string
	for _, ref := range in.app.inputs {
		from, ok := in.workflow.followValue(ref)
		if !ok {
			continue
		}
		if !f.isBound(from) {
			addChosenInput(in.workflow, f, ref, from)
		}
		key := f.fieldOf(from)
		if key != "" && key != nodegraph.KeyResults && !slices.Contains(order, key) {
			order = append(order, key)
		}
	}
	if len(order) == 0 {
		if len(in.app.inputs) > 0 {
			in.report.addNote("The inputs that the author chose for App mode are not in the workflow; the form has the usual fields.")
		}
		return
	}
	in.report.addNote("The form has the inputs that the author chose for App mode.")
	f.keepFields(order, notChosen)
}

// addChosenInput adds a field for the input ref, based on the server's
// description of that input. from is the input that contains the value.
func addChosenInput(w *workflow, f *form, ref, from inputRef) {
	s := w.specOf(ref)
	v, _ := w.literalOf(from)
	label := w.titleOf(from.id)
	if label == "" || lastPart(ref.name) != "value" {
		label = manifestdraft.Label(lastPart(ref.name))
	}
	base := keyFor(lastPart(ref.name), "input")
	field := manifestdraft.Field{Label: label}
	switch s.kind {
	case "STRING":
		if isTechnical(ref.name) {
			f.leaveFixed(from, "people must not choose names of files and the like")
			return
		}
		field.Type = "TEXT"
		if s.about.Multiline {
			field.Type = "TEXT_AREA"
		}
		text, _ := v.(string)
		field.Default = defaultText(text)
	case "BOOLEAN":
		field.Type = "BOOLEAN"
		field.Default = v
	case "INT", "FLOAT":
		numbers := numberFields{w, f}
		numbers.addNumberField(numberField{
			base:  base,
			label: label,
			kind:  "NUM",
			spec:  s,
			limit: 10_000,
		}, from)
		return
	case combo:
		if kind, file := fileField(w.nodes[from.id].Class, from.name, s); kind != "" {
			base = kind
			field = file
			break
		}
		field.Type = "SINGLE_SELECT"
		field.Options = optionsOf(s, false)
		field.Default = plainValue(v)
		if !slices.ContainsFunc(field.Options, func(o manifestdraft.Option) bool { return o.Value == field.Default }) {
			f.leaveFixed(from, "the server's list does not have its value")
			return
		}
	default:
		f.leaveFixed(from, "it determines which other inputs its node has")
		return
	}
	f.addField(base, fmt.Sprint(from), []inputRef{from}, func() manifestdraft.Field { return field })
}
