package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"atelier/internal/engine/comfyui/workflowimport"
)

// importReport is the JSON output of --json about an imported workflow.
type importReport struct {
	Source   string          `json:"source"`
	Fields   []importedField `json:"fields"`
	Fixed    []fixedInput    `json:"fixed"`
	Results  []string        `json:"results"`
	Notes    []string        `json:"notes"`
	Warnings []string        `json:"warnings"`
}

type importedField struct {
	Key    string   `json:"key"`
	Type   string   `json:"type"`
	Inputs []string `json:"inputs"`
}

type fixedInput struct {
	Input  string `json:"input"`
	Class  string `json:"class"`
	Value  string `json:"value"`
	Reason string `json:"reason"`
}

func newImportReport(r workflowimport.Report) importReport {
	all := importReport{
		Source:   r.Source,
		Fields:   []importedField{},
		Fixed:    []fixedInput{},
		Results:  append([]string{}, r.Results...),
		Notes:    append([]string{}, r.Notes...),
		Warnings: append([]string{}, r.Warnings...),
	}
	for _, f := range r.Fields {
		all.Fields = append(all.Fields, importedField{f.Key, f.Type, append([]string{}, f.Inputs...)})
	}
	for _, f := range r.Fixed {
		all.Fixed = append(all.Fixed, fixedInput{f.Input, f.Class, f.Value, f.Reason})
	}
	return all
}

// describeImport returns a human-readable report about an imported workflow:
// the fields, the inputs that stay fixed and why, and all warnings.
func describeImport(r workflowimport.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Read from %s.\n", r.Source)
	b.WriteString("Fields:\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, f := range r.Fields {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", f.Key, f.Type, strings.Join(f.Inputs, ", "))
	}
	_ = w.Flush() // writing to a strings.Builder cannot fail

	minor := 0
	b.WriteString("Fixed:\n")
	w = tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, f := range r.Fixed {
		if f.Minor {
			minor++
			continue
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", f.Input, shorten(f.Value, 50), f.Reason)
	}
	_ = w.Flush()
	fmt.Fprintf(&b, "  %s that people do not usually choose (--json lists them)\n", countNoun(minor, "input", "inputs"))

	fmt.Fprintf(&b, "Results from node %s.\n", strings.Join(r.Results, ", "))
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "Note: %s\n", n)
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(&b, "Warning: %s\n", warning)
	}
	return b.String()
}

// shorten returns text with at most maxRunes characters.
func shorten(text string, maxRunes int) string {
	if runes := []rune(text); len(runes) > maxRunes {
		return string(runes[:maxRunes-1]) + "…"
	}
	return text
}
