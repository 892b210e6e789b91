package catalog

import (
	"bytes"
	"encoding/json"

	"go.yaml.in/yaml/v3"
)

// Document is an object in a YAML or JSON file.
type Document struct {
	// Values has strings, numbers, booleans, []any and map[string]any.
	Values map[string]any

	reader *manifestReader
	root   *yaml.Node
}

// ReadDocument reads a file whose content is one object. It returns nil and the
// problems if it cannot be read.
func ReadDocument(file string, text []byte) (*Document, []Problem) {
	r := &manifestReader{file: file}
	root := r.parseDocument(text)
	if root == nil && json.Valid(text) {
		// YAML refuses tabs and surrogate pairs (\ud83d\ude00), which JSON allows.
		r.problems = nil
		root = r.parseDocument(rewriteJSON(text))
	}
	if root == nil {
		return nil, r.problems
	}
	if root.Kind != yaml.MappingNode {
		r.addProblem(root, "must be a mapping")
		return nil, r.problems
	}
	values, _ := r.plainValue(root).(map[string]any)
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	return &Document{Values: values, reader: r, root: root}, nil
}

// rewriteJSON encodes valid JSON again, without escapes that are not needed.
func rewriteJSON(text []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return text
	}
	again, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return text
	}
	return again
}

// Locate converts a remark about the document to a problem with its position.
func (d *Document) Locate(remark Remark) Problem {
	return d.reader.locateRemark(d.root, remark)
}
