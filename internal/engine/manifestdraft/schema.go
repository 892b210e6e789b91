package manifestdraft

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// node is a part of a JSON schema. Its parts are looked at one by one, so that
// an odd one spoils nothing else.
type node map[string]json.RawMessage

func part[T any](n node, key string) (v T) {
	if json.Unmarshal(n[key], &v) != nil {
		var none T
		return none
	}
	return v
}

func (n node) text(key string) string     { return part[string](n, key) }
func (n node) flag(key string) bool       { return part[bool](n, key) }
func (n node) number(key string) *float64 { return part[*float64](n, key) }
func (n node) node(key string) node       { return part[node](n, key) }
func (n node) nodes(key string) []node    { return part[[]node](n, key) }

// keys are the names in an object, in the order in which they are written.
func (n node) keys(key string) []string {
	all := n.node(key)
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

// kind is the type of the values.
func (n node) kind() string {
	kinds := part[[]string](n, "type") // JSON Schema allows several
	if kind := n.text("type"); kind != "" {
		kinds = []string{kind}
	}
	for _, kind := range kinds {
		if kind != "null" {
			return kind
		}
	}
	switch enum := part[[]any](n, "enum"); {
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

// document is a schema with the names that its parts refer to.
type document struct{ schemas node }

// maxRefs bounds how far references are followed, which may go in circles, and
// maxParts how many pieces a schema may be put together from on the way.
const maxRefs, maxParts = 8, 500

// flat gives a schema as one piece, with what it refers to. What stands nearer
// counts more. Of several alternatives the most telling one counts.
func (d document) flat(n node) node {
	left := maxParts
	return d.flatAt(n, 0, &left)
}

func (d document) flatAt(n node, depth int, left *int) node {
	all := maps.Clone(n)
	if all == nil {
		all = node{}
	}
	if depth == maxRefs || *left == 0 {
		return all
	}
	*left--
	add := func(more node) {
		for key, v := range more {
			if _, nearer := all[key]; !nearer {
				all[key] = v
			}
		}
	}
	if name, ok := strings.CutPrefix(n.text("$ref"), "#/components/schemas/"); ok {
		more := d.flatAt(d.schemas.node(name), depth+1, left)
		if _, named := more["title"]; !named {
			more["title"], _ = json.Marshal(name) // a string always can
		}
		add(more)
	}
	for _, more := range n.nodes("allOf") {
		add(d.flatAt(more, depth+1, left))
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		var best node
		for _, more := range n.nodes(key) {
			if more = d.flatAt(more, depth+1, left); telling(more) > telling(best) {
				best = more
			}
		}
		add(best)
	}
	return all
}

// telling ranks alternatives by how good a field they make.
func telling(n node) int {
	switch kind := n.kind(); {
	case kind == "" || kind == "null":
		return 0
	case kind == "object":
		return 1
	case n["enum"] == nil && n.text("format") != "uri":
		return 2
	}
	return 3
}

// input is one input of a model.
type input struct {
	name     string
	schema   node
	kind     string
	required bool
}

// inputs lists the inputs, in the order in which the model shows them.
func (d document) inputs(n node) []input {
	names := n.keys("properties")
	if order := part[[]string](n, "x-fal-order-properties"); order != nil {
		slices.SortStableFunc(names, func(a, b string) int { return place(order, a) - place(order, b) })
	}
	required := part[[]string](n, "required")
	all := make([]input, len(names))
	for i, name := range names {
		s := d.flat(n.node("properties").node(name))
		all[i] = input{name: name, schema: s, kind: s.kind(), required: slices.Contains(required, name)}
	}
	slices.SortStableFunc(all, func(a, b input) int { return order(a.schema) - order(b.schema) })
	return all
}

func place(list []string, name string) int {
	if i := slices.Index(list, name); i >= 0 {
		return i
	}
	return len(list)
}

func order(n node) int {
	if at := n.number("x-order"); at != nil {
		return int(max(-1e6, min(*at, 1e6)))
	}
	return 1e6
}

// parse finds the named part of an OpenAPI document.
func parse(doc []byte, name string) (document, node, error) {
	var root node
	if err := json.Unmarshal(doc, &root); err != nil {
		return document{}, nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	d := document{root.node("components").node("schemas")}
	n := d.schemas.node(name)
	if n == nil {
		return d, nil, fmt.Errorf("the schema has no %s", name)
	}
	return d, d.flat(n), nil
}
