package catalog

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"atelier/internal/base/fault"
	"atelier/internal/base/sanitize"
)

// InputOptions describe the request that contains the inputs.
type InputOptions struct {
	// PriceOnly allows required inputs to be missing, and rejects references to
	// files that are sent with the request (MULTIPART). It is set when a run is
	// only priced.
	PriceOnly bool
	// Files is the number of files sent with the request. The inputs must refer
	// to each of them exactly once.
	Files int
}

// FormInputs are the validated inputs of a run.
type FormInputs struct {
	// Values are the values by field key, including defaults: string, bool,
	// int64, float64, []any or map[string]any. Fields without a value or
	// default are missing, and so are fields for files.
	Values map[string]any
	// Refs are the referenced files in the order of the form. If there are
	// problems, only the valid references are included.
	Refs []Ref
	// Texts are the texts that a person wrote. Defaults are not included.
	Texts []TextInput
	// Prompt is the value of the first PROMPT field, or "" if there is none.
	Prompt string
	// Seed is the value of the first SEED field, or nil if there is none.
	Seed *int64
}

// TextInput is a text that a person wrote in a field, and the path of the field
// in the request.
type TextInput struct{ Path, Value string }

// maxProblems is the maximum number of problems of the inputs that one response
// lists.
const maxProblems = 100

// ParseInputs validates the inputs of a request against the tool's form. Values
// have the types of decoded JSON: string, bool, nil, int64, float64, []any,
// map[string]any.
//
// It returns all problems together: first problems of fields in the order of
// the form, then unknown keys, then unused files. If there are problems, the
// result may only be used to count the referenced files.
func (t *Tool) ParseInputs(inputs map[string]any, o InputOptions) (FormInputs, []fault.Field) {
	f := inputParser{InputOptions: o, inputs: inputs, knownKeys: map[string]bool{}, claimedParts: map[int64]bool{}}
	f.Values = map[string]any{}
	f.parseFields(t.Fields)
	for _, key := range sortedKeys(inputs) {
		if !f.knownKeys[key] {
			f.addProblem("inputs."+printableName(key), "This tool has no such field.")
		}
	}

	for i := range int64(o.Files) {
		if !f.claimedParts[i] {
			f.addProblem("files."+strconv.FormatInt(i, 10), "No input refers to this file.")
		}
	}
	if f.prompt != nil {
		f.Prompt, _ = f.Values[f.prompt.Key].(string)
	}
	if f.seed != nil {
		if n, ok := f.Values[f.seed.Key].(int64); ok {
			f.Seed = &n
		}
	}
	return f.FormInputs, f.problems
}

// inputParser validates inputs while it visits the fields of a form.
type inputParser struct {
	InputOptions
	FormInputs

	inputs       map[string]any
	knownKeys    map[string]bool
	claimedParts map[int64]bool // indexes of files that an input refers to
	prompt, seed *Field         // first PROMPT field and first SEED field
	problems     []fault.Field
}

func (f *inputParser) addProblem(path, message string) {
	if len(f.problems) < maxProblems {
		f.problems = append(f.problems, fault.Field{Path: path, Message: message})
	}
}

// printableName sanitizes and shortens a name from the request for an error
// message.
func printableName(name string) string { return sanitize.Line(name, 80) }

// toSentence capitalizes the first letter of a message and adds a full stop.
func toSentence(problem string) string { return strings.ToUpper(problem[:1]) + problem[1:] + "." }

func (f *inputParser) parseFields(all []Field) {
	for i := range all {
		l := &all[i]
		if l.Key == "" {
			f.parseFields(l.Children)
			continue
		}

		f.knownKeys[l.Key] = true
		if l.Type == "PROMPT" && f.prompt == nil {
			f.prompt = l
		}
		if l.Type == "SEED" && f.seed == nil {
			f.seed = l
		}

		f.parseLeaf(l)
	}
}

func (f *inputParser) parseLeaf(l *Field) {
	path := "inputs." + l.Key
	value := f.inputs[l.Key]
	kind := fieldTypes[l.Type]
	switch {
	case l.isEmptyValue(value):
		f.applyDefault(l, path)
	case kind == mediaFamily:
		f.parseReference(l, path, 0, value)
	case kind == mediaListFamily:
		f.parseReferences(l, path, value)
	default:
		converted, problem := l.convertValue(value)
		if problem != "" {
			f.addProblem(path, toSentence(problem))
			return
		}

		f.Values[l.Key] = converted
		if kind == textFamily {
			f.Texts = append(f.Texts, TextInput{path, converted.(string)})
		}
	}
}

// applyDefault sets a field without a value to its default. An empty default
// does not satisfy a required field, except if it is an option of a select
// field.
func (f *inputParser) applyDefault(l *Field, path string) {
	if l.Required && !f.PriceOnly && (l.Default == nil || l.isEmptyValue(l.Default) && fieldTypes[l.Type] != selectFamily) {
		f.addProblem(path, "This field is required.")
		return
	}
	if l.Default == nil {
		return
	}

	converted, problem := l.convertValue(l.Default)
	if problem != "" { // some values are valid as a default but not in a request
		converted = l.Default
	}

	f.Values[l.Key] = converted
}

// isEmptyValue reports whether a value from a request counts as missing.
func (f *Field) isEmptyValue(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		kind := fieldTypes[f.Type]
		return len(v) == 0 && (kind == multiSelectFamily || kind == mediaListFamily)
	}
	return false
}

// convertValue validates a value and converts it to the type that engines
// expect. The result shares no memory with the tool.
func (f *Field) convertValue(value any) (converted any, problem string) {
	if p := f.CheckValue(value); p != "" {
		return nil, p
	}
	switch fieldTypes[f.Type] {
	case textFamily:
		if utf8.RuneCountInString(value.(string)) > maxTextLen {
			return nil, fmt.Sprintf("must have at most %d characters", maxTextLen)
		}
	case numberFamily, seedFamily:
		if !f.IsInteger() {
			break
		}

		n, fits := toInteger(value)
		if !fits {
			return nil, fmt.Sprintf("must be between %d and %d", math.MinInt64, math.MaxInt64)
		}
		return n, ""
	case selectFamily, multiSelectFamily:
		return f.resolveOptions(value), ""
	case sizeFamily:
		size := maps.Clone(value.(map[string]any))
		for name, v := range size {
			n, fits := toInteger(v)
			if !fits {
				return nil, sizeMessage
			}
			size[name] = n
		}
		return size, ""
	case boolFamily, mediaFamily, mediaListFamily, noValueFamily: // need no conversion
	}
	return value, ""
}

// toInteger converts a number to int64. ok is false if the number is not whole
// or does not fit.
func toInteger(v any) (n int64, ok bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case float64:
		// Both limits are powers of two, which float64 represents exactly.
		if v == math.Trunc(v) && v >= -(1<<63) && v < 1<<63 {
			return int64(v), true
		}
	}
	return 0, false
}
