package reference

import (
	"encoding/json"
	"slices"
	"strings"
)

// Bounds of what is shown of one schema. Schemas with a section of their own
// are links and need none; these are for what is written in place.
const (
	maxDepth = 8
	maxRows  = 500
)

// shape is a schema as the page shows it.
type shape struct {
	Type  []piece
	Facts []fact
	Text  []block
	Rows  []row
}

// piece is a part of a type's name.
type piece struct {
	Text string
	Href string
	Soft bool // a detail, such as a format
}

// row is a property, or a heading over the rows of one alternative.
type row struct {
	Name       string
	Free       bool // Name describes names instead of being one
	Depth      int
	Required   bool
	Deprecated bool
	ReadOnly   bool
	WriteOnly  bool
	Type       []piece
	Facts      []fact
	Text       []block
}

func (b *builder) shape(s *schema) shape {
	t := rowWriter{b: b}
	t.inside(s, 0, nil)
	sh := shape{Type: b.kind(s), Facts: b.facts(s), Rows: t.rows}
	if s != nil {
		sh.Text = b.text(s.Description)
	}
	return sh
}

// kind names a schema's type: "array of Tool or null".
func (b *builder) kind(s *schema) []piece { return b.kindAt(s, "any", 0) }

// kindAt names a schema's type. A schema that does not say has the type
// unsaid, which alternatives inherit from the schema they stand in.
func (b *builder) kindAt(s *schema, unsaid string, depth int) []piece {
	switch {
	case depth > maxDepth:
		return []piece{{Text: "…", Soft: true}}
	case s == nil || s.Bool != nil && *s.Bool:
		return []piece{{Text: unsaid}}
	case s.Bool != nil:
		return []piece{{Text: "nothing"}}
	case s.Ref != "":
		if name, ok := b.component(s.Ref); ok {
			return []piece{{Text: name, Href: "#" + b.sections[name]}}
		}
		return b.kindAt(b.target(s.Ref), unsaid, depth+1)
	}
	own := b.typeWords(s, unsaid, depth)
	if own != nil {
		unsaid = own[0].Text
	}
	for _, c := range []struct {
		options []*schema
		joint   string
	}{{s.OneOf, " or "}, {s.AnyOf, " and/or "}, {s.AllOf, " and "}} {
		var names [][]piece
		for _, o := range c.options {
			if o != nil && o.Ref == "" && c.joint == " and " && b.typeWords(o, "", depth) == nil && !hasOptions(o) {
				continue // says more about the type without naming it
			}
			name := b.kindAt(o, unsaid, depth+1)
			if !slices.ContainsFunc(names, func(n []piece) bool { return slices.Equal(n, name) }) {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			if c.joint == " and " && len(s.Properties) > 0 && !slices.ContainsFunc(names, isObject) {
				names = append(names, []piece{{Text: "object"}})
			}
			return join(names, c.joint)
		}
	}
	if own != nil {
		return own
	}
	return []piece{{Text: unsaid}}
}

func isObject(name []piece) bool { return len(name) == 1 && name[0] == piece{Text: "object"} }

func hasOptions(s *schema) bool { return len(s.OneOf)+len(s.AnyOf)+len(s.AllOf) > 0 }

// typeWords names the types that a schema states or implies, nil for none.
func (b *builder) typeWords(s *schema, unsaid string, depth int) []piece {
	if s == nil || s.Bool != nil {
		return nil
	}
	types := s.Type
	if len(types) == 0 {
		switch {
		case len(s.Properties) > 0 || s.AdditionalProperties != nil || len(s.PatternProperties) > 0:
			types = words{"object"}
		case s.Items != nil || len(s.PrefixItems) > 0:
			types = words{"array"}
		case s.ContentMediaType != "" && s.ContentEncoding == "":
			types = words{"bytes"} // OpenAPI 3.1, "Considerations for File Uploads"
		case !s.Const.IsZero():
			types = words{typeOf(plain(&s.Const))}
		case len(s.Enum) > 0:
			types = words{typeOf(plain(&s.Enum[0]))}
		case s.Pattern != "" || !s.MinLength.IsZero() || !s.MaxLength.IsZero() || s.Format != "" && unsaid == "any":
			types = words{"string"}
		}
	}
	var names [][]piece
	for _, t := range types {
		name := []piece{{Text: t}}
		switch {
		case t == "array" && len(s.PrefixItems) > 0:
			var items [][]piece
			for _, item := range s.PrefixItems {
				items = append(items, b.kindAt(item, "any", depth+1))
			}
			name = append([]piece{{Text: "array of ("}}, join(items, ", ")...)
			name = append(name, piece{Text: ")"})
		case t == "array" && s.Items != nil:
			name = append([]piece{{Text: "array of "}}, grouped(b.kindAt(s.Items, "any", depth+1))...)
		case t == "object" && len(s.Properties) == 0 && s.AdditionalProperties != nil && s.AdditionalProperties.Bool == nil:
			name = append([]piece{{Text: "map of "}}, grouped(b.kindAt(s.AdditionalProperties, "any", depth+1))...)
		case s.Format != "" && (t == "string" || t == "integer" || t == "number"):
			name = append(name, piece{Text: " <" + s.Format + ">", Soft: true})
		}
		names = append(names, name)
	}
	return join(names, " or ")
}

// grouped puts a type that has alternatives into parentheses.
func grouped(name []piece) []piece {
	if !slices.ContainsFunc(name, func(p piece) bool { return slices.Contains([]string{" or ", " and/or ", " and "}, p.Text) }) {
		return name
	}
	name = append([]piece{{Text: "("}}, name...)
	return append(name, piece{Text: ")"})
}

func join(names [][]piece, joint string) []piece {
	var all []piece
	for i, name := range names {
		if i > 0 {
			all = append(all, piece{Text: joint})
		}
		all = append(all, name...)
	}
	return all
}

// rowWriter lists what is inside a schema, with what is inside that below it.
type rowWriter struct {
	b    *builder
	rows []row
	via  []string // references being followed
}

func (w *rowWriter) add(r row) {
	if len(w.rows) < maxRows {
		w.rows = append(w.rows, r)
	}
}

// inside lists the parts of a schema that are written in place. The names in
// required are those that a schema around it requires, too.
func (w *rowWriter) inside(s *schema, depth int, required []string) {
	if s == nil || s.Bool != nil || depth > maxDepth || len(w.rows) >= maxRows {
		return
	}
	if s.Ref != "" {
		if _, ok := w.b.component(s.Ref); !ok && !slices.Contains(w.via, s.Ref) {
			w.via = append(w.via, s.Ref)
			w.inside(w.b.target(s.Ref), depth, required)
			w.via = w.via[:len(w.via)-1]
		}
	}
	required = slices.Concat(required, s.Required)
	for _, part := range s.AllOf {
		if part != nil && part.Ref == "" {
			required = append(required, part.Required...)
		}
	}
	for _, p := range s.Properties {
		w.property(row{Name: p.Key, Required: slices.Contains(required, p.Key)}, p.Value, depth)
	}
	for _, p := range s.PatternProperties {
		w.property(row{Name: "names like " + p.Key, Free: true}, p.Value, depth)
	}
	if more := s.AdditionalProperties; more != nil && more.Bool == nil {
		if len(s.Properties) > 0 {
			w.property(row{Name: "any other name", Free: true}, more, depth)
		} else {
			w.inside(more, depth, nil)
		}
	}
	w.inside(s.Items, depth, nil)
	for _, item := range s.PrefixItems {
		w.inside(item, depth, nil)
	}
	for _, part := range s.AllOf {
		w.inside(part, depth, required)
	}
	w.options(slices.Concat(s.OneOf, s.AnyOf), s, depth)
}

func (w *rowWriter) property(r row, s *schema, depth int) {
	r.Depth = depth
	r.Type = w.b.kind(s)
	r.Facts = w.b.facts(s)
	if s != nil {
		r.Text = w.b.text(s.Description)
		r.Deprecated = s.Deprecated
		r.ReadOnly = s.ReadOnly
		r.WriteOnly = s.WriteOnly
	}
	w.add(r)
	w.inside(s, depth+1, nil)
}

// options lists alternatives that are written in place and have more to say
// than their type.
func (w *rowWriter) options(options []*schema, around *schema, depth int) {
	unsaid := "any"
	if own := w.b.typeWords(around, "any", 0); own != nil {
		unsaid = own[0].Text
	}
	for _, o := range options {
		if o == nil || o.Bool != nil || o.Ref != "" {
			continue
		}
		r := row{
			Name:  "one option",
			Free:  true,
			Depth: depth,
			Type:  w.b.kindAt(o, unsaid, 0),
			Facts: w.b.facts(o),
			Text:  w.b.text(o.Description),
		}
		if o.Title != "" {
			r.Name = o.Title
		}
		before := len(w.rows)
		w.add(r)
		w.inside(o, depth+1, nil)
		if len(w.rows) == before+1 && len(r.Facts) == 0 && len(r.Text) == 0 {
			w.rows = w.rows[:before]
		}
	}
}

// typeOf names the JSON type of a value.
func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case list:
		return "array"
	case object:
		return "object"
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "number"
		}
	}
	return "integer"
}
