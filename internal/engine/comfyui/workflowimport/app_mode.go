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
	inputs  []place
	outputs []string
}

// readAppMode returns the App mode of a workflow, or nil if the author chose
// none. places are the inputs that the widgets of the editor set.
func readAppMode(g *editorGraph, nodes map[string]graphNode, places map[string][]string) *appMode {
	if g.Extra.Linear == nil || len(g.Extra.Linear.Inputs) == 0 && len(g.Extra.Linear.Outputs) == 0 {
		return nil
	}
	const most = 500 // inputs
	m := &appMode{}
	for _, raw := range g.Extra.Linear.Inputs[:min(len(g.Extra.Linear.Inputs), most)] {
		var parts []json.RawMessage
		var id nodeID
		var widget string
		if json.Unmarshal(raw, &parts) != nil || len(parts) < 2 || json.Unmarshal(parts[0], &id) != nil || json.Unmarshal(parts[1], &widget) != nil {
			continue
		}
		for _, p := range findWidget(string(id), widget, nodes, places) {
			if !slices.Contains(m.inputs, p) {
				m.inputs = append(m.inputs, p)
			}
		}
	}
	for _, raw := range g.Extra.Linear.Outputs[:min(len(g.Extra.Linear.Outputs), most)] {
		var id nodeID
		if json.Unmarshal(raw, &id) == nil {
			m.outputs = append(m.outputs, nodesAt(string(id), nodes)...)
		}
	}
	return m
}

// findWidget returns the inputs that a widget of the editor sets. The id is
// that of a node, or in newer versions graph:node:widget with escaped parts.
func findWidget(id, widget string, nodes map[string]graphNode, places map[string][]string) []place {
	if parts := strings.Split(id, ":"); len(parts) == 3 && strings.Contains(parts[0], "-") {
		node, errNode := url.PathUnescape(parts[1])
		name, errName := url.PathUnescape(parts[2])
		if errNode == nil && errName == nil {
			id = node
			widget = name
		}
	}
	var all []place
	for _, text := range places[id+"."+widget] {
		node, name, _ := strings.Cut(text, ".")
		all = append(all, place{node, name})
	}
	if len(all) > 0 {
		return all
	}
	for _, node := range nodesAt(id, nodes) {
		if _, has := nodes[node].Inputs[widget]; has {
			all = append(all, place{node, widget})
		}
	}
	if len(all) > 1 {
		return nil // several copies of a subgraph; the author's choice is ambiguous
	}
	return all
}

// nodesAt returns the ids of the node with the given id in the workflow or, if
// there is none, of the nodes with that id in its subgraphs.
func nodesAt(id string, nodes map[string]graphNode) []string {
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

// applyAppMode keeps only the fields that the author chose for App mode, in
// the author's order, and adds fields for chosen inputs without one.
func (d *manifestBuilder) applyAppMode() {
	m := d.app
	if m == nil {
		return
	}
	var order []string
	for _, p := range m.inputs {
		from, ok := d.followValue(p)
		if !ok {
			continue
		}
		if d.owner[from] == "" {
			d.addGeneric(p, from)
		}
		key, _, _ := strings.Cut(d.owner[from], ".")
		if key != "" && key != nodegraph.KeyResults && !slices.Contains(order, key) {
			order = append(order, key)
		}
	}
	if len(order) == 0 {
		if len(m.inputs) > 0 {
			d.note("The inputs that the author chose for App mode are not in the workflow; the form has the usual fields.")
		}
		return
	}
	d.note("The form has the inputs that the author chose for App mode.")
	for p, key := range maps.Clone(d.owner) {
		field, _, _ := strings.Cut(key, ".")
		if field == nodegraph.KeySeed || field == nodegraph.KeyResults || slices.Contains(order, field) {
			continue
		}
		delete(d.owner, p)
		delete(d.bind, key)
		d.leaveFixed(p, notChosen)
	}
	var fields []manifestdraft.Field
	for _, key := range order {
		at := slices.IndexFunc(d.fields, func(f manifestdraft.Field) bool { return f.Key == key })
		if at >= 0 {
			f := d.fields[at]
			f.Advanced = false
			fields = append(fields, f)
		}
	}
	d.fields = fields
}

// addGeneric adds a field for any input, by the server's description of it.
// from is the place of the input's value.
func (d *manifestBuilder) addGeneric(p, from place) {
	s := d.specOf(p)
	v, _ := d.literalOf(from)
	label := d.classOf(from.id).titleOf(d.nodes[from.id])
	if label == "" || lastPart(p.name) != "value" {
		label = manifestdraft.Label(lastPart(p.name))
	}
	base := d.keyFor(lastPart(p.name), "input")
	f := manifestdraft.Field{Label: label}
	switch s.kind {
	case "STRING":
		if isTechnical(p.name) {
			d.leaveFixed(from, "people must not choose names of files and the like")
			return
		}
		f.Type = "TEXT"
		if s.about.Multiline {
			f.Type = "TEXT_AREA"
		}
		text, _ := v.(string)
		f.Default = defaultText(text)
	case "BOOLEAN":
		f.Type = "BOOLEAN"
		f.Default = v
	case "INT", "FLOAT":
		d.addNumberField(numberField{
			base:  base,
			label: label,
			kind:  "NUM",
			spec:  s,
			limit: 10_000,
		}, from)
		return
	case combo:
		if kind, file := fileField(d.nodes[from.id].Class, from.name, s); kind != "" {
			base = kind
			f = file
			break
		}
		f.Type = "SINGLE_SELECT"
		f.Options = optionsOf(s, false)
		f.Default = plainValue(v)
		if !slices.ContainsFunc(f.Options, func(o manifestdraft.Option) bool { return o.Value == f.Default }) {
			d.leaveFixed(from, "the server's list does not have its value")
			return
		}
	default:
		d.leaveFixed(from, "it determines which other inputs its node has")
		return
	}
	d.addField(base, fmt.Sprint(from), []place{from}, func() manifestdraft.Field { return f })
}
