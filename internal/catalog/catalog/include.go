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

// A workflow of a model server is a JSON file that its own editor writes, and
// that nobody wants to copy into a manifest. engine.include names such files;
// what they hold becomes part of engine.with before anything is stored, so that
// the tool's hash changes when the file does.

// includes reads JSON files that lie beside the manifests.
func includes(files fs.FS) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if !fs.ValidPath(name) || path.Ext(name) != ".json" {
			return nil, fmt.Errorf("%q must be the name of a .json file beside the manifest", name)
		}
		return readFile(files, name, maxManifest)
	}
}

// includes puts the files that an engine's include names into its with.
func (r *reader) includes(p *object, include *yaml.Node) {
	if r.include == nil {
		p.problem("include", "is for files, and there are none")
		return
	}
	with := p.value["with"]
	if with == nil || with.Tag == "!!null" {
		with = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: include.Line, Column: include.Column}
		p.node.Content = append(p.node.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "with"}, with)
		p.value["with"] = with
	}
	if with.Kind != yaml.MappingNode {
		return // which is reported
	}
	o := r.object(include, p.path+"include.")
	for _, key := range o.keys {
		name := o.text(key.Value, 200)
		if pair(with, key.Value) >= 0 {
			o.problem(key.Value, "stands in with too")
			continue
		}
		text, err := r.include(name)
		if err == nil {
			text, err = compact(text)
		}
		if err != nil {
			o.problem(key.Value, "%v", err)
			continue
		}
		if node := r.parse(text); node != nil {
			with.Content = append(with.Content, key, node)
		}
	}
	i := pair(p.node, "include")
	p.node.Content = slices.Delete(p.node.Content, i, i+2)
}

// pair says where in a mapping a key and its value are, -1 where they are not.
func pair(mapping *yaml.Node, key string) int {
	for i := 0; i < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// compact gives JSON as the catalog writes it, which YAML reads too.
func compact(text []byte) ([]byte, error) {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("is not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("is not JSON: something follows it")
	}
	return []byte(canonical(counted(v))), nil
}

// counted gives a JSON value with numbers as the catalog has them.
func counted(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
			return n
		}
		f, _ := v.Float64() // one that is too large becomes infinite, which no JSON has
		return min(max(f, -1e308), 1e308)
	case []any:
		for i := range v {
			v[i] = counted(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = counted(v[key])
		}
	}
	return v
}
