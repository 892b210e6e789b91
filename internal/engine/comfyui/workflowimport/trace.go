package workflowimport

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// place is an input of a node.
type place struct{ id, name string }

// String returns the place as manifests have it.
func (p place) String() string { return p.id + "." + p.name }

func (d *manifestBuilder) classOf(id string) nodeClass { return d.classes[d.nodes[id].Class] }

// specOf returns the description of an input, also of one that a dynamic
// choice or a growing list of inputs has added to the node.
func (d *manifestBuilder) specOf(p place) inputSpec {
	return d.specIn(p.id, p.name, func(name string) inputSpec { return d.classOf(p.id).inputSpecOf(name) }, "")
}

func (d *manifestBuilder) specIn(id, name string, lookUp func(name string) inputSpec, prefix string) inputSpec {
	if s := lookUp(name); s.kind != "" {
		return s
	}
	for at := range len(name) {
		if name[at] != '.' {
			continue
		}
		s := lookUp(name[:at])
		further := name[at+1:]
		switch s.kind {
		case dynamicCombo:
			choice, ok := s.choiceNamed(d.nodes[id].Inputs[prefix+name[:at]])
			if !ok {
				return inputSpec{}
			}
			return d.specIn(id, further, func(name string) inputSpec {
				if s, ok := choice.Inputs.Required.byName[name]; ok {
					return s
				}
				return choice.Inputs.Optional.byName[name]
			}, prefix+name[:at+1])
		case autogrow:
			return elementSpec(s)
		}
	}
	return inputSpec{}
}

// elementSpec returns the description of the elements of a growing list of
// inputs.
func elementSpec(s inputSpec) inputSpec {
	var template struct {
		Input struct {
			Required inputSpecs `json:"required"`
			Optional inputSpecs `json:"optional"`
		} `json:"input"`
	}
	_ = json.Unmarshal(s.about.TemplateHint, &template) // an unknown description is a slot for links
	for _, specs := range []inputSpecs{template.Input.Required, template.Input.Optional} {
		for _, name := range specs.names {
			return specs.byName[name]
		}
	}
	return inputSpec{}
}

// inputNames returns the names of a node's inputs in the order of its class;
// others follow in alphabetical order.
func (d *manifestBuilder) inputNames(id string) []string {
	c := d.classOf(id)
	order := slices.Concat(c.Input.Required.orderedNames(c.InputOrder.Required), c.Input.Optional.orderedNames(c.InputOrder.Optional))
	var all []string
	for _, name := range slices.Concat(order, slices.Sorted(maps.Keys(d.nodes[id].Inputs))) {
		if _, has := d.nodes[id].Inputs[name]; has && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// literalOf returns the value of an input that is not linked and is a text, a
// number or a boolean.
func (d *manifestBuilder) literalOf(p place) (any, bool) {
	v, ok := d.nodes[p.id].Inputs[p.name]
	switch v.(type) {
	case string, bool, json.Number:
		return v, ok
	}
	return nil, false
}

func (d *manifestBuilder) linkOf(p place) (link, bool) {
	l, ok := asLink(d.nodes[p.id].Inputs[p.name])
	if _, exists := d.nodes[l.from]; !exists {
		return link{}, false
	}
	return l, ok
}

// findLive finds the nodes whose outputs a node with results needs, directly
// or not. Other nodes of a workflow never run.
func (d *manifestBuilder) findLive() {
	d.live = map[string]bool{}
	var open []string
	for _, id := range d.order {
		if d.classOf(id).OutputNode {
			open = append(open, id)
		}
	}
	for len(open) > 0 {
		id := open[len(open)-1]
		open = open[:len(open)-1]
		if d.live[id] {
			continue
		}
		d.live[id] = true
		for name := range d.nodes[id].Inputs {
			if l, ok := d.linkOf(place{id, name}); ok {
				open = append(open, l.from)
			}
		}
	}
}

// maxHops bounds how many nodes a value is followed through.
const maxHops = 64

// followValue follows the links from an input back to the input that
// determines its value, through nodes that only pass a value on: primitives,
// reroutes and switches. It returns false if the value is computed.
func (d *manifestBuilder) followValue(p place) (place, bool) {
	for range maxHops {
		if _, ok := d.literalOf(p); ok {
			return p, true
		}
		l, ok := d.linkOf(p)
		if !ok {
			return place{}, false
		}
		name, ok := d.passedInput(l)
		if !ok {
			return place{}, false
		}
		p = place{l.from, name}
	}
	return place{}, false
}

// passedInput returns the input of a node whose value one of its outputs has
// unchanged.
func (d *manifestBuilder) passedInput(l link) (string, bool) {
	kind := d.classOf(l.from).outputType(l.slot)
	names := d.inputNames(l.from)
	if name, ok := d.switchedInput(l.from); ok {
		return name, true
	}
	var plain []string
	linked := 0
	for _, name := range names {
		p := place{l.from, name}
		s := d.specOf(p)
		if from, ok := d.linkOf(p); ok {
			linked++
			origin := d.classOf(from.from).outputType(from.slot)
			if len(names) == 1 && (slotsMatch(origin, kind) || s.kind == "*") {
				return name, true // a reroute, or a node that shows a value
			}
			if len(names) == 1 && s.kind == kind {
				return name, true
			}
			continue
		}
		if _, ok := d.literalOf(p); ok && s.kind == kind && !isTechnical(name) {
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
func (d *manifestBuilder) switchedInput(id string) (string, bool) {
	names := d.inputNames(id)
	for _, name := range names {
		kind := d.specOf(place{id, name}).kind
		if kind != "BOOLEAN" && kind != "INT" {
			continue
		}
		from, ok := d.followSelector(place{id, name})
		if !ok {
			continue
		}
		v, _ := d.literalOf(from)
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
func (d *manifestBuilder) followSelector(p place) (place, bool) {
	if _, ok := d.literalOf(p); ok {
		return p, true
	}
	l, ok := d.linkOf(p)
	if !ok {
		return place{}, false
	}
	for _, name := range d.inputNames(l.from) {
		from := place{l.from, name}
		if _, ok := d.literalOf(from); ok && len(d.nodes[l.from].Inputs) == 1 {
			return from, true
		}
	}
	return place{}, false
}

// isBranch reports whether an input of a switch has the value for a selection:
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

// splitName splits the name of an input into words in lower case.
func splitName(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// hasWord reports whether a name has one of the words.
func hasWord(name string, words ...string) bool {
	return slices.ContainsFunc(splitName(name), func(w string) bool { return slices.Contains(words, w) })
}

// isTechnical reports whether a text input with the name is not text that a
// person would write.
func isTechnical(name string) bool {
	return hasWord(name,
		"prefix", "suffix", "delimiter", "separator", "find", "pattern", "regex", "expression", "formula", "code", "shader",
		"path", "file", "filename", "folder", "directory", "url", "key", "keys", "token", "sigmas", "points", "coordinates", "bboxes",
		"format", "mode", "device", "dtype", "json", "config", "id", "uuid", "name", "names", "color", "colour", "version", "model", "ext", "extension",
	)
}
