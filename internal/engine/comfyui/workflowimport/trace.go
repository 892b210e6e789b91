package workflowimport

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// maxHops is the maximum number of nodes through which a value is followed.
const maxHops = 64

// followValue follows the links from an input back to the input that
// determines its value, through nodes that only pass a value on: primitives,
// reroutes and switches. It returns false if the value is computed.
func (w *workflow) followValue(ref inputRef) (inputRef, bool) {
	for range maxHops {
		if _, ok := w.literalOf(ref); ok {
			return ref, true
		}
		l, ok := w.linkOf(ref)
		if !ok {
			return inputRef{}, false
		}
		name, ok := w.passedInput(l)
		if !ok {
			return inputRef{}, false
		}
		ref = inputRef{l.from, name}
	}
	return inputRef{}, false
}

// passedInput returns the name of the input whose value the node passes on
// unchanged to the linked output.
func (w *workflow) passedInput(l link) (string, bool) {
	kind := w.classOf(l.from).outputType(l.slot)
	names := w.inputNames(l.from)
	if name, ok := w.switchedInput(l.from); ok {
		return name, true
	}
	var plain []string
	linked := 0
	for _, name := range names {
		ref := inputRef{l.from, name}
		s := w.specOf(ref)
		if from, ok := w.linkOf(ref); ok {
			linked++
			origin := w.classOf(from.from).outputType(from.slot)
			if len(names) == 1 && (slotsMatch(origin, kind) || s.kind == "*") {
				return name, true // a reroute, or a node that shows a value
			}
			if len(names) == 1 && s.kind == kind {
				return name, true
			}
			continue
		}
		if _, ok := w.literalOf(ref); ok && s.kind == kind && !isTechnical(name) {
			plain = append(plain, name)
		}
	}
	if linked == 0 && len(plain) == 1 {
		return plain[0], true
	}
	return "", false
}

// switchedInput returns the input that a switch selects, if the node is a
// switch whose selection is known.
func (w *workflow) switchedInput(id string) (string, bool) {
	names := w.inputNames(id)
	for _, name := range names {
		kind := w.specOf(inputRef{id, name}).kind
		if kind != "BOOLEAN" && kind != "INT" {
			continue
		}
		from, ok := w.followSelector(inputRef{id, name})
		if !ok {
			continue
		}
		v, _ := w.literalOf(from)
		for _, branch := range names {
			if branch != name && isBranch(branch, v) {
				return branch, true
			}
		}
	}
	return "", false
}

// followSelector is followValue for the selector of a switch. It follows no
// further switch, so that switches that select each other cannot loop.
func (w *workflow) followSelector(ref inputRef) (inputRef, bool) {
	if _, ok := w.literalOf(ref); ok {
		return ref, true
	}
	l, ok := w.linkOf(ref)
	if !ok {
		return inputRef{}, false
	}
	for _, name := range w.inputNames(l.from) {
		from := inputRef{l.from, name}
		if _, ok := w.literalOf(from); ok && len(w.nodes[l.from].Inputs) == 1 {
			return from, true
		}
	}
	return inputRef{}, false
}

// isBranch reports whether a switch uses the input called name for a selection:
// on_true for true, input2 for 2.
func isBranch(name string, selection any) bool {
	name = strings.ToLower(name)
	switch selection := selection.(type) {
	case bool:
		return slices.Contains(splitName(name), strconv.FormatBool(selection)) || strings.HasSuffix(name, strconv.FormatBool(selection))
	case json.Number:
		digits := strings.TrimLeftFunc(name, func(r rune) bool { return !unicode.IsDigit(r) })
		stem := strings.TrimRight(strings.TrimSuffix(name, digits), "_ ")
		return digits == selection.String() && slices.Contains([]string{"input", "value", "any", "text", "string", "option", "case", "in"}, stem)
	}
	return false
}
