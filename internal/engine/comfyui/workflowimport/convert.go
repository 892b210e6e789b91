package workflowimport

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// convertedGraph is a workflow in API format that was converted from the
// format of the editor.
type convertedGraph struct {
	nodes map[string]graphNode
	// targets are the inputs that a widget of the editor sets, indexed by the
	// widget. A widget of a subgraph or a primitive node can set inputs of
	// several nodes.
	targets  map[inputRef][]inputRef
	warnings []string
	notes    []string
	missing  []missingClass
}

// converter converts a workflow from the format of the editor to API format,
// as the front end of ComfyUI does before it sends a workflow to the server.
type converter struct {
	*editorWorkflow
	convertedGraph
	classes map[string]nodeClass
	steps   int // links followed so far; limited, because a graph may be hostile
}

// scope is an instance of a graph: the workflow itself, or a subgraph that a
// node represents.
type scope struct {
	graph    *editorGraph
	parent   *scope
	instance *editorNode // node of the parent that represents this graph
	path     string      // prefix of the node ids, such as "57:"
	depth    int
	values   map[string]any            // values of the subgraph's own widgets, by input name
	inner    map[nodeID]map[string]any // values of widgets of inner nodes that the instance overrides
	children map[nodeID]*scope
}

// maxLinkSteps bounds the number of links that a conversion follows.
const maxLinkSteps = 1_000_000

var errLoop = errors.New("the links of the workflow form a loop, or a chain of too many nodes")

// convertWorkflow converts a workflow to API format. classes are the server's
// descriptions of its node classes.
func convertWorkflow(w *editorWorkflow, classes map[string]nodeClass) (convertedGraph, error) {
	c := &converter{editorWorkflow: w, classes: classes}
	c.nodes = map[string]graphNode{}
	c.targets = map[inputRef][]inputRef{}
	root := &scope{graph: w.root, children: map[nodeID]*scope{}}
	if err := c.openChildren(root); err != nil {
		return convertedGraph{}, err
	}
	if err := c.convertGraph(root); err != nil {
		return convertedGraph{}, err
	}
	for _, n := range c.nodes {
		for name, v := range n.Inputs {
			if l, ok := asLink(v); ok && c.nodes[l.from].Class == "" {
				delete(n.Inputs, name) // the linked node is muted or has no counterpart on the server
			}
		}
	}
	if len(c.nodes) == 0 && len(c.missing) == 0 {
		return convertedGraph{}, errors.New("the workflow has no nodes that the server runs")
	}
	return c.convertedGraph, nil
}

// openChildren creates the scopes of all subgraphs in a scope.
func (c *converter) openChildren(s *scope) error {
	for _, n := range s.graph.Nodes {
		sub := c.subgraphs[n.Type]
		if sub == nil || n.Mode == modeMuted || n.Mode == modeBypassed {
			continue
		}
		if s.depth >= maxDepth {
			return fmt.Errorf("the workflow has subgraphs in more than %d levels", maxDepth)
		}
		for outer := s; outer != nil; outer = outer.parent {
			if outer.graph == sub {
				return fmt.Errorf("the subgraph %s contains itself", truncateText(singleLine(cmp.Or(sub.Name, sub.ID)), 80))
			}
		}
		c.steps += len(sub.Nodes)
		if c.steps > maxNodes {
			return fmt.Errorf("the workflow has more than %d nodes with its subgraphs", maxNodes)
		}
		child := &scope{
			graph:    sub,
			parent:   s,
			instance: n,
			path:     s.path + string(n.ID) + ":",
			depth:    s.depth + 1,
			children: map[nodeID]*scope{},
		}
		c.readInstanceValues(child)
		s.children[n.ID] = child
		if err := c.openChildren(child); err != nil {
			return err
		}
	}
	return nil
}

