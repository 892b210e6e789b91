package workflowimport

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Report describes what an import made of a workflow.
type Report struct {
	Source   string // what the workflow was read from
	Fields   []FieldReport
	Fixed    []FixedInput // inputs that stay as they are in the workflow
	Results  []string     // nodes whose files are results, as "node (class)"
	Notes    []string     // decisions of the import
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

func (d *manifestBuilder) warn(text string) { d.report.Warnings = append(d.report.Warnings, text) }

func (d *manifestBuilder) note(text string) { d.report.Notes = append(d.report.Notes, text) }

// leaveFixed records why an input is not a field.
func (d *manifestBuilder) leaveFixed(p place, why string) {
	if _, ok := d.fixed[p]; !ok {
		d.fixed[p] = why
	}
}

// completeReport lists the fields and the fixed inputs of the tool.
func (d *manifestBuilder) completeReport() {
	for _, f := range d.fields {
		r := FieldReport{Key: f.Key, Type: f.Type}
		for _, key := range slices.Sorted(maps.Keys(d.bind)) {
			if key == f.Key || strings.HasPrefix(key, f.Key+".") {
				r.Inputs = append(r.Inputs, d.bind[key]...)
			}
		}
		d.report.Fields = append(d.report.Fields, r)
	}
	for _, id := range d.order {
		for _, name := range d.inputNames(id) {
			p := place{id, name}
			v, plain := d.literalOf(p)
			if !plain || d.owner[p] != "" {
				continue
			}
			f := FixedInput{Input: p.String(), Class: d.nodes[id].Class, Value: quoteValue(v), Reason: d.fixed[p]}
			switch {
			case !d.live[id]:
				f.Reason = "no result depends on the node"
				f.Minor = true
			case f.Reason == "":
				f.Reason = "it is a technical setting"
				f.Minor = true
			}
			d.report.Fixed = append(d.report.Fixed, f)
		}
	}
	for _, s := range d.savers {
		text := fmt.Sprintf("%s (%s)", s.id, d.nodes[s.id].Class)
		if title := d.classOf(s.id).titleOf(d.nodes[s.id]); title != "" {
			text = fmt.Sprintf("%s (%s, %s)", s.id, d.nodes[s.id].Class, title)
		}
		d.report.Results = append(d.report.Results, text)
	}
}
