package workflowimport

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// checkValues compares the values of the workflow with the server's
// description of the nodes. It warns of every value that the server would
// refuse, such as the name of a model that the server does not have.
func (d *manifestBuilder) checkValues() {
	for _, id := range d.order {
		if !d.live[id] {
			continue
		}
		for _, name := range d.inputNames(id) {
			p := place{id, name}
			if v, ok := d.literalOf(p); ok && d.owner[p] == "" {
				d.checkValue(p, v)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(d.classOf(id).Input.Required.byName)) {
			spec := d.classOf(id).inputSpecOf(name)
			if _, has := d.nodes[id].Inputs[name]; !has && spec.kind != autogrow {
				d.warn(fmt.Sprintf("Node %s (%s) has no value for the input %s, which the server requires.", id, d.nodes[id].Class, name))
			}
		}
	}
}

func (d *manifestBuilder) checkValue(p place, v any) {
	s := d.specOf(p)
	switch s.kind {
	case combo, dynamicCombo:
		if s.isUpload() || len(s.about.Remote) > 0 || hasOption(s, v) {
			return
		}
		what := "an option"
		if text, ok := v.(string); ok && isModelFile(text) {
			what = "a file"
		}
		d.warn(fmt.Sprintf("Node %s (%s): the input %s has the value %s, %s that the server does not have.", p.id, d.nodes[p.id].Class, p.name, quoteValue(v), what))
	case "INT", "FLOAT":
		n, ok := floatOf(v)
		low, high, _ := s.numberBounds()
		if ok && (low != nil && n < *low || high != nil && n > *high) {
			d.warn(fmt.Sprintf("Node %s (%s): the input %s has the value %s, which is outside of the server's range.", p.id, d.nodes[p.id].Class, p.name, quoteValue(v)))
		}
	}
}

// hasOption reports whether the server has an option. A choice without a list
// of options accepts any; with an empty list it accepts none.
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

// quoteValue returns a value of the workflow for messages.
func quoteValue(v any) string {
	text := fmt.Sprint(v)
	if s, ok := v.(string); ok {
		text = fmt.Sprintf("%q", truncateText(s, 120))
	}
	return truncateText(text, 140)
}
