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
	f := filler{FillOptions: o, inputs: inputs, leaves: map[string]bool{}, named: map[int64]bool{}}
	f.Values = map[string]any{}
	f.fields(t.Fields)
	for _, key := range sorted(inputs) {
		if !f.leaves[key] {
			f.problem("inputs."+shown(key), "This tool has no such field.")
		}
	}
	for i := range int64(o.Files) {
		if !f.named[i] {
			f.problem("files."+strconv.FormatInt(i, 10), "No input names this file.")
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

// filler walks a form with the inputs in hand.
type filler struct {
	FillOptions
	Filled

	inputs       map[string]any
	leaves       map[string]bool
	named        map[int64]bool // file parts
	prompt, seed *Field         // the first of each
	problems     []fault.Field
}

func (f *filler) problem(path, sentence string) {
	if len(f.problems) < maxProblems {
		f.problems = append(f.problems, fault.Field{Path: path, Message: sentence})
	}
}

// shown is a name that the caller made up, fit to be told back.
func shown(name string) string { return sanitize.Line(name, 80) }

// sentence makes one of a problem's text.
func sentence(problem string) string { return strings.ToUpper(problem[:1]) + problem[1:] + "." }

func (f *filler) fields(all []Field) {
	for i := range all {
		l := &all[i]
		if l.Key == "" {
			f.fields(l.Children)
			continue
		}
		f.leaves[l.Key] = true
		if l.Type == "PROMPT" && f.prompt == nil {
			f.prompt = l
		}
		if l.Type == "SEED" && f.seed == nil {
			f.seed = l
		}
		f.leaf(l)
	}
}

func (f *filler) leaf(l *Field) {
	path := "inputs." + l.Key
	value := f.inputs[l.Key]
	kind := fieldTypes[l.Type]
	switch {
	case l.leftOut(value):
		f.absent(l, path)
	case kind == mediaShape:
		f.reference(l, path, 0, value)
	case kind == mediaListShape:
		f.references(l, path, value)
	default:
		taken, problem := l.take(value)
		if problem != "" {
			f.problem(path, sentence(problem))
			return
		}
		f.Values[l.Key] = taken
		if kind == textShape {
			f.Texts = append(f.Texts, TextInput{path, taken.(string)})
		}
	}
}

// absent fills in the default. One that is itself as good as nothing does not
// help a required field; an empty option is something.
func (f *filler) absent(l *Field, path string) {
	if l.Required && !f.Draft && (l.Default == nil || l.leftOut(l.Default) && fieldTypes[l.Type] != selectShape) {
		f.problem(path, "This field is required.")
		return
	}
	if l.Default == nil {
		return
	}
	taken, problem := l.take(l.Default)
	if problem != "" { // the manifest's rules are a little wider than a request's
		taken = l.Default
	}
	f.Values[l.Key] = taken
}

// leftOut tells whether a value stands for none.
func (f *Field) leftOut(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		kind := fieldTypes[f.Type]
		return len(v) == 0 && (kind == multiShape || kind == mediaListShape)
	}
	return false
}

// take gives a value as engines get it, or says what is wrong with it. What it
// gives shares nothing with the tool.
func (f *Field) take(value any) (taken any, problem string) {
	if p := f.Problem(value); p != "" {
		return nil, p
	}
	switch fieldTypes[f.Type] {
	case textShape:
		if utf8.RuneCountInString(value.(string)) > maxTextLen {
			return nil, fmt.Sprintf("must have at most %d characters", maxTextLen)
		}
	case numberShape, seedShape:
		if !f.Integer() {
			break
		}
		n, fits := whole(value)
		if !fits {
			return nil, fmt.Sprintf("must be between %d and %d", math.MinInt64, math.MaxInt64)
		}
		return n, ""
	case selectShape, multiShape:
		return f.chosen(value), ""
	case sizeShape:
		size := maps.Clone(value.(map[string]any))
		for name, v := range size {
			n, fits := whole(v)
			if !fits {
				return nil, noSize
			}
			size[name] = n
		}
		return size, ""
	}
	return value, ""
}

// whole gives a number as a whole one, if it is one and fits.
func whole(v any) (n int64, ok bool) {
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
