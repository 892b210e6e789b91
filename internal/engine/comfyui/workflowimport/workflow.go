package workflowimport

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"atelier/internal/engine/comfyui/nodegraph"
)

// workflow is a graph in API format, with the server's descriptions of the
// classes of its nodes.
type workflow struct {
	nodes   map[string]graphNode
	classes map[string]nodeClass
	order   []string        // ids of the nodes, sorted
	live    map[string]bool // nodes that results depend on
	source  []byte          // the file itself, if it is in API format
	changed bool            // the graph differs from the source
}

func newWorkflow(nodes map[string]graphNode, classes map[string]nodeClass) *workflow {
	w := &workflow{nodes: nodes, classes: classes}
	w.order = nodegraph.SortIDs(slices.Collect(maps.Keys(nodes)))
	w.live = w.findLive()
	return w
}

// inputRef refers to an input of a node.
type inputRef struct {
	id   string // id of the node
	name string
}

// String returns the reference in the form node.input, as in manifests.
func (r inputRef) String() string { return r.id + "." + r.name }

// classOf returns the class of a node.
func (w *workflow) classOf(id string) nodeClass { return w.classes[w.nodes[id].Class] }

// titleOf returns the title of a node if the workflow's author changed it,
// otherwise "".
func (w *workflow) titleOf(id string) string { return w.classOf(id).titleOf(w.nodes[id]) }

// specOf returns the description of an input, including inputs that a dynamic
// choice or a growing list has added to the node.
func (w *workflow) specOf(ref inputRef) inputSpec {
	return w.specIn(ref.id, ref.name, func(name string) inputSpec { return w.classOf(ref.id).inputSpecOf(name) }, "")
}

// specIn returns the description of the input called name. lookUp returns the
// descriptions of the inputs of the node or of a dynamic choice. prefix is the
// part of the input names that lookUp leaves out.
func (w *workflow) specIn(id, name string, lookUp func(name string) inputSpec, prefix string) inputSpec {
	if s := lookUp(name); s.kind != "" {
		return s
	}
	for at := range len(name) {
		if name[at] != '.' {
			continue
		}
		s := lookUp(name[:at])
		further := name[at+1:]
		switch s.kind {
		case dynamicCombo:
			choice, ok := s.choiceNamed(w.nodes[id].Inputs[prefix+name[:at]])
			if !ok {
				return inputSpec{}
			}
			return w.specIn(id, further, func(name string) inputSpec {
				if s, ok := choice.Inputs.Required.byName[name]; ok {
					return s
				}
				return choice.Inputs.Optional.byName[name]
			}, prefix+name[:at+1])
		case autogrow:
			return elementSpec(s)
		}
	}
	return inputSpec{}
}

// elementSpec returns the description of the elements of a growing list of
// inputs.
func elementSpec(s inputSpec) inputSpec {
	var template struct {
		Input struct {
			Required inputSpecs `json:"required"`
			Optional inputSpecs `json:"optional"`
		} `json:"input"`
	}
	_ = json.Unmarshal(s.about.TemplateHint, &template) // an input with an unknown template is a slot for links
	for _, specs := range []inputSpecs{template.Input.Required, template.Input.Optional} {
		for _, name := range specs.names {
			return specs.byName[name]
		}
	}
	return inputSpec{}
}

// inputNames returns the names of a node's inputs in the order of its class;
// inputs that the class does not have follow in alphabetical order.
func (w *workflow) inputNames(id string) []string {
	c := w.classOf(id)
	order := slices.Concat(c.Input.Required.orderedNames(c.InputOrder.Required), c.Input.Optional.orderedNames(c.InputOrder.Optional))
	var all []string
	for _, name := range slices.Concat(order, slices.Sorted(maps.Keys(w.nodes[id].Inputs))) {
		if _, has := w.nodes[id].Inputs[name]; has && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// literalOf returns the value of an input if it is not a link but text, a
// number or a boolean.
func (w *workflow) literalOf(ref inputRef) (any, bool) {
	v, ok := w.nodes[ref.id].Inputs[ref.name]
	switch v.(type) {
	case string, bool, json.Number:
		return v, ok
	}
	return nil, false
}

// linkOf returns the link of an input to another node of the workflow.
func (w *workflow) linkOf(ref inputRef) (link, bool) {
	l, ok := asLink(w.nodes[ref.id].Inputs[ref.name])
	if _, exists := w.nodes[l.from]; !exists {
		return link{}, false
	}
	return l, ok
}

// findLive returns the nodes that a node with results depends on, directly or
// indirectly. The server never runs other nodes.
func (w *workflow) findLive() map[string]bool {
	live := map[string]bool{}
	var open []string
	for _, id := range w.order {
		if w.classOf(id).OutputNode {
			open = append(open, id)
		}
	}
	for len(open) > 0 {
		id := open[len(open)-1]
		open = open[:len(open)-1]
		if live[id] {
			continue
		}
		live[id] = true
		for name := range w.nodes[id].Inputs {
			if l, ok := w.linkOf(inputRef{id, name}); ok {
				open = append(open, l.from)
			}
		}
	}
	return live
}

// eachInput calls the function do for every input of a live node that has one
// of the names and accepts values of one of the given kinds. from is the input
// that determines the value v; it belongs to the node or to a primitive node.
func (w *workflow) eachInput(kinds []string, do func(ref, from inputRef, v any, s inputSpec), names ...string) {
	for _, id := range w.order {
		if !w.live[id] {
			continue
		}
		for _, name := range w.inputNames(id) {
			ref := inputRef{id, name}
			s := w.specOf(ref)
			if !slices.Contains(names, lastPart(name)) || !slices.Contains(kinds, s.kind) {
				continue
			}
			if from, ok := w.followValue(ref); ok {
				v, _ := w.literalOf(from)
				do(ref, from, v, s)
			}
		}
	}
}

// encodeFile returns the workflow in API format. If the source file is in API
// format and nothing was changed, it returns the file unchanged.
func (w *workflow) encodeFile() ([]byte, error) {
	if w.source != nil && !w.changed {
		return w.source, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(w.nodes); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
