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

// FillOptions says what the inputs came with.
type FillOptions struct {
	// Draft lets required inputs be missing and takes no MULTIPART references:
	// for pricing a run.
	Draft bool
	// Files is how many file parts came with the request; each must be named
	// exactly once.
	Files int
}

// Filled is a form that somebody filled in.
type Filled struct {
	// Values are what the fields got, by key: string, bool, int64, float64,
	// []any or map[string]any. Defaults are filled in; what was left out and
	// has none is absent, and so are media.
	Values map[string]any
	// Refs name the files to work on, in the form's order. There they are also
	// when something else is wrong, as far as each is well-formed itself.
	Refs []Ref
	// Texts are what a person wrote, defaults not among them.
	Texts []TextInput
	// Prompt is what the first PROMPT leaf got, "" where there is none.
	Prompt string
	// Seed is what the first SEED leaf got, nil where that was left out.
	Seed *int64
}

// TextInput is something a person wrote in a field.
type TextInput struct{ Path, Value string }

// maxProblems bounds what one request is told.
const maxProblems = 100

// Fill checks the inputs of a request against the tool's form. Values are what
// JSON gives: string, bool, nil, int64, float64, []any, map[string]any.
//
// All problems come at once, first the form's in its order, then unknown keys,
// then files. Where there is one, what was filled is good for counting only.
func (t *Tool) Fill(inputs map[string]any, o FillOptions) (Filled, []fault.Field) {
	f := inputParser{FillOptions: o, inputs: inputs, knownKeys: map[string]bool{}, claimedParts: map[int64]bool{}}
	f.Values = map[string]any{}
	f.parseFields(t.Fields)
	for _, key := range sortedKeys(inputs) {
		if !f.knownKeys[key] {
			f.addProblem("inputs."+printableName(key), "This tool has no such field.")
		}
	}
	for i := range int64(o.Files) {
		if !f.claimedParts[i] {
			f.addProblem("files."+strconv.FormatInt(i, 10), "No input names this file.")
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
	return f.Filled, f.problems
}

// inputParser walks a form with the inputs in hand.
type inputParser struct {
	FillOptions
	Filled

	inputs       map[string]any
	knownKeys    map[string]bool
	claimedParts map[int64]bool // file parts
	prompt, seed *Field         // the first of each
	problems     []fault.Field
}

func (f *inputParser) addProblem(path, sentence string) {
	if len(f.problems) < maxProblems {
		f.problems = append(f.problems, fault.Field{Path: path, Message: sentence})
	}
}

// printableName is a name that the caller made up, fit to be told back.
func printableName(name string) string { return sanitize.Line(name, 80) }

// toSentence makes one of a problem's text.
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
		taken, problem := l.convertValue(value)
		if problem != "" {
			f.addProblem(path, toSentence(problem))
			return
		}
		f.Values[l.Key] = taken
		if kind == textFamily {
			f.Texts = append(f.Texts, TextInput{path, taken.(string)})
		}
	}
}

// applyDefault fills in the default. One that is itself as good as nothing does not
// help a required field; an empty option is something.
func (f *inputParser) applyDefault(l *Field, path string) {
	if l.Required && !f.Draft && (l.Default == nil || l.isEmptyValue(l.Default) && fieldTypes[l.Type] != selectFamily) {
		f.addProblem(path, "This field is required.")
		return
	}
	if l.Default == nil {
		return
	}
	taken, problem := l.convertValue(l.Default)
	if problem != "" { // the manifest's rules are a little wider than a request's
		taken = l.Default
	}
	f.Values[l.Key] = taken
}

// isEmptyValue tells whether a value stands for none.
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

// convertValue gives a value as engines get it, or says what is wrong with it. What it
// gives shares nothing with the tool.
func (f *Field) convertValue(value any) (taken any, problem string) {
	if p := f.Problem(value); p != "" {
		return nil, p
	}
	switch fieldTypes[f.Type] {
	case textFamily:
		if utf8.RuneCountInString(value.(string)) > maxTextLen {
			return nil, fmt.Sprintf("must have at most %d characters", maxTextLen)
		}
	case numberFamily, seedFamily:
		if !f.Integer() {
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
	}
	return value, ""
}

// toInteger gives a number as a whole one, if it is one and fits.
func toInteger(v any) (n int64, ok bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case float64:
		// Both ends are powers of two, so the comparison is exact.
		if v == math.Trunc(v) && v >= -(1<<63) && v < 1<<63 {
			return int64(v), true
		}
	}
	return 0, false
}
