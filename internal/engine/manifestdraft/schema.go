package manifestdraft

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// schemaNode is an object in a JSON schema. Its values are decoded separately,
// so that an invalid value does not affect other values.
type schemaNode map[string]json.RawMessage

func decodePart[T any](n schemaNode, key string) (v T) {
	if json.Unmarshal(n[key], &v) != nil {
		var none T
		return none
	}
	return v
}

func (n schemaNode) textPart(key string) string        { return decodePart[string](n, key) }
func (n schemaNode) flagPart(key string) bool          { return decodePart[bool](n, key) }
func (n schemaNode) numberPart(key string) *float64    { return decodePart[*float64](n, key) }
func (n schemaNode) nodePart(key string) schemaNode    { return decodePart[schemaNode](n, key) }
func (n schemaNode) nodeParts(key string) []schemaNode { return decodePart[[]schemaNode](n, key) }

// objectKeys returns the keys of the object n[key], in their order in the
// document.
func (n schemaNode) objectKeys(key string) []string {
	all := n.nodePart(key)
	d := json.NewDecoder(bytes.NewReader(n[key]))
	if _, err := d.Token(); err != nil {
		return nil
	}
	var names []string
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		var skip json.RawMessage
		if err != nil || !ok || d.Decode(&skip) != nil {
			break
		}
		if _, known := all[name]; known && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// valueType returns the JSON type of the values that the schema allows. It
// returns "" if the schema does not specify a type.
func (n schemaNode) valueType() string {
	kinds := decodePart[[]string](n, "type") // JSON Schema allows a list of types
	if kind := n.textPart("type"); kind != "" {
		kinds = []string{kind}
	}
	for _, kind := range kinds {
		if kind != "null" {
			return kind
		}
	}
	switch enum := decodePart[[]any](n, "enum"); {
	case len(enum) > 0:
		switch enum[0].(type) {
		case string:
			return "string"
		case float64:
			return "number"
		}
	case n["properties"] != nil:
		return "object"
	case n["items"] != nil:
		return "array"
	}
	return ""
}

// document is the set of named schemas of an OpenAPI document, which can refer
// to each other.
type document struct{ schemas schemaNode }

// maxRefs is the maximum depth of references, which may be circular. maxParts
// is the maximum number of schemas that one schema may be composed of.
const maxRefs, maxParts = 8, 500

// flatten returns a schema with its references resolved and its parts merged
// into one object. The schema's own values override the values of referenced
// schemas. Of several alternatives, the alternative with the highest rank is
// used.
func (d document) flatten(n schemaNode) schemaNode {
	left := maxParts
	return d.flattenAt(n, 0, &left)
}

func (d document) flattenAt(n schemaNode, depth int, left *int) schemaNode {
	all := maps.Clone(n)
	if all == nil {
		all = schemaNode{}
	}
	if depth == maxRefs || *left == 0 {
		return all
	}
	*left--
	add := func(more schemaNode) {
		for key, v := range more {
			if _, nearer := all[key]; !nearer {
				all[key] = v
			}
		}
	}
	if name, ok := strings.CutPrefix(n.textPart("$ref"), "#/components/schemas/"); ok {
		more := d.flattenAt(d.schemas.nodePart(name), depth+1, left)
		if _, named := more["title"]; !named {
			more["title"], _ = json.Marshal(name) // marshalling a string cannot fail
		}
		add(more)
	}
	for _, more := range n.nodeParts("allOf") {
		add(d.flattenAt(more, depth+1, left))
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		var best schemaNode
		for _, more := range n.nodeParts(key) {
			if more = d.flattenAt(more, depth+1, left); rankAlternative(more) > rankAlternative(best) {
				best = more
			}
		}
		add(best)
	}
	return all
}

// rankAlternative returns how suitable one alternative of a schema is for a
// field, from 0 to 3 (best).
func rankAlternative(n schemaNode) int {
	switch kind := n.valueType(); {
	case kind == "" || kind == "null":
		return 0
	case kind == "object":
		return 1
	case n["enum"] == nil && n.textPart("format") != "uri":
		return 2
	}
	return 3
}

// modelInput is one input of a model, with its schema and JSON type.
type modelInput struct {
	name     string
	schema   schemaNode
	kind     string
	required bool
}

// listInputs returns the model's inputs in the order in which the model's own
// page shows them.
func (d document) listInputs(n schemaNode) []modelInput {
	names := n.objectKeys("properties")
	if order := decodePart[[]string](n, "x-fal-order-properties"); order != nil {
		slices.SortStableFunc(names, func(a, b string) int { return indexIn(order, a) - indexIn(order, b) })
	}
	required := decodePart[[]string](n, "required")
	all := make([]modelInput, len(names))
	for i, name := range names {
		s := d.flatten(n.nodePart("properties").nodePart(name))
		all[i] = modelInput{name: name, schema: s, kind: s.valueType(), required: slices.Contains(required, name)}
	}
	slices.SortStableFunc(all, func(a, b modelInput) int { return displayOrder(a.schema) - displayOrder(b.schema) })
	return all
}

func indexIn(list []string, name string) int {
	if i := slices.Index(list, name); i >= 0 {
		return i
	}
	return len(list)
}

func displayOrder(n schemaNode) int {
	if at := n.numberPart("x-order"); at != nil {
		return int(max(-1e6, min(*at, 1e6)))
	}
	return 1e6
}

// parseDocument parses an OpenAPI document and returns it with the schema
// called name, flattened.
func parseDocument(doc []byte, name string) (document, schemaNode, error) {
	var root schemaNode
	if err := json.Unmarshal(doc, &root); err != nil {
		return document{}, nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	d := document{root.nodePart("components").nodePart("schemas")}
	n := d.schemas.nodePart(name)
	if n == nil {
		return d, nil, fmt.Errorf("the schema has no %s", name)
	}
	return d, d.flatten(n), nil
}
