package workflowimport

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// checkValues compares the fixed values of a workflow with the server's
// description of the nodes. It returns a warning for every value that the
// server would refuse, such as the name of a model that the server does not
// have.
func checkValues(w *workflow, f *form) []string {
	var warnings []string
	for _, id := range w.order {
		if !w.live[id] {
			continue
		}
		for _, name := range w.inputNames(id) {
			ref := inputRef{id, name}
			v, ok := w.literalOf(ref)
			if !ok || f.isBound(ref) {
				continue
			}
			if problem := describeProblem(w.specOf(ref), v); problem != "" {
				warnings = append(warnings, fmt.Sprintf("Node %s (%s): the input %s has the value %s, %s.", id, w.nodes[id].Class, name, quoteValue(v), problem))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(w.classOf(id).Input.Required.byName)) {
			spec := w.classOf(id).inputSpecOf(name)
			if _, has := w.nodes[id].Inputs[name]; !has && spec.kind != autogrow {
				warnings = append(warnings, fmt.Sprintf("Node %s (%s) has no value for the input %s, which the server requires.", id, w.nodes[id].Class, name))
			}
		}
	}
	return warnings
}

// describeProblem returns the reason why the server would refuse a value, as
// the end of a sentence, or "" if the server would accept the value.
func describeProblem(s inputSpec, v any) string {
	switch s.kind {
	case combo, dynamicCombo:
		if s.isUpload() || len(s.about.Remote) > 0 || hasOption(s, v) {
			return ""
		}
		if text, ok := v.(string); ok && isModelFile(text) {
			return "a file that the server does not have"
		}
		return "an option that the server does not have"
	case "INT", "FLOAT":
		n, ok := floatOf(v)
		low, high, _ := s.numberBounds()
		if ok && (low != nil && n < *low || high != nil && n > *high) {
			return "which is outside of the server's range"
		}
	}
	return ""
}

// hasOption reports whether an input accepts a value. An input without a list
// of options accepts any value; an input with an empty list accepts none.
func hasOption(s inputSpec, v any) bool {
	if s.options == nil {
		return true
	}
	return slices.ContainsFunc(s.options, func(o any) bool {
		if o == v {
			return true
		}
		a, isA := o.(json.Number)
		b, isB := v.(json.Number)
		return isA && isB && a.String() == b.String()
	})
}

// isModelFile reports whether a value is the name of a model file.
func isModelFile(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{".safetensors", ".ckpt", ".pt", ".pth", ".bin", ".gguf", ".sft", ".onnx"}, func(end string) bool { return strings.HasSuffix(name, end) })
}

// quoteValue formats a value of the workflow for messages.
func quoteValue(v any) string {
	text := fmt.Sprint(v)
	if s, ok := v.(string); ok {
		text = fmt.Sprintf("%q", truncateText(s, 120))
	}
	return truncateText(text, 140)
}
