package reference

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxHops bounds a chain of references that point to references.
const maxHops = 16

// parse reads the document and keeps its nodes, which references point into.
func parse(text []byte) (*document, *yaml.Node, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, nil, err
	}
	var doc document
	if err := root.Decode(&doc); err != nil {
		return nil, nil, err
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1.") {
		return nil, nil, fmt.Errorf("openapi is %q, want 3.1", doc.OpenAPI)
	}
	if doc.Info.Title == "" {
		return nil, nil, fmt.Errorf("info.title is missing")
	}
	return &doc, root.Content[0], nil
}

// find gives the node a reference points to: a JSON pointer (RFC 6901) into
// the same document.
func find(root *yaml.Node, ref string) (*yaml.Node, error) {
	pointer, local := strings.CutPrefix(ref, "#/")
	if !local {
		return nil, fmt.Errorf("reference %q does not point into this document", ref)
	}
	n := root
	for token := range strings.SplitSeq(pointer, "/") {
		if n = child(n, unescape(token)); n == nil {
			return nil, fmt.Errorf("reference %q points to nothing", ref)
		}
	}
	return n, nil
}

// unescape reads one part of a pointer in a URI fragment.
func unescape(token string) string {
	if text, err := url.PathUnescape(token); err == nil {
		token = text
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
}

// child gives the value of a mapping's key or a list's index, nil for neither.
func child(n *yaml.Node, key string) *yaml.Node {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return original(n.Content[i+1])
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(n.Content) {
			return original(n.Content[i])
		}
	}
	return nil
}

// original gives the node that a YAML alias stands for.
func original(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// read decodes a node, or what it refers to. The summary and description
// beside a reference replace those of its target.
func read[T any](b *builder, n *yaml.Node) T {
	var v T
	n = original(n)
	var beside []*yaml.Node
	for hops := 0; ; hops++ {
		ref := child(n, "$ref")
		if ref == nil {
			break
		}
		for _, key := range []string{"summary", "description"} {
			if word := child(n, key); word != nil {
				beside = append(beside, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, word)
			}
		}
		target, err := find(b.root, ref.Value)
		if err == nil && hops == maxHops {
			err = fmt.Errorf("reference %q goes in a circle", ref.Value)
		}
		if err != nil {
			b.fail(fmt.Errorf("line %d: %w", ref.Line, err))
			return v
		}
		n = target
	}
	if err := with(n, beside).Decode(&v); err != nil {
		b.fail(err)
	}
	return v
}

// with gives a mapping with some keys set; of several values the first wins.
func with(n *yaml.Node, pairs []*yaml.Node) *yaml.Node {
	if len(pairs) == 0 || n.Kind != yaml.MappingNode {
		return n
	}
	merged := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Column: n.Column}
	all := append(pairs, n.Content...)
	for i := 0; i+1 < len(all); i += 2 {
		if child(merged, all[i].Value) == nil {
			merged.Content = append(merged.Content, all[i], all[i+1])
		}
	}
	return merged
}

// component gives the name of the schema that a reference points to, if it is
// one with a section of its own.
func (b *builder) component(ref string) (string, bool) {
	token, ok := strings.CutPrefix(ref, "#/components/schemas/")
	if !ok {
		return "", false
	}
	name := unescape(token)
	_, ok = b.sections[name]
	return name, ok
}

// target gives the schema that a reference points to.
func (b *builder) target(ref string) *schema {
	if name, ok := b.component(ref); ok {
		s, _ := b.doc.Components.Schemas.get(name)
		return s
	}
	n, err := find(b.root, ref)
	if err != nil {
		b.fail(err)
		return nil
	}
	var s *schema
	if err := n.Decode(&s); err != nil {
		b.fail(err)
	}
	return s
}