// readInstanceValues reads the values that the instance of a subgraph has for
// the subgraph's widgets. Three versions of the format exist: values by name,
// values in the order of the list proxyWidgets, and values in the order of the
// subgraph's inputs.
func (c *converter) readInstanceValues(s *scope) {
	s.values = map[string]any{}
	s.inner = map[nodeID]map[string]any{}
	if s.instance.Named != nil {
		s.values = s.instance.Named
		return
	}
	var values []any
	if decodeJSON(s.instance.Values, &values) != nil || len(values) == 0 {
		return
	}
	var proxies [][]nodeID
	if json.Unmarshal(s.instance.Properties["proxyWidgets"], &proxies) == nil && len(proxies) > 0 {
		for i, p := range proxies {
			if len(p) < 2 || i >= len(values) || values[i] == nil {
				continue
			}
			name := string(p[1])
			switch input := c.inputFor(s, p[0], name); {
			case p[0] == "-1":
				s.values[name] = values[i]
			case input != "":
				s.values[input] = values[i]
			default:
				if s.inner[p[0]] == nil {
					s.inner[p[0]] = map[string]any{}
				}
				s.inner[p[0]][name] = values[i]
			}
		}
		return
	}
	next := 0
	for slot, input := range s.graph.Inputs {
		if !c.isWidgetSlot(s, slot) {
			continue
		}
		if next < len(values) && values[next] != nil {
			s.values[input.Name] = values[next]
		}
		next++
	}
}

// inputFor returns the name of the subgraph's input that is linked to a widget
// of an inner node, or "" if there is none.
func (c *converter) inputFor(s *scope, id nodeID, widget string) string {
	n := s.graph.byID[id]
	if n == nil {
		return ""
	}
	for _, in := range n.Inputs {
		if in.Link == nil || in.Name != widget && (in.Widget == nil || in.Widget.Name != widget) {
			continue
		}
		l := s.graph.link[*in.Link]
		if l.Origin == s.graph.inputsID() && l.OriginSlot >= 0 && l.OriginSlot < len(s.graph.Inputs) {
			return s.graph.Inputs[l.OriginSlot].Name
		}
	}
	return ""
}

// isWidgetSlot reports whether an input of a subgraph sets a widget of an
// inner node.
func (c *converter) isWidgetSlot(s *scope, slot int) bool {
	for _, l := range s.graph.Links {
		if l.Origin != s.graph.inputsID() || l.OriginSlot != slot {
			continue
		}
		n := s.graph.byID[l.Target]
		if n == nil || l.TargetSlot < 0 || l.TargetSlot >= len(n.Inputs) {
			continue
		}
		in := n.Inputs[l.TargetSlot]
		if in.Widget != nil || isWidget(c.classes[n.Type].inputSpecOf(in.Name)) {
			return true
		}
		if sub := c.subgraphs[n.Type]; sub != nil {
			at := slices.IndexFunc(sub.Inputs, func(i editorInput) bool { return i.Name == in.Name })
			inner := &scope{graph: sub, parent: s, depth: s.depth + 1}
			if at >= 0 && inner.depth <= maxDepth && c.isWidgetSlot(inner, at) {
				return true
			}
		}
	}
	return false
}

// convertGraph converts the nodes of a scope and of the subgraphs in it.
func (c *converter) convertGraph(s *scope) error {
	for _, n := range s.graph.Nodes {
		if n.Mode == modeMuted || n.Mode == modeBypassed || isEditorOnly(n.Type) {
			continue
		}
		if child := s.children[n.ID]; child != nil {
			if err := c.convertGraph(child); err != nil {
				return err
			}
			continue
		}
		class, known := c.classes[n.Type]
		if !known {
			c.addMissing(s, n)
			continue
		}
		if err := c.convertNode(s, n, class); err != nil {
			return err
		}
	}
	return nil
}

// addMissing records a node whose class the server does not have. A node
// without links whose class is not on the server is only a panel of the editor
// and is ignored.
func (c *converter) addMissing(s *scope, n *editorNode) {
	if !s.graph.isConnected(n) {
		c.notes = append(c.notes, fmt.Sprintf("The node %s (%s) is left out: it has no links and the server does not have it.", s.path+string(n.ID), truncateText(singleLine(n.Type), 80)))
		return
	}
	if !slices.ContainsFunc(c.missing, func(m missingClass) bool { return m.name == n.Type }) {
		c.missing = append(c.missing, missingClass{n.Type, packOf(n)})
	}
}

