package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"atelier/client"
	"atelier/internal/base/sanitize"
	"atelier/internal/catalog/catalog"
)

// flowKeys are the keys of a flow file, in the order in which they are written.
var flowKeys = []string{"name", "description", "fields", "steps", "results", "shared"}

// partKeys are the keys of fields, steps and sources that are written first, in
// this order. Others follow by name.
var partKeys = []string{
	"id", "tool", "key", "type", "label", "required",
	"default", "min", "for_each", "max", "when", "inputs", "num_results", "otherwise", "drop",
	"field", "step", "result", "width", "height",
}

// flowFile is a flow in a YAML or JSON file.
type flowFile struct {
	draft    client.FlowDraft
	document *catalog.Document // nil if the file cannot be read
	problems []catalog.Problem
}

// readFlowFile reads a file, or standard input if its name is a hyphen. Mistakes
// in it are problems of the flow.
func readFlowFile(s streams, name string) (*flowFile, error) {
	var text []byte
	var err error
	if name == "-" {
		name = "standard input"
		text, err = io.ReadAll(s.stdin)
	} else {
		text, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, usageError{err}
	}
	return parseFlowFile(name, text), nil
}

func parseFlowFile(name string, text []byte) *flowFile {
	f := &flowFile{}
	f.document, f.problems = catalog.ReadDocument(name, text)
	if f.document != nil {
		f.readDraft()
	}
	catalog.SortProblems(f.problems)
	return f
}

// readDraft reads the values of the document.
func (f *flowFile) readDraft() {
	for key, value := range f.document.Values {
		at := []string{key}
		switch key {
		case "name":
			f.draft.Name = readPart[string](f, at, value, "a text")
		case "description":
			text := readPart[string](f, at, value, "a text")
			f.draft.Description = &text
		case "fields":
			f.draft.Fields = readParts[map[string]any](f, at, value, "a mapping")
		case "steps":
			f.draft.Steps = readParts[map[string]any](f, at, value, "a mapping")
		case "results":
			f.draft.Results = readParts[string](f, at, value, "the id of a step")
		case "shared":
			isShared := readPart[bool](f, at, value, "true or false")
			f.draft.Shared = &isShared
		default:
			f.addProblem(at, unknownFlowKey(key))
		}
	}
	for _, key := range []string{"name", "steps"} {
		if _, ok := f.document.Values[key]; !ok {
			f.addProblem([]string{key}, "is required")
		}
	}
}

func unknownFlowKey(key string) string {
	text := "is not a key of a flow"
	if near := sanitize.Nearest(key, flowKeys); near != "" {
		text += " (did you mean " + near + "?)"
	}
	return text + "; the keys are " + strings.Join(flowKeys, ", ")
}

// readPart returns a value of the file. It adds a problem if the value is not
// what the words say.
func readPart[T any](f *flowFile, path []string, value any, what string) T {
	part, ok := value.(T)
	if !ok {
		f.addProblem(path, "must be "+what)
	}
	return part
}

// readParts returns the items of a list of the file.
func readParts[T any](f *flowFile, path []string, value any, what string) []T {
	all := []T{}
	for i, one := range readPart[[]any](f, path, value, "a list") {
		all = append(all, readPart[T](f, append(slices.Clone(path), strconv.Itoa(i)), one, what))
	}
	return all
}

func (f *flowFile) addProblem(path []string, message string) {
	f.problems = append(f.problems, f.document.Locate(catalog.Remark{Path: path, Message: message}))
}

// addRemarks adds the problems that the service has found.
func (f *flowFile) addRemarks(all []client.FlowProblem) {
	for _, one := range all {
		path := strings.FieldsFunc(cleanText(one.Path), func(r rune) bool { return r == '.' })
		f.addProblem(path, cleanText(one.Message))
	}
}

