package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"atelier/build/apispec"
)

const (
	pythonRoot  = "clients/python/src/atelier"
	pythonWidth = 100
)

// pythonFiles returns the generated files of the Python library. The calls are
// generated for asyncio; pythonSync derives the blocking form of all asynchronous
// code, of these calls and of what is written by hand.
func pythonFiles(d document) ([]file, error) {
	operations := d.operations()
	if err := checkResources(operations); err != nil {
		return nil, err
	}
	p := python{document: d}
	types, err := p.types()
	if err != nil {
		return nil, err
	}
	calls, err := p.calls(operations)
	if err != nil {
		return nil, err
	}
	files := []file{
		{filepath.Join(pythonRoot, "_types.py"), types},
		{filepath.Join(pythonRoot, "_operations.py"), p.operations(operations)},
		{filepath.Join(pythonRoot, "_async/calls.py"), calls},
		{filepath.Join(pythonRoot, "_sync/calls.py"), pythonSync(calls)},
	}
	written, err := filepath.Glob(filepath.Join(pythonRoot, "_async/*.py"))
	if err != nil {
		return nil, err
	}
	for _, path := range written {
		if name := filepath.Base(path); name != "calls.py" && name != "primitives.py" && name != "__init__.py" {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			files = append(files, file{filepath.Join(pythonRoot, "_sync", name), pythonSync(text)})
		}
	}
	return files, nil
}

// syncRules turn asynchronous Python into blocking Python.
var syncRules = []struct {
	from *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`\basync (def|for|with)\b`), "$1"},
	{regexp.MustCompile(`\bawait `), ""},
	{regexp.MustCompile(`\bStopAsyncIteration\b`), "StopIteration"},
	{regexp.MustCompile(`\bAsyncGenerator\[(.*), None\]`), "Generator[$1, None, None]"},
	{regexp.MustCompile(`\bAsync([A-Z])`), "$1"},
	{regexp.MustCompile(`\b__a(enter|exit|iter|next)__`), "__${1}__"},
	{regexp.MustCompile(`\ba(close|read|iter_bytes|iter_raw)\(`), "$1("},
	{regexp.MustCompile(`\bAwaitable\[(.*)\]\]\]`), "$1]]"},
	{regexp.MustCompile(`, Awaitable\b`), ""},
	{regexp.MustCompile(`\b_async\b`), "_sync"},
}

func pythonSync(text []byte) []byte {
	for _, rule := range syncRules {
		text = rule.from.ReplaceAll(text, []byte(rule.to))
	}
	head := []byte("# Derived from _async by build/clients. Do not edit.\n")
	return append(head, bytes.TrimPrefix(text, []byte(pythonHead))...)
}

const pythonHead = "# Generated from api/openapi.yaml by build/clients. Do not edit.\n"

// python writes Python from a document.
type python struct{ document }

// notTypes are schemas of bytes and streams, which no value in Python has.
var notTypes = []string{
	"AccountEvents",
	"BoardEvents",
	"CreateGenerationForm",
	"FileBytes",
	"GenerationEvents",
	"UploadForm",
}

// types returns the module with a type for each schema.
func (p python) types() ([]byte, error) {
	var classes, aliases bytes.Buffer
	var names []string
	for _, s := range p.Components.Schemas {
		if slices.Contains(notTypes, s.Key) || !p.isNamed(s.Value) {
			continue
		}
		names = append(names, s.Key)
		if isClass(s.Value) {
			if err := p.class(&classes, s.Key, s.Value); err != nil {
				return nil, err
			}
			continue
		}
		expression, err := p.inline(s.Value, true)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Key, err)
		}
		line := s.Key + " = " + expression
		if len(line) > pythonWidth {
			line = s.Key + " = " + breakBrackets(expression)
		}
		aliases.WriteString(line + "\n")
		writeDoc(&aliases, "", s.Value.Description)
	}
	slices.Sort(names)

	var b bytes.Buffer
	b.WriteString(pythonHead)
	b.WriteString(`"""The records of the interface, as dictionaries with known keys."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional, TypedDict, Union

__all__ = [
`)
	for _, name := range names {
		fmt.Fprintf(&b, "    %q,\n", name)
	}
	b.WriteString("]\n\n")
	b.Write(aliases.Bytes())
	b.Write(classes.Bytes())
	return b.Bytes(), nil
}

// isNamed reports whether a schema gets a name in Python; a plain text or number
// is its own type.
func (p python) isNamed(s *apispec.Schema) bool {
	if len(s.Enum) > 0 || isClass(s) || len(s.OneOf)+len(s.AnyOf) > 0 {
		return true
	}
	return slices.Contains(s.Type, "object") || slices.Contains(s.Type, "array")
}

func isClass(s *apispec.Schema) bool { return len(s.Properties) > 0 || len(s.AllOf) > 0 }

// class writes a TypedDict. Keys that may be absent are in a class of their own:
// NotRequired needs Python 3.11.
func (p python) class(b *bytes.Buffer, name string, s *apispec.Schema) error {
	base := "TypedDict"
	for _, part := range s.AllOf {
		if part.Ref != "" {
			base = apispec.RefName(part.Ref)
			continue
		}
		s = part
	}
	var required, optional apispec.Map[*apispec.Schema]
	for _, f := range s.Properties {
		if slices.Contains(s.Required, f.Key) {
			required = append(required, f)
		} else {
			optional = append(optional, f)
		}
	}
	if len(required) > 0 && len(optional) > 0 {
		fmt.Fprintf(b, "\n\nclass _%sRequired(%s):\n", name, base)
		if err := p.fields(b, required); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		base = "_" + name + "Required"
		required = nil
	}
	total := ""
	if len(required) == 0 {
		total = ", total=False"
	}
	fmt.Fprintf(b, "\n\nclass %s(%s%s):\n", name, base, total)
	writeDoc(b, "    ", s.Description)
	if s.Description != "" {
		b.WriteString("\n")
	}
	return p.fields(b, append(required, optional...))
}

