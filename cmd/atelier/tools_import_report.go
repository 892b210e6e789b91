package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"atelier/internal/engine/comfyui"
)

// describeImport returns what an import made of a workflow, for people: the
// fields, the inputs that stay fixed and why, and all warnings.
func describeImport(r comfyui.Report) string {
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