// convertNode adds a node whose class the server has to the converted graph.
func (c *converter) convertNode(s *scope, n *editorNode, class nodeClass) error {
	id := s.path + string(n.ID)
	inputs, fits := widgetInputs(n, class)
	if !fits {
		c.warnings = append(c.warnings, fmt.Sprintf("The saved values of node %s (%s) do not match this server's version of the node; check its inputs in the workflow file.", id, n.Type))
	}
	for name, v := range s.inner[n.ID] {
		if _, has := inputs[name]; has {
			inputs[name] = v
			c.addTarget(inputRef{s.instancePath(), name}, inputRef{id, name})
		}
	}
	for i, in := range n.Inputs {
		if in.Link == nil {
			continue
		}
		name := in.Name
		if in.Widget != nil && in.Widget.Name != "" {
			name = in.Widget.Name
		}
		r, err := c.resolveInput(s, n, i, typeName(in.Type), 0)
		switch {
		case err != nil:
			return err
		case r.linked:
			inputs[name] = []any{r.from, json.Number(fmt.Sprint(r.slot))}
		case r.widget.id != "":
			if r.value != nil {
				inputs[name] = r.value
			}
			c.addTarget(r.widget, inputRef{id, name})
		}
	}
	for name, v := range inputs {
		if list, ok := v.([]any); ok {
			if _, isLink := asLink(v); !isLink || !isLinked(n, name) {
				inputs[name] = map[string]any{"__value__": list} // the server would read a plain list as a link
			}
		}
	}
	title := cmp.Or(n.Title, class.DisplayName, n.Type)
	c.nodes[id] = graphNode{Class: n.Type, Inputs: inputs, Meta: &nodeMeta{truncateText(title, 200)}}
	return nil
}

func isLinked(n *editorNode, name string) bool {
	return slices.ContainsFunc(n.Inputs, func(in editorInput) bool {
		return in.Link != nil && (in.Name == name || in.Widget != nil && in.Widget.Name == name)
	})
}

func (s *scope) instancePath() string { return strings.TrimSuffix(s.path, ":") }

// addTarget records that a widget of the editor sets an input. A widget without
// a node is not recorded: it belongs to the workflow itself.
func (c *converter) addTarget(widget, input inputRef) {
	if widget.id != "" {
		c.targets[widget] = append(c.targets[widget], input)
	}
}

// resolved is the origin of an input's value: the output of a node, or a
// widget of the editor that has the value.
type resolved struct {
	linked bool
	from   string
	slot   int

	widget inputRef // node and name of the widget
	value  any      // nil if the widget has no value of its own
}

// resolveInput follows the link of an input through reroutes, subgraphs and
// bypassed nodes to the node that has the value on the server.
func (c *converter) resolveInput(s *scope, n *editorNode, slot int, kind string, depth int) (resolved, error) {
	c.steps++
	if depth > 10*maxDepth+1000 || c.steps > maxLinkSteps {
		return resolved{}, errLoop
	}
	if slot < 0 || slot >= len(n.Inputs) || n.Inputs[slot].Link == nil {
		return resolved{}, nil
	}
	l, ok := s.graph.link[*n.Inputs[slot].Link]
	if !ok {
		return resolved{}, nil
	}
	if s.parent != nil && l.Origin == s.graph.inputsID() {
		return c.resolveSubgraphInput(s, l.OriginSlot, kind, depth+1)
	}
	origin := s.graph.byID[l.Origin]
	if origin == nil {
		return resolved{}, nil
	}
	return c.resolveOutput(s, origin, l.OriginSlot, kind, depth+1)
}

