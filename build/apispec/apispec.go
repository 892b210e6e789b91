// Package apispec reads the parts of an OpenAPI document from which the client
// libraries are generated. Mappings keep the order of the document.
package apispec

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Document is an OpenAPI document.
type Document struct {
	Tags       []Tag                `yaml:"tags"`
	Paths      Map[Map[*Operation]] `yaml:"paths"` // by path, then by method
	Components struct {
		Schemas    Map[*Schema]          `yaml:"schemas"`
		Parameters map[string]*Parameter `yaml:"parameters"`
		Responses  map[string]*Response  `yaml:"responses"`
	} `yaml:"components"`
}

// Tag is a group of operations.
type Tag struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
}

// Operation is a call of the API.
type Operation struct {
	ID          string         `yaml:"operationId"`
	Tags        []string       `yaml:"tags"`
	Summary     string         `yaml:"summary"`
	Description string         `yaml:"description"`
	Parameters  []*Parameter   `yaml:"parameters"`
	RequestBody *RequestBody   `yaml:"requestBody"`
	Responses   Map[*Response] `yaml:"responses"`
	Security    *[]any         `yaml:"security"`

	Method string `yaml:"-"` // such as "GET"
	Path   string `yaml:"-"`
}

// Parameter is a parameter of an operation, or a reference to one.
type Parameter struct {
	Ref         string  `yaml:"$ref"`
	Name        string  `yaml:"name"`
	In          string  `yaml:"in"`
	Required    bool    `yaml:"required"`
	Description string  `yaml:"description"`
	Schema      *Schema `yaml:"schema"`
}

// RequestBody is the body of a request, by media type.
type RequestBody struct {
	Content Map[Media] `yaml:"content"`
}

// Response is a response, by media type, or a reference to one.
type Response struct {
	Ref     string     `yaml:"$ref"`
	Content Map[Media] `yaml:"content"`
}

// Media is the content of a body.
type Media struct {
	Schema *Schema `yaml:"schema"`
}

// Schema is a JSON schema, or a reference to one.
type Schema struct {
	Ref         string       `yaml:"$ref"`
	Type        TypeNames    `yaml:"type"`
	Format      string       `yaml:"format"`
	Description string       `yaml:"description"`
	Enum        []any        `yaml:"enum"`
	Const       any          `yaml:"const"`
	Required    []string     `yaml:"required"`
	Properties  Map[*Schema] `yaml:"properties"`
	Additional  yaml.Node    `yaml:"additionalProperties"`
	Items       *Schema      `yaml:"items"`
	OneOf       []*Schema    `yaml:"oneOf"`
	AnyOf       []*Schema    `yaml:"anyOf"`
	AllOf       []*Schema    `yaml:"allOf"`
	GoType      string       `yaml:"x-go-type"`
}

// Values returns the schema of additional properties, or nil if any value is
// allowed.
func (s *Schema) Values() (*Schema, error) {
	if s.Additional.Kind != yaml.MappingNode {
		return nil, nil
	}
	var v Schema
	err := s.Additional.Decode(&v)
	return &v, err
}

// TypeNames are the JSON types of a schema; the document has one or a list.
type TypeNames []string

// UnmarshalYAML reads one type or a list of types.
func (t *TypeNames) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*t = TypeNames{n.Value}
		return nil
	}
	return n.Decode((*[]string)(t))
}

// Map is a mapping in the order of the document.
type Map[V any] []Entry[V]

// Entry is one pair of a Map.
type Entry[V any] struct {
	Key   string
	Value V
}

// UnmarshalYAML reads a mapping.
func (m *Map[V]) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: a mapping is required", n.Line)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		e := Entry[V]{Key: n.Content[i].Value}
		if err := n.Content[i+1].Decode(&e.Value); err != nil {
			return err
		}
		*m = append(*m, e)
	}
	return nil
}

// Find returns the value of a key, and whether there is one.
func (m Map[V]) Find(key string) (value V, ok bool) {
	i := slices.IndexFunc(m, func(e Entry[V]) bool { return e.Key == key })
	if i < 0 {
		return value, false
	}
	return m[i].Value, true
}

// Get returns the value of a key, or the zero value.
func (m Map[V]) Get(key string) V {
	value, _ := m.Find(key)
	return value
}

// Parse reads a document.
func Parse(text []byte) (*Document, error) {
	var d Document
	if err := yaml.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	for _, path := range d.Paths {
		for _, o := range path.Value {
			o.Value.Method = strings.ToUpper(o.Key)
			o.Value.Path = path.Key
		}
	}
	return &d, nil
}

// Operations returns all operations in the order of the document.
func (d *Document) Operations() []*Operation {
	var all []*Operation
	for _, path := range d.Paths {
		for _, o := range path.Value {
			all = append(all, o.Value)
		}
	}
	return all
}

// RefName returns the name of the component that a reference leads to; "" for
// no reference.
func RefName(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// ResolveSchema follows the references of a schema. It returns nil for a
// reference that leads nowhere.
func (d *Document) ResolveSchema(s *Schema) *Schema {
	for s != nil && s.Ref != "" {
		s = d.Components.Schemas.Get(RefName(s.Ref))
	}
	return s
}

// ResolveParameter follows the reference of a parameter.
func (d *Document) ResolveParameter(p *Parameter) *Parameter {
	if p.Ref == "" {
		return p
	}
	return d.Components.Parameters[RefName(p.Ref)]
}

// ResolveResponse follows the reference of a response.
func (d *Document) ResolveResponse(r *Response) *Response {
	if r.Ref == "" {
		return r
	}
	return d.Components.Responses[RefName(r.Ref)]
}
