// Package manifestdraft drafts tool manifests from the schema that a model
// server has for its model. A draft works without changes and is meant to be
// edited by the operator.
package manifestdraft

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Tool is a draft of a tool's manifest. Empty parts are omitted in YAML.
type Tool struct {
	Name        string            `yaml:"name"`
	Description string            `yaml:"description,omitempty"`
	Tags        []string          `yaml:"tags,omitempty,flow"`
	Price       Price             `yaml:"price,flow"`
	NumResults  *NumResults       `yaml:"num_results,omitempty,flow"`
	Output      Output            `yaml:"output,flow"`
	Engine      Engine            `yaml:"engine"`
	Timeout     string            `yaml:"timeout,omitempty"`
	Fields      []Field           `yaml:"fields"`
	Files       map[string][]byte `yaml:"-"` // files to write to the manifest's folder, by name
	Notes       []string          `yaml:"-"` // remarks for the operator who imports the tool, each a sentence or more
}

// Price is the price of one result, in tokens.
type Price struct {
	Type   string `yaml:"type"`
	Tokens int64  `yaml:"tokens,omitempty"`
}

// NumResults is the range of the number of results that a run may request.
type NumResults struct {
	Min     int64 `yaml:"min"`
	Max     int64 `yaml:"max"`
	Default int64 `yaml:"default,omitempty"`
}

// Output is the output type of the tool and the MIME types of its results.
type Output struct {
	Type      string   `yaml:"type"`
	MimeTypes []string `yaml:"mime_types,flow"`
}

// Engine is the engine that runs the tool, with its settings. Include maps
// settings to JSON files in the manifest's folder, whose content becomes part
// of With.
type Engine struct {
	Name    string            `yaml:"name"`
	With    map[string]any    `yaml:"with,omitempty"`
	Include map[string]string `yaml:"include,omitempty,flow"`
}

// Field is a field of the tool's form.
type Field struct {
	Key        string   `yaml:"key"`
	Type       string   `yaml:"type"`
	Label      string   `yaml:"label"`
	Required   bool     `yaml:"required,omitempty"`
	Default    any      `yaml:"default,omitempty"`
	Help       string   `yaml:"help,omitempty"`
	Advanced   bool     `yaml:"advanced,omitempty"`
	Min        *float64 `yaml:"min,omitempty"`
	Max        *float64 `yaml:"max,omitempty"`
	Step       *float64 `yaml:"step,omitempty"`
	Integer    bool     `yaml:"integer,omitempty"`
	MaxLength  int      `yaml:"max_length,omitempty"`
	MultipleOf int      `yaml:"multiple_of,omitempty"`
	Sizes      []Size   `yaml:"sizes,omitempty"`
	Options    []Option `yaml:"options,omitempty"`
	Accept     []string `yaml:"accept,omitempty,flow"`
	MaxItems   int      `yaml:"max_items,omitempty"`
}

// Option is one option of a select field.
type Option struct {
	Text  string `yaml:"text"`
	Value any    `yaml:"value"`
}

// Size is one option of a size field, in pixels.
type Size struct {
	Text   string `yaml:"text"`
	Width  int    `yaml:"width"`
	Height int    `yaml:"height"`
}

// YAML returns the manifest as YAML. The lines of head become a comment at its
// top.
func (t Tool) YAML(head ...string) ([]byte, error) {
	var b bytes.Buffer
	for _, line := range head {
		fmt.Fprintf(&b, "# %s\n", strings.TrimSpace(line))
	}
	t.Fields = quoteFields(t.Fields)
	var document yaml.Node
	if err := document.Encode(t); err != nil {
		return nil, err
	}
	quoteMergeKeys(&document)
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(&document); err != nil {
		return nil, err
	}
	return b.Bytes(), e.Close()
}

// isWritable reports whether the YAML encoder can write text. The encoder
// writes some texts of several lines that begin with white space as YAML that
// cannot be parsed.
func isWritable(text string) bool {
	return !strings.Contains(text, "\n") || strings.TrimLeft(text, " \t\r\n") == text
}

// quoteFields returns fields in which texts are quoted if the encoder would
// otherwise write them wrongly: texts of several lines that start with a space
// or contain tabs or unusual line breaks.
func quoteFields(fields []Field) []Field {
	quote := func(v any) any {
		text, ok := v.(string)
		first, _ := utf8.DecodeRuneInString(text)
		if !ok || !strings.Contains(text, "\n") || !unicode.IsSpace(first) && !strings.ContainsAny(text, "\t\r\u0085\u2028\u2029") {
			return v
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: text}
	}
	fields = slices.Clone(fields)
	for i, f := range fields {
		fields[i].Default = quote(f.Default)
		fields[i].Options = slices.Clone(f.Options)
		for k, o := range f.Options {
			fields[i].Options[k].Value = quote(o.Value)
		}
	}
	return fields
}

// quoteMergeKeys quotes the string "<<" in a document. The encoder leaves it
// unquoted, although unquoted it is YAML's merge key.
func quoteMergeKeys(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Value == "<<" {
		n.Tag = "!!str"
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, child := range n.Content {
		quoteMergeKeys(child)
	}
}

var notWord = regexp.MustCompile(`[^A-Za-z0-9]+`)

// Slug converts any string to a manifest name: at most 60 lower-case letters,
// digits and hyphens. It returns "tool" if no character is left.
func Slug(text string) string {
	s := strings.Trim(notWord.ReplaceAllString(strings.ToLower(text), "-"), "-")
	if len(s) > 60 {
		s = strings.Trim(s[:60], "-")
	}
	if s == "" {
		return "tool"
	}
	return s
}

// Label converts a name such as guidance_scale to a label such as "Guidance
// scale".
func Label(key string) string {
	s := strings.ToLower(strings.Trim(notWord.ReplaceAllString(key, " "), " "))
	if s == "" {
		return key
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