// resolveSubgraphInput resolves an input of a subgraph in the graph that
// contains the subgraph's instance: by a link to the instance, or by a widget
// of the instance.
func (c *converter) resolveSubgraphInput(s *scope, slot int, kind string, depth int) (resolved, error) {
	if slot < 0 || slot >= len(s.graph.Inputs) {
		return resolved{}, nil
	}
	name := s.graph.Inputs[slot].Name
	at := slices.IndexFunc(s.instance.Inputs, func(i editorInput) bool { return i.Name == name })
	if at >= 0 && s.instance.Inputs[at].Link != nil {
		return c.resolveInput(s.parent, s.instance, at, kind, depth+1)
	}
	return resolved{widget: inputRef{s.instancePath(), name}, value: s.values[name]}, nil
}

// resolveOutput resolves an output of a node of the editor.
func (c *converter) resolveOutput(s *scope, n *editorNode, slot int, kind string, depth int) (resolved, error) {
	if n.Mode == modeMuted {
		return resolved{}, nil
	}
	if n.Mode == modeBypassed {
		at := bypassSlot(n, slot, kind)
		if at < 0 {
			return resolved{}, nil
		}
		return c.resolveInput(s, n, at, kind, depth+1)
	}
	if child := s.children[n.ID]; child != nil {
		return c.resolveSubgraphOutput(child, slot, kind, depth+1)
	}
	switch n.Type {
	case typeReroute:
		return c.resolveInput(s, n, 0, kind, depth+1)
	case typePrimitive:
		var values []any
		_ = decodeJSON(n.Values, &values) // without saved values, the input keeps its own value
		r := resolved{widget: inputRef{s.path + string(n.ID), "value"}}
		if len(values) > 0 {
			r.value = values[0]
		}
		if v, ok := s.inner[n.ID]["value"]; ok {
			r.value = v
		}
		return r, nil
	case typeGet:
		return c.resolveNamed(s, n, kind, depth+1)
	}
	return resolved{linked: true, from: s.path + string(n.ID), slot: slot}, nil
}

func (c *converter) resolveSubgraphOutput(s *scope, slot int, kind string, depth int) (resolved, error) {
	for _, l := range s.graph.Links {
		if l.Target != s.graph.outputsID() || l.TargetSlot != slot {
			continue
		}
		if l.Origin == s.graph.inputsID() {
			return c.resolveSubgraphInput(s, l.OriginSlot, kind, depth+1)
		}
		if origin := s.graph.byID[l.Origin]; origin != nil {
			c.steps++
			if depth > 10*maxDepth+1000 || c.steps > maxLinkSteps {
				return resolved{}, errLoop
			}
			return c.resolveOutput(s, origin, l.OriginSlot, kind, depth+1)
		}
	}
	return resolved{}, nil
}

// resolveNamed resolves a Get node: it resolves the value of the Set node that
// has the same name.
func (c *converter) resolveNamed(s *scope, get *editorNode, kind string, depth int) (resolved, error) {
	name := firstText(get)
	for at := s; at != nil; at = at.parent {
		for _, n := range at.graph.Nodes {
			if n.Type == typeSet && name != "" && firstText(n) == name {
				return c.resolveInput(at, n, 0, kind, depth+1)
			}
		}
	}
	return resolved{}, nil
}

func firstText(n *editorNode) string {
	var values []any
	if decodeJSON(n.Values, &values) != nil || len(values) == 0 {
		return ""
	}
	name, _ := values[0].(string)
	return name
}

// bypassSlot returns the input of a bypassed node whose value replaces the
// output: the input with the same number if its type matches, otherwise the
// first input of that type.
func bypassSlot(n *editorNode, slot int, kind string) int {
	if kind == "*" {
		if slot < len(n.Inputs) {
			return slot
		}
		return min(0, len(n.Inputs)-1)
	}
	output := kind
	if slot >= 0 && slot < len(n.Outputs) {
		output = typeName(n.Outputs[slot].Type)
	}
	matches := func(in editorInput) bool {
		t := typeName(in.Type)
		return slotsMatch(t, output) && slotsMatch(t, kind)
	}
	if slot >= 0 && slot < len(n.Inputs) && matches(n.Inputs[slot]) {
		return slot
	}
	if at := slices.IndexFunc(n.Inputs, func(in editorInput) bool { return typeName(in.Type) == kind }); at >= 0 {
		return at
	}
	return slices.IndexFunc(n.Inputs, matches)
}