// addRefusal adds the problems for which the service has refused the flow. It
// reports whether there are any.
func (f *flowFile) addRefusal(err error) bool {
	refusal, ok := errors.AsType[*client.Error](err)
	if !ok || refusal.Code != client.CodeInvalidRequest {
		return false
	}
	for _, one := range refusal.Fields() {
		f.addRemarks([]client.FlowProblem{{Path: one.Path, Message: one.Message}})
	}
	catalog.SortProblems(f.problems)
	return len(f.problems) > 0
}

// printFlowFile prints a flow as a file that "flows save" reads, with a comment
// at the top if it is not empty.
func printFlowFile(w io.Writer, comment string, draft client.FlowDraft) error {
	values, err := asValues(draft)
	if err != nil {
		return err
	}
	root := asNode(values, flowKeys)
	root.Style = 0
	unfoldSteps(root)
	if comment != "" {
		root.HeadComment = "# " + comment
	}
	var text bytes.Buffer
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(root), e.Close()); err != nil {
		return fmt.Errorf("write the flow: %w", err)
	}
	_, err = w.Write(text.Bytes())
	return err
}

// unfoldSteps puts every key of a step on a line of its own, and every field on
// one.
func unfoldSteps(root *yaml.Node) {
	for i := 0; i+1 < len(root.Content); i += 2 {
		key := root.Content[i].Value
		list := root.Content[i+1]
		if key != "fields" && key != "steps" || len(list.Content) == 0 {
			continue
		}
		list.Style = 0
		for _, item := range list.Content {
			if key == "steps" {
				item.Style = 0
			}
		}
	}
}

// asValues returns a draft as the object that its JSON has.
func asValues(draft client.FlowDraft) (values map[string]any, err error) {
	text, err := json.Marshal(draft)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&values)
	return values, err
}

// asNode returns a value of decoded JSON as a node whose keys are in a good
// order. Parts that are short are on one line.
func asNode(value any, order []string) *yaml.Node {
	n := &yaml.Node{}
	switch v := value.(type) {
	case map[string]any:
		n.Kind = yaml.MappingNode
		n.Style = styleOf(v)
		for _, key := range sortedKeys(v, order) {
			n.Content = append(n.Content, textNode(key), asNode(v[key], partKeys))
		}
	case []any:
		n.Kind = yaml.SequenceNode
		n.Style = styleOf(v)
		for _, one := range v {
			n.Content = append(n.Content, asNode(one, partKeys))
		}
	case string:
		n = textNode(v)
		if isBlock(v) {
			n.Style = yaml.LiteralStyle
		}
	case json.Number:
		_ = n.Encode(asNumber(v)) // numbers are always encoded
	default:
		_ = n.Encode(v) // booleans and null too
	}
	return n
}

// textNode returns a text, in quotes if YAML could change it. The encoder adds
// quotes to others that need them, such as "true".
func textNode(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// isBlock reports whether a text has several lines that can be written as they
// are. Lines that begin with spaces or tabs would be read as something else.
func isBlock(text string) bool {
	if !strings.Contains(text, "\n") {
		return false
	}
	for line := range strings.SplitSeq(text, "\n") {
		isOdd := strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) })
		if isOdd || line == "" || strings.TrimSpace(line) != line {
			return false
		}
	}
	return true
}

// styleOf puts an object or a list on one line if it is short.
func styleOf(value any) yaml.Style {
	const most = 90 // bytes of its JSON
	if text, err := json.Marshal(value); err != nil || len(text) > most {
		return 0
	}
	return yaml.FlowStyle
}

// asNumber returns a number of JSON as int64 if it is one.
func asNumber(number json.Number) any {
	if whole, err := number.Int64(); err == nil {
		return whole
	}
	value, err := number.Float64()
	if err != nil || math.IsInf(value, 0) {
		return number.String()
	}
	return value
}

// sortedKeys returns the keys of an object: those of the order, and then the
// others by name.
func sortedKeys(object map[string]any, order []string) []string {
	rank := func(key string) int {
		if i := slices.Index(order, key); i >= 0 {
			return i
		}
		return len(order)
	}
	return slices.SortedFunc(maps.Keys(object), func(a, b string) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
}
