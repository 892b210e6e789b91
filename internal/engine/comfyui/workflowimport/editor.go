package workflowimport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Modes of nodes in the format of the editor.
const (
	modeMuted    = 2 // the node does not run and has no outputs
	modeBypassed = 4 // the node passes its inputs on to outputs of the same type
)

// editorNode is a node in the format of the editor.
type editorNode struct {
	ID         nodeID                     `json:"id"`
	Type       string                     `json:"type"`
	Mode       int                        `json:"mode"`
	Title      string                     `json:"title"`
	Inputs     []editorInput              `json:"inputs"`
	Outputs    []editorOutput             `json:"outputs"`
	Values     json.RawMessage            `json:"widgets_values"`
	Named      map[string]any             `json:"widgets_values_named"`
	Properties map[string]json.RawMessage `json:"properties"`
}

type editorInput struct {
	Name   string  `json:"name"`
	Type   any     `json:"type"`
	Link   *nodeID `json:"link"`
	Widget *struct {
		Name string `json:"name"`
	} `json:"widget"`
}

type editorOutput struct {
	Name  string   `json:"name"`
	Type  any      `json:"type"`
	Links []nodeID `json:"links"`
}

// nodeID is the id of a node or link, which is a number or a string in JSON.
type nodeID string

// UnmarshalJSON implements json.Unmarshaler.
func (i *nodeID) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*i = nodeID(text)
		return nil
	}
	var number json.Number
	if err := decodeJSON(raw, &number); err != nil {
		return err
	}
	*i = nodeID(number.String())
	return nil
}

