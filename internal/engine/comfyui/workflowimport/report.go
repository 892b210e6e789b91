package workflowimport

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Report describes how a workflow was imported.
type Report struct {
	Source   string // where the workflow was read from
	Fields   []FieldReport
	Fixed    []FixedInput // inputs that stay as they are in the workflow
	Results  []string     // nodes whose files are results, as "node (class)"
	Notes    []string     // decisions that the import made
	Warnings []string     // problems that may keep the tool from working
}

// FieldReport is a field of the tool, with the inputs of the workflow that it
// sets.
type FieldReport struct {
	Key    string
	Type   string
	Inputs []string // node.input
}

// FixedInput is an input of the workflow that is not a field, and the reason.
type FixedInput struct {
	Input  string // node.input
	Class  string
	Value  string
	Reason string
	// Minor means that people do not usually choose such an input.
	Minor bool
}

func (r *Report) addWarning(text string) { r.Warnings = append(r.Warnings, text) }

func (r *Report) addNote(text string) { r.Notes = append(r.Notes, text) }

// listFields lists the fields of a form and the inputs that they set.
func (r *Report) listFields(f *form) {
	for _, field := range f.fields {
		entry := FieldReport{Key: field.Key, Type: field.Type}
		for _, key := range slices.Sorted(maps.Keys(f.bind)) {
			if key == field.Key || strings.HasPrefix(key, field.Key+".") {
				entry.Inputs = append(entry.Inputs, f.bind[key]...)
			}
		}
		r.Fields = append(r.Fields, entry)
	}
}

// listFixed lists the inputs of a workflow that stay as they are.
func (r *Report) listFixed(w *workflow, f *form) {
	for _, id := range w.order {
		for _, name := range w.inputNames(id) {
			ref := inputRef{id, name}
			v, plain := w.literalOf(ref)
			if !plain || f.isBound(ref) {
				continue
			}
			entry := FixedInput{Input: ref.String(), Class: w.nodes[id].Class, Value: quoteValue(v), Reason: f.fixed[ref]}
			switch {
			case !w.live[id]:
				entry.Reason = "no result depends on the node"
				entry.Minor = true
			case entry.Reason == "":
				entry.Reason = "it is a technical setting"
				entry.Minor = true
			}
			r.Fixed = append(r.Fixed, entry)
		}
	}
}

// listResults lists the nodes whose files are results.
func (r *Report) listResults(w *workflow, savers []saver) {
	for _, s := range savers {
		text := fmt.Sprintf("%s (%s)", s.id, w.nodes[s.id].Class)
		if title := w.titleOf(s.id); title != "" {
			text = fmt.Sprintf("%s (%s, %s)", s.id, w.nodes[s.id].Class, title)
		}
		r.Results = append(r.Results, text)
	}
}
