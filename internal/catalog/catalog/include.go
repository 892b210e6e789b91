package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A workflow of a model server is a JSON file that the editor of that server
// exports. The setting engine.include of a manifest names such files. Their
// content is merged into engine.with before the manifest is stored, so that the
// hash of the tool changes with the file.

// newIncludeReader returns a function that reads a JSON file from the folder of
// the manifests.
func newIncludeReader(files fs.FS) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if !fs.ValidPath(name) || path.Ext(name) != ".json" {
			return nil, fmt.Errorf("%q must be the name of a .json file in the manifest's folder", name)
		}
		return readFile(files, name, maxManifest)
	}
}

// mergeIncludes adds the content of the files that engine.include names to
// engine.with.
func (r *manifestReader) mergeIncludes(p *mapping, include *yaml.Node) {
	if r.readInclude == nil {
		p.addProblem("include", "is only allowed in manifest files")
		return
	}

	with := p.values["with"]
	if with == nil || with.Tag == "!!null" {
		with = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: include.Line, Column: include.Column}
		p.node.Content = append(p.node.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "with"}, with)
		p.values["with"] = with
	}
	if with.Kind != yaml.MappingNode {
		return // readEngine reports this problem
	}

	o := r.openMapping(include, p.path+"include.")
	for _, key := range o.keys {
		name := o.readText(key.Value, 200)
		if pairIndex(with, key.Value) >= 0 {
			o.addProblem(key.Value, "is also set in engine.with")
			continue
		}

		text, err := r.readInclude(name)
		if err == nil {
			text, err = canonicalizeJSON(text)
		}
		if err != nil {
			o.addProblem(key.Value, "%v", err)
			continue
		}
		if node := r.parseDocument(text); node != nil {
			with.Content = append(with.Content, key, node)
		}
	}

	i := pairIndex(p.node, "include")
	p.node.Content = slices.Delete(p.node.Content, i, i+2)
}

// pairIndex returns the index of a key in the content of a YAML mapping, or -1
// if the mapping does not have the key.
func pairIndex(mapping *yaml.Node, key string) int {
	for i := 0; i < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// canonicalizeJSON converts a JSON document to canonical JSON, which is also
// valid YAML.
func canonicalizeJSON(text []byte) ([]byte, error) {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("is not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("is not JSON: unexpected data after the value")
	}
	return []byte(canonicalJSON(convertNumbers(v))), nil
}

// convertNumbers replaces every json.Number in v by an int64, uint64 or
// float64.
func convertNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
			return n
		}

		f, _ := v.Float64() // a number that is too large becomes infinite, which JSON cannot represent
		return min(max(f, -1e308), 1e308)
	case []any:
		for i := range v {
			v[i] = convertNumbers(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = convertNumbers(v[key])
		}
	}
	return v
}