// editorLink is a connection between two nodes. Its JSON is an object, or in
// version 0.4 the list [id, origin, slot, target, slot, type].
type editorLink struct {
	ID         nodeID `json:"id"`
	Origin     nodeID `json:"origin_id"`
	OriginSlot int    `json:"origin_slot"`
	Target     nodeID `json:"target_id"`
	TargetSlot int    `json:"target_slot"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *editorLink) UnmarshalJSON(raw []byte) error {
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
		type plain editorLink
		return json.Unmarshal(raw, (*plain)(l))
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	into := []any{&l.ID, &l.Origin, &l.OriginSlot, &l.Target, &l.TargetSlot}
	if len(parts) < len(into) {
		return errors.New("a link has too few parts")
	}
	for i, part := range into {
		if err := json.Unmarshal(parts[i], part); err != nil {
			return err
		}
	}
	return nil
}

// Default ids of the pseudo-nodes that represent a subgraph's inputs and
// outputs. A subgraph may define other ids.
const (
	subgraphInputs  nodeID = "-10"
	subgraphOutputs nodeID = "-20"
)

// editorGraph is a workflow in the format of the editor, or a subgraph of one.
type editorGraph struct {
	ID    string        `json:"id"`
	Name  string        `json:"name"`
	Nodes []*editorNode `json:"nodes"`
	// Links is a list; an object with the links by id is accepted too.
	Links       editorLinks   `json:"links"`
	Inputs      []editorInput `json:"inputs"`  // inputs of a subgraph
	Outputs     []editorInput `json:"outputs"` // outputs of a subgraph
	Definitions struct {
		Subgraphs []*editorGraph `json:"subgraphs"`
	} `json:"definitions"`
	InputNode  *struct{ ID nodeID } `json:"inputNode"`
	OutputNode *struct{ ID nodeID } `json:"outputNode"`
	Extra      struct {
		GroupNodes map[string]json.RawMessage `json:"groupNodes"`
		Linear     *struct {
			Inputs  []json.RawMessage `json:"inputs"`
			Outputs []json.RawMessage `json:"outputs"`
		} `json:"linearData"`
	} `json:"extra"`

	byID map[nodeID]*editorNode
	link map[nodeID]editorLink
}

type editorLinks []editorLink

// UnmarshalJSON implements json.Unmarshaler.
func (l *editorLinks) UnmarshalJSON(raw []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		var byID map[string]editorLink
		if err := json.Unmarshal(raw, &byID); err != nil {
			return err
		}
		*l = slices.Collect(maps.Values(byID))
		return nil
	}
	var list []*editorLink // an entry can be null
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	for _, one := range list {
		if one != nil {
			*l = append(*l, *one)
		}
	}
	return nil
}

// index prepares a graph for look-ups by id.
func (g *editorGraph) index() {
	g.byID = map[nodeID]*editorNode{}
	g.link = map[nodeID]editorLink{}
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n *editorNode) bool { return n == nil || n.ID == "" || strings.Contains(string(n.ID), ".") })
	for _, n := range g.Nodes {
		g.byID[n.ID] = n
	}
	for _, l := range g.Links {
		g.link[l.ID] = l
	}
}

func (g *editorGraph) inputsID() nodeID {
	if g.InputNode != nil && g.InputNode.ID != "" {
		return g.InputNode.ID
	}
	return subgraphInputs
}

func (g *editorGraph) outputsID() nodeID {
	if g.OutputNode != nil && g.OutputNode.ID != "" {
		return g.OutputNode.ID
	}
	return subgraphOutputs
}

// editorWorkflow is a workflow in the format of the editor with all its
// subgraphs by id.
type editorWorkflow struct {
	root      *editorGraph
	subgraphs map[string]*editorGraph
}

// maxDepth is the maximum depth of subgraphs in subgraphs.
const maxDepth = 16

// parseEditorWorkflow parses a workflow in the format of the editor.
func parseEditorWorkflow(text []byte) (*editorWorkflow, error) {
	var root editorGraph
	if err := decodeJSON(text, &root); err != nil {
		return nil, fmt.Errorf("the workflow is not valid in the format of the editor: %w", err)
	}
	w := &editorWorkflow{root: &root, subgraphs: map[string]*editorGraph{}}
	if err := w.addSubgraphs(&root, 0); err != nil {
		return nil, err
	}
	w.expandGroups()
	count := 0
	links := 0
	for _, g := range append(slices.Collect(maps.Values(w.subgraphs)), &root) {
		count += len(g.Nodes)
		links += len(g.Links)
	}
	switch {
	case links > maxLinks:
		return nil, fmt.Errorf("the workflow has %d links; at most %d are supported", links, maxLinks)
	case count > maxNodes:
		return nil, fmt.Errorf("the workflow has %d nodes; at most %d are supported", count, maxNodes)
	case len(root.Nodes) == 0:
		return nil, errors.New("the workflow has no nodes")
	}
	return w, nil
}

func (w *editorWorkflow) addSubgraphs(g *editorGraph, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("the workflow has subgraphs in more than %d levels", maxDepth)
	}
	g.index()
	for _, sub := range g.Definitions.Subgraphs {
		if sub == nil || sub.ID == "" || w.subgraphs[sub.ID] != nil {
			continue
		}
		w.subgraphs[sub.ID] = sub
		if err := w.addSubgraphs(sub, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// classNames returns the types of all nodes that are not subgraphs and not
// part of the editor itself.
func (w *editorWorkflow) classNames() []string {
	var all []string
	for _, g := range append(slices.Collect(maps.Values(w.subgraphs)), w.root) {
		for _, n := range g.Nodes {
			if w.subgraphs[n.Type] == nil && !isEditorOnly(n.Type) {
				all = append(all, n.Type)
			}
		}
	}
	return all
}

// Types of nodes that exist in the editor only.
const (
	typeReroute   = "Reroute"
	typePrimitive = "PrimitiveNode"
	typeSet       = "SetNode" // KJNodes: gives a value a name
	typeGet       = "GetNode" // KJNodes: returns the value with a given name
)

func isEditorOnly(class string) bool {
	switch class {
	case typeReroute, typePrimitive, typeSet, typeGet, "Note", "MarkdownNote":
		return true
	}
	return false
}

// packOf returns the name of the custom node pack of a node, if the workflow
// names it.
func packOf(n *editorNode) string {
	for _, key := range []string{"cnr_id", "aux_id"} {
		var name string
		if json.Unmarshal(n.Properties[key], &name) == nil && name != "" && name != "comfy-core" {
			return name
		}
	}
	return ""
}

// isConnected reports whether a node has a link in its graph.
func (g *editorGraph) isConnected(n *editorNode) bool {
	for _, l := range g.Links {
		if l.Origin == n.ID || l.Target == n.ID {
			return true
		}
	}
	return false
}

// typeName returns the type of a slot. Slots of any type have the type *.
func typeName(t any) string {
	if name, ok := t.(string); ok && name != "" {
		return name
	}
	return "*"
}

// slotsMatch reports whether a slot of one type accepts a value of another
// type. If a slot has several types, they are separated by commas.
func slotsMatch(a, b string) bool {
	if a == "*" || b == "*" {
		return true
	}
	for _, one := range strings.Split(a, ",") {
		if slices.Contains(strings.Split(b, ","), one) {
			return true
		}
	}
	return false
}
