package workflowimport

import (
	"encoding/json"
	"fmt"
	"strings"
)

// groupDefinition is a group node, the predecessor of subgraphs. Links name
// nodes by their index.
type groupDefinition struct {
	Nodes    []*editorNode       `json:"nodes"`
	Links    [][]json.RawMessage `json:"links"`    // [origin index, slot, target index, slot, …]
	External [][]json.RawMessage `json:"external"` // [index, slot, …] of outputs that are linked both inside and outside the group
}

// expandGroups replaces the group nodes of a workflow with subgraphs. The
// nodes of a group have their index as id, as in the front end.
func (w *editorWorkflow) expandGroups() {
	for _, n := range w.root.Nodes {
		name, ok := strings.CutPrefix(n.Type, "workflow>")
		if !ok {
			name, ok = strings.CutPrefix(n.Type, "workflow/")
		}
		raw, known := w.root.Extra.GroupNodes[name]
		var group groupDefinition
		if !ok || !known || decodeJSON(raw, &group) != nil || len(group.Nodes) > maxNodes || len(group.Links) > maxLinks {
			continue
		}
		g := group.subgraphFor(n)
		g.ID = "group " + string(n.ID)
		g.Name = name
		g.index()
		w.subgraphs[g.ID] = g
		n.Type = g.ID
	}
}

// slotKey is a slot of a node in a group.
type slotKey struct{ node, slot int }

// subgraphFor converts the group to a subgraph that replaces one group node.
func (d groupDefinition) subgraphFor(instance *editorNode) *editorGraph {
	g := &editorGraph{}
	linked := map[slotKey]bool{}   // inputs with a link inside the group
	hidden := map[slotKey]bool{}   // outputs that are linked inside the group only
	inputs := map[slotKey]nodeID{} // ids of the links inside the group, by input
	for i, parts := range d.Links {
		var at [4]int
		if !decodeIndexes(parts, at[:]) {
			continue
		}
		l := editorLink{
			ID:         nodeID(fmt.Sprint(i)),
			Origin:     nodeID(fmt.Sprint(at[0])),
			OriginSlot: at[1],
			Target:     nodeID(fmt.Sprint(at[2])),
			TargetSlot: at[3],
		}
		g.Links = append(g.Links, l)
		linked[slotKey{at[2], at[3]}] = true
		hidden[slotKey{at[0], at[1]}] = true
		inputs[slotKey{at[2], at[3]}] = l.ID
	}
	for _, parts := range d.External {
		var at [2]int
		if decodeIndexes(parts, at[:]) {
			delete(hidden, slotKey{at[0], at[1]})
		}
	}
	values := d.valuesOf(instance)
	for i, n := range d.Nodes {
		if n == nil {
			continue
		}
		inner := *n
		inner.ID = nodeID(fmt.Sprint(i))
		inner.Values = values[i]
		inner.Inputs = append([]editorInput(nil), n.Inputs...)
		for slot := range inner.Inputs {
			inner.Inputs[slot].Link = nil
			if id, ok := inputs[slotKey{i, slot}]; ok {
				inner.Inputs[slot].Link = &id
				continue
			}
			name := fmt.Sprintf("input %d", len(g.Inputs))
			if at := len(g.Inputs); at < len(instance.Inputs) {
				name = instance.Inputs[at].Name
			}
			id := nodeID(fmt.Sprintf("in %d", len(g.Inputs)))
			g.Links = append(g.Links, editorLink{
				ID:         id,
				Origin:     subgraphInputs,
				OriginSlot: len(g.Inputs),
				Target:     inner.ID,
				TargetSlot: slot,
			})
			g.Inputs = append(g.Inputs, editorInput{Name: name, Type: inner.Inputs[slot].Type})
			inner.Inputs[slot].Link = &id
		}
		for slot, out := range n.Outputs {
			if hidden[slotKey{i, slot}] {
				continue
			}
			g.Links = append(g.Links, editorLink{
				ID:         nodeID(fmt.Sprintf("out %d", len(g.Outputs))),
				Origin:     inner.ID,
				OriginSlot: slot,
				Target:     subgraphOutputs,
				TargetSlot: len(g.Outputs),
			})
			g.Outputs = append(g.Outputs, editorInput{Name: out.Name, Type: out.Type})
		}
		g.Nodes = append(g.Nodes, &inner)
	}
	return g
}

// valuesOf returns the values of the group's nodes. A group node has the values
// of all its nodes in one list; if their number differs from the definition's,
// the values of the definition are used.
func (d groupDefinition) valuesOf(instance *editorNode) []json.RawMessage {
	own := make([]json.RawMessage, len(d.Nodes))
	counts := make([]int, len(d.Nodes))
	total := 0
	for i, n := range d.Nodes {
		if n == nil {
			continue
		}
		own[i] = n.Values
		var list []json.RawMessage
		if json.Unmarshal(n.Values, &list) == nil {
			counts[i] = len(list)
			total += len(list)
		}
	}
	var all []json.RawMessage
	if json.Unmarshal(instance.Values, &all) != nil || len(all) != total {
		return own
	}
	for i, n := range counts {
		if n > 0 {
			own[i], _ = json.Marshal(all[:n]) // marshalling raw JSON that has been parsed cannot fail
			all = all[n:]
		}
	}
	return own
}

func decodeIndexes(parts []json.RawMessage, into []int) bool {
	if len(parts) < len(into) {
		return false
	}
	for i := range into {
		if json.Unmarshal(parts[i], &into[i]) != nil || string(parts[i]) == "null" {
			return false
		}
	}
	return true
}
