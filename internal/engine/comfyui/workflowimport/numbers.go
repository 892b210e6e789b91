package workflowimport

import (
	"encoding/json"
	"math"
	"slices"

	"atelier/internal/engine/manifestdraft"
)

// numberFields adds fields for numbers to a form.
type numberFields struct {
	workflow *workflow
	form     *form
}

var (
	numberKinds = []string{"INT", "FLOAT"}
	intKind     = []string{"INT"}
	floatKind   = []string{"FLOAT"}
)

// numberField describes the field for a number.
type numberField struct {
	base, label string
	kind        string // field type
	spec        inputSpec
	limit       float64 // maximum of the field if the server's maximum is higher and the workflow's value is not
	advanced    bool
}

// addNumber adds a field for each numeric input with one of the names.
func (n numberFields) addNumber(f numberField, kinds []string, names ...string) {
	n.workflow.eachInput(kinds, func(_, from inputRef, _ any, s inputSpec) {
		own := f
		own.spec = s
		n.addNumberField(own, from)
	}, names...)
}

// addNumberField adds a field for a number. from is the input that contains the
// number. The field's maximum is the server's maximum or the limit, whichever
// is lower, but at least the workflow's value.
func (n numberFields) addNumberField(f numberField, from inputRef) {
	v, _ := n.workflow.literalOf(from)
	own, ok := floatOf(v)
	if !ok {
		return
	}
	kind := f.spec.kind
	if source := n.workflow.specOf(from).kind; source == "INT" {
		kind = "INT" // a primitive node for whole numbers
	}
	n.form.addField(f.base, own, []inputRef{from}, func() manifestdraft.Field {
		low, high, step := f.spec.numberBounds()
		least := valueOr(low, 0)
		if least < -f.limit { // the server allows any number
			least = min(0, own)
		}
		top := max(min(valueOr(high, f.limit), f.limit), min(own, valueOr(high, own)), least)
		if kind == "INT" {
			least = math.Ceil(least)
			top = math.Floor(top)
			if step != nil {
				whole := max(math.Trunc(*step), 1)
				step = &whole
			}
		}
		field := manifestdraft.Field{
			Type:     f.kind,
			Label:    f.label,
			Min:      &least,
			Max:      &top,
			Step:     step,
			Advanced: f.advanced,
			Integer:  kind == "INT" && f.kind != "STEPS",
		}
		if step != nil && *step <= 0 {
			field.Step = nil
		}
		if fitted := min(max(own, least), top); kind == "INT" {
			field.Default = int64(fitted)
		} else {
			field.Default = fitted
		}
		return field
	})
}

// addComputed adds fields for the primitive numbers from which the workflow
// computes the value of an input, such as a number of seconds from which it
// computes a number of frames.
func (n numberFields) addComputed(ref inputRef, base, label string, limit float64) {
	for _, from := range n.findNumberLeaves(ref, 0, map[string]bool{}) {
		title := n.workflow.titleOf(from.id)
		own := numberField{
			base:  base,
			label: label,
			kind:  "NUM",
			spec:  n.workflow.specOf(from),
			limit: limit,
		}
		switch {
		case hasWord(title, "fps", "framerate") || hasWord(title, "rate") && hasWord(title, "frame"):
			own.base = "fps"
			own.label = "Frames per second"
			own.limit = 60
			own.advanced = true
		case hasWord(title, "seconds", "second", "duration", "sec", "secs"):
			own.base = "seconds"
			own.label = "Length in seconds"
		case hasWord(title, "width"):
			own.base = "width"
			own.label = "Width"
			own.limit = maxSide
		case hasWord(title, "height"):
			own.base = "height"
			own.label = "Height"
			own.limit = maxSide
		case title != "":
			own.label = title
		}
		n.addNumberField(own, from)
	}
}

// findNumberLeaves returns the primitive numbers from which an input's value is
// computed.
func (n numberFields) findNumberLeaves(ref inputRef, depth int, seen map[string]bool) []inputRef {
	l, ok := n.workflow.linkOf(ref)
	if !ok || depth > maxHops || seen[l.from] || !n.workflow.isTextNode(l.from) {
		return nil
	}
	seen[l.from] = true
	if name, ok := n.workflow.passedInput(l); ok {
		from := inputRef{l.from, name}
		if _, plain := n.workflow.literalOf(from); plain {
			if slices.Contains(numberKinds, n.workflow.specOf(from).kind) {
				return []inputRef{from}
			}
			return nil
		}
		return n.findNumberLeaves(from, depth+1, seen)
	}
	var all []inputRef
	for _, name := range n.workflow.inputNames(l.from) {
		all = append(all, n.findNumberLeaves(inputRef{l.from, name}, depth+1, seen)...)
	}
	return all
}

func isNumber(v any) bool {
	_, ok := floatOf(v)
	return ok
}

func valueOr(v *float64, fallback float64) float64 {
	if v == nil {
		return fallback
	}
	return *v
}

// floatOf returns a number in the workflow as a float64. It returns false if v
// is not a number.
func floatOf(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}