func (p python) fields(b *bytes.Buffer, fields apispec.Map[*apispec.Schema]) error {
	for _, f := range fields {
		expression, err := p.inline(f.Value, false)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Key, err)
		}
		line := "    " + f.Key + ": " + expression
		if len(line) > pythonWidth {
			line = "    " + f.Key + ": " + strings.ReplaceAll(breakBrackets(expression), "\n", "\n    ")
		}
		b.WriteString(line + "\n")
		writeDoc(b, "    ", f.Value.Description)
	}
	return nil
}

// inline returns the expression of a type. In an alias, Python evaluates the
// expression at once, so that names of classes must be quoted.
func (p python) inline(s *apispec.Schema, alias bool) (string, error) {
	if s == nil {
		return "Any", nil
	}
	if s.Ref != "" {
		target := p.Components.Schemas.Get(apispec.RefName(s.Ref))
		if target == nil {
			return "", fmt.Errorf("there is no schema %s", apispec.RefName(s.Ref))
		}
		if !p.isNamed(target) {
			return p.inline(target, alias)
		}
		if alias {
			return fmt.Sprintf("%q", apispec.RefName(s.Ref)), nil
		}
		return apispec.RefName(s.Ref), nil
	}
	if choices := append(slices.Clone(s.OneOf), s.AnyOf...); len(choices) > 0 {
		return p.union(choices, alias)
	}
	if s.Const != nil {
		return fmt.Sprintf("Literal[%s]", literal(s.Const)), nil
	}
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			values = append(values, literal(v))
		}
		return optional("Literal["+strings.Join(values, ", ")+"]", s.Type), nil
	}
	var names []string
	for _, t := range s.Type {
		name, err := p.plain(t, s, alias)
		if err != nil {
			return "", err
		}
		if name != "None" {
			names = append(names, name)
		}
	}
	switch len(names) {
	case 0:
		return "Any", nil
	case 1:
		return optional(names[0], s.Type), nil
	}
	return optional("Union["+strings.Join(names, ", ")+"]", s.Type), nil
}

func (p python) union(choices []*apispec.Schema, alias bool) (string, error) {
	var names []string
	var types apispec.TypeNames
	for _, c := range choices {
		if len(c.Type) == 1 && c.Type[0] == "null" {
			types = c.Type
			continue
		}
		name, err := p.inline(c, alias)
		if err != nil {
			return "", err
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 1 {
		return optional(names[0], types), nil
	}
	return optional("Union["+strings.Join(names, ", ")+"]", types), nil
}

// plain returns the Python type of a type of JSON.
func (p python) plain(name string, s *apispec.Schema, alias bool) (string, error) {
	switch name {
	case "null":
		return "None", nil
	case "string":
		return "str", nil
	case "integer":
		return "int", nil
	case "number":
		return "float", nil
	case "boolean":
		return "bool", nil
	case "array":
		items, err := p.inline(s.Items, alias)
		return "List[" + items + "]", err
	case "object":
		value, err := s.Values()
		if err != nil {
			return "", err
		}
		if value == nil && len(s.Properties) > 0 {
			value = s.Properties[0].Value
		}
		values, err := p.inline(value, alias)
		return "Dict[str, " + values + "]", err
	}
	return "", fmt.Errorf("unknown type %q", name)
}

func optional(name string, types apispec.TypeNames) string {
	if slices.Contains(types, "null") {
		return "Optional[" + name + "]"
	}
	return name
}

func literal(v any) string {
	switch v := v.(type) {
	case bool:
		return map[bool]string{true: "True", false: "False"}[v]
	case string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprint(v)
}

// breakBrackets puts the members of the outer brackets on lines of their own.
func breakBrackets(expression string) string {
	open := strings.IndexByte(expression, '[')
	end := strings.LastIndexByte(expression, ']')
	if open < 0 {
		return expression
	}
	var b strings.Builder
	b.WriteString(expression[:open] + "[\n    ")
	depth := 0
	for _, c := range expression[open+1 : end] {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == ',' && depth == 0:
			b.WriteString(",\n   ")
			continue
		}
		b.WriteRune(c)
	}
	b.WriteString(",\n]" + expression[end+1:])
	return b.String()
}

// writeDoc writes a text as a docstring, wrapped.
func writeDoc(b *bytes.Buffer, indent, text string) {
	text = strings.TrimSpace(strings.ReplaceAll(text, `\`, `\\`))
	if text == "" {
		return
	}
	if one := indent + `"""` + text + `"""`; len(one) <= pythonWidth && !strings.Contains(text, "\n") {
		b.WriteString(one + "\n")
		return
	}
	b.WriteString(indent + `"""` + wrapText(text, indent, pythonWidth-len(indent)-3) + "\n" + indent + `"""` + "\n")
}

// wrapText fills the lines of each paragraph; items of lists stay on their lines.
func wrapText(text, indent string, width int) string {
	var lines []string
	line := ""
	flush := func() {
		if line != "" {
			lines = append(lines, line)
		}
		line = ""
	}
	for _, source := range strings.Split(text, "\n") {
		source = strings.TrimSpace(source)
		if source == "" {
			flush()
			lines = append(lines, "")
			continue
		}
		if strings.HasPrefix(source, "- ") {
			flush()
		}
		for _, word := range strings.Fields(source) {
			if line != "" && len(line)+1+len(word) > width {
				flush()
			}
			if line != "" {
				line += " "
			}
			line += word
		}
	}
	flush()
	for i := range lines {
		if i > 0 && lines[i] != "" {
			lines[i] = indent + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}
