package workflowimport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// graphNode is a node of a workflow for which a manifest is drafted.
type graphNode struct {
	Class  string         `json:"class_type"`
	Inputs map[string]any `json:"inputs"`
	Meta   *nodeMeta      `json:"_meta,omitempty"`
}

// nodeMeta has the title that the workflow's author chose for a node.
type nodeMeta struct {
	Title string `json:"title"`
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
	var from string
	switch id := list[0].(type) {
	case string:
		from = id
	case json.Number: // programs that write graphs may use numbers as ids
		from = id.String()
	default:
		return link{}, false
	}
	number, isNumber := list[1].(json.Number)
	if !isNumber {
		return link{}, false
	}
	slot, err := number.Int64()
	return link{from, int(slot)}, err == nil && slot >= 0
}

// Limits of a workflow that can be imported.
const (
	maxWorkflowBytes = 32 << 20 // size of the workflow's JSON
	maxSourceBytes   = 1 << 30  // size of a media file that contains a workflow
	maxNodes         = 10_000
	maxLinks         = 50_000
	maxClasses       = 500
)

// readGraph parses a workflow in ComfyUI's API format. It returns the nodes by
// id.
func readGraph(text []byte) (map[string]graphNode, error) {
	var raw map[string]json.RawMessage
	if err := decodeJSON(text, &raw); err != nil {
		return nil, fmt.Errorf("the workflow is not JSON: %w", err)
	}
	if len(raw) == 0 {
		return nil, errors.New("the workflow has no nodes")
	}
	if len(raw) > maxNodes {
		return nil, fmt.Errorf("the workflow has %d nodes; at most %d are supported", len(raw), maxNodes)
	}
	all := map[string]graphNode{}
	for id, text := range raw {
		var n graphNode
		if decodeJSON(text, &n) != nil || n.Class == "" || n.Inputs == nil || strings.Contains(id, ".") {
			return nil, fmt.Errorf("node %q has no class_type and inputs: the file is neither a workflow of the ComfyUI editor nor one in API format", truncateText(id, 80))
		}
		all[id] = n
	}
	return all, nil
}

// decodeJSON decodes JSON and keeps numbers as they are.
func decodeJSON(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(into)
}
