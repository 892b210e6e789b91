package reference

import (
	"bytes"
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A JSON value here is nil, a bool, a json.Number, a string, a list or an
// object, which keeps the order of its members.
type (
	list   []any
	object []member
	member struct {
		name  string
		value any
	}
)

// token is a piece of JSON text and what it is, for its colour.
type token struct{ Class, Text string }

// plain gives the value that a node of the document holds.
func plain(n *yaml.Node) any {
	n = original(n)
	switch n.Kind {
	case yaml.SequenceNode:
		l := list{}
		for _, c := range n.Content {
			l = append(l, plain(c))
		}
		return l
	case yaml.MappingNode:
		o := object{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			o = append(o, member{n.Content[i].Value, plain(n.Content[i+1])})
		}
		return o
	case yaml.ScalarNode:
		switch n.Tag {
		case "!!null":
			return nil
		case "!!bool":
			return strings.EqualFold(n.Value, "true")
		case "!!int", "!!float":
			if json.Valid([]byte(n.Value)) { // YAML also has 0x1F and .inf
				return json.Number(n.Value)
			}
		}
	}
	return n.Value
}

// tokens writes a value as indented JSON.
func tokens(v any) []token {
	var w jsonWriter
	w.value(v, "\n")
	return w.tokens
}

// compact writes a value as JSON on one line.
func compact(v any) string {
	var w jsonWriter
	w.value(v, "")
	return text(w.tokens)
}

func text(ts []token) string {
	var b strings.Builder
	for _, t := range ts {
		b.WriteString(t.Text)
	}
	return b.String()
}

type jsonWriter struct{ tokens []token }

// add appends a piece; neighbours of one class become one.
func (w *jsonWriter) add(class, text string) {
	if last := len(w.tokens) - 1; last >= 0 && w.tokens[last].Class == class {
		w.tokens[last].Text += text
		return
	}
	w.tokens = append(w.tokens, token{class, text})
}

// value writes v. The line is what starts a new line at this depth, nothing
// for all on one line.
func (w *jsonWriter) value(v any, line string) {
	switch v := v.(type) {
	case nil:
		w.add("word", "null")
	case bool:
		word := "false"
		if v {
			word = "true"
		}
		w.add("word", word)
	case json.Number:
		w.add("number", v.String())
	case string:
		w.add("string", quoted(v))
	case list:
		w.nest("[", "]", len(v), line, func(i int, line string) { w.value(v[i], line) })
	case object:
		w.nest("{", "}", len(v), line, func(i int, line string) {
			w.add("name", quoted(v[i].name))
			w.add("", ": ")
			w.value(v[i].value, line)
		})
	}
}

func (w *jsonWriter) nest(open, end string, n int, line string, item func(i int, line string)) {
	inner := line
	if line != "" {
		inner += "  "
	}
	w.add("", open)
	for i := range n {
		if i > 0 {
			w.add("", ",")
			if line == "" {
				w.add("", " ")
			}
		}
		w.add("", inner)
		item(i, inner)
	}
	if n > 0 {
		w.add("", line)
	}
	w.add("", end)
}

// quoted writes a string without the escapes for HTML that json.Marshal adds.
func quoted(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}

// literal writes a value of the document for a sentence: text as it is, unless
// it could be taken for something else.
func literal(n *yaml.Node) string {
	v := plain(n)
	if s, ok := v.(string); ok && s == strings.TrimSpace(s) && !json.Valid([]byte(s)) && s != "" {
		return s
	}
	return compact(v)
}
