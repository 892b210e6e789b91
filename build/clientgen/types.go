package main

import (
	"fmt"
	"slices"
	"strings"

	"atelier/build/apispec"
)

// generateTypes writes a Go type for each schema of the document.
func generateTypes(d document) (string, error) {
	var b strings.Builder
	b.WriteString("package client\n\nimport (\n\t\"encoding/json\"\n\t\"time\"\n)\n")
	for _, e := range d.Components.Schemas {
		if skippedTypes[e.Key] {
			continue
		}
		text, err := d.typeSource(e.Key, e.Value)
		if err != nil {
			return "", fmt.Errorf("schema %s: %w", e.Key, err)
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// typeSource writes the Go type of a schema. It is "" for a schema that is a
// plain text, number or map, which its users name directly.
func (d document) typeSource(name string, s *apispec.Schema) (string, error) {
	goName := typeName(name)
	switch {
	case len(s.Enum) > 0:
		return enumSource(goName, s), nil
	case unionTypes[name]:
		return d.structSource(goName, s, d.unionFields(s))
	case len(s.AllOf) > 0, len(s.Properties) > 0:
		properties, required := d.allFields(s)
		return d.structSource(goName, s, fieldsOf(properties, required))
	case slices.Contains(s.Type, "object"):
		return "", nil
	case slices.Contains(s.Type, "string"), slices.Contains(s.Type, "boolean"), slices.Contains(s.Type, "number"):
		return "", nil
	}
	return "", fmt.Errorf("clientgen has no rule for this schema")
}

// enumSource writes a text type and its values as constants.
func enumSource(name string, s *apispec.Schema) string {
	var b strings.Builder
	b.WriteString("\n" + comment("", sentence(name, s.Description)))
	fmt.Fprintf(&b, "type %s string\n\n// The values of %s. Later versions of the service may add more.\nconst (\n", name, name)
	for _, v := range s.Enum {
		fmt.Fprintf(&b, "\t%s%s %s = %q\n", name, exportedName(fmt.Sprint(v)), name, v)
	}
	b.WriteString(")\n")
	return b.String()
}

// field is a member of a struct.
type field struct {
	name     string
	schema   *apispec.Schema
	optional bool
}

// allFields returns the properties of a schema and of the schemas that its
// allOf names.
func (d document) allFields(s *apispec.Schema) (apispec.Map[*apispec.Schema], []string) {
	var properties apispec.Map[*apispec.Schema]
	var required []string
	for _, part := range s.AllOf {
		more, names := d.allFields(d.ResolveSchema(part))
		properties = append(properties, more...)
		required = append(required, names...)
	}
	return append(properties, s.Properties...), append(required, s.Required...)
}

func fieldsOf(properties apispec.Map[*apispec.Schema], required []string) []field {
	var all []field
	for _, p := range properties {
		all = append(all, field{name: p.Key, schema: p.Value, optional: !slices.Contains(required, p.Key)})
	}
	return all
}

// unionFields returns the members of all alternatives of a schema; a member
// that not all of them have is optional.
func (d document) unionFields(s *apispec.Schema) []field {
	var all []field
	for _, alternative := range s.OneOf {
		target := d.ResolveSchema(alternative)
		for _, f := range fieldsOf(target.Properties, target.Required) {
			if i := slices.IndexFunc(all, func(a field) bool { return a.name == f.name }); i < 0 {
				all = append(all, f)
			}
		}
	}
	for i := range all {
		for _, alternative := range s.OneOf {
			if !slices.Contains(d.ResolveSchema(alternative).Required, all[i].name) {
				all[i].optional = true
			}
		}
	}
	return all
}

// structSource writes a struct.
func (d document) structSource(name string, s *apispec.Schema, fields []field) (string, error) {
	text := s.Description
	for _, part := range s.AllOf {
		if text == "" {
			text = part.Description
		}
	}
	var b strings.Builder
	b.WriteString("\n" + comment("", sentence(name, text)))
	fmt.Fprintf(&b, "type %s struct {\n", name)
	for _, f := range fields {
		goType, err := d.goType(f.schema)
		if err != nil {
			return "", fmt.Errorf("%s: %w", f.name, err)
		}
		tag := f.name
		if f.optional {
			tag += ",omitempty"
		}
		if (f.optional || d.isNullable(f.schema)) && takesPointer(goType) && name != "FieldNode" {
			goType = "*" + goType
		}
		if text := f.schema.Description; text != "" {
			b.WriteString(comment("\t", text))
		}
		fmt.Fprintf(&b, "\t%s %s `json:%q`\n", exportedName(f.name), goType, tag)
	}
	b.WriteString("}\n")
	return b.String(), nil
}

// takesPointer reports whether an absent value of a type needs a pointer;
// slices, maps and raw JSON can be nil themselves.
func takesPointer(goType string) bool {
	return !strings.HasPrefix(goType, "[]") && !strings.HasPrefix(goType, "map[") && goType != "any" && goType != "json.RawMessage"
}

// isNullable reports whether null is a value of the schema.
func (d document) isNullable(s *apispec.Schema) bool {
	if slices.Contains(s.Type, "null") {
		return true
	}
	return slices.ContainsFunc(s.OneOf, func(one *apispec.Schema) bool { return slices.Contains(one.Type, "null") })
}

// goType returns the Go type of a value, without regard to its absence.
func (d document) goType(s *apispec.Schema) (string, error) {
	switch s.GoType {
	case "json.RawMessage", "any", "map[string]bool", "[]any":
		return s.GoType, nil
	}
	if s.Ref != "" {
		name := apispec.RefName(s.Ref)
		target, ok := d.Components.Schemas.Find(name)
		switch {
		case !ok:
			return "", fmt.Errorf("there is no schema %s", name)
		case unionTypes[name], len(target.Enum) > 0, len(target.Properties) > 0, len(target.AllOf) > 0:
			return typeName(name), nil
		}
		return d.goType(target)
	}
	if len(s.OneOf) > 0 {
		for _, one := range s.OneOf {
			if !slices.Contains(one.Type, "null") {
				return d.goType(one)
			}
		}
	}
	for _, t := range s.Type {
		switch t {
		case "string":
			if s.Format == "date-time" {
				return "time.Time", nil
			}
			return "string", nil
		case "integer":
			return "int64", nil
		case "number":
			return "float64", nil
		case "boolean":
			return "bool", nil
		case "array":
			item, err := d.goType(s.Items)
			return "[]" + item, err
		case "object":
			return d.mapType(s)
		}
	}
	if len(s.Type) == 0 && len(s.AnyOf) == 0 {
		return "any", nil // a value of any type
	}
	return "", fmt.Errorf("clientgen has no Go type for %v", s.Type)
}

// mapType returns the Go type of an object without properties.
func (d document) mapType(s *apispec.Schema) (string, error) {
	var value apispec.Schema
	if err := s.Additional.Decode(&value); err != nil || s.Additional.Value == "true" {
		return "map[string]any", nil
	}
	item, err := d.goType(&value)
	return "map[string]" + item, err
}
