package workflowimport

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"atelier/internal/engine/manifestdraft"
)

// textRole is the purpose of a text in a workflow.
type textRole int

// The roles of texts, in the order of their fields.
const (
	promptRole textRole = iota
	negativeRole
	tagsRole
	lyricsRole
	otherRole
	systemRole // an instruction for a language model, which the operator writes
)

// textUse is a node that uses text, with the places that contain the text.
type textUse struct {
	role   textRole
	id     string
	name   string // name of the first input
	places []place
	text   string
	parts  []textLeaf // further texts around the main one
}

// textLeaf is an input with text that goes to a node that uses text.
type textLeaf struct {
	place
	text     string
	box      bool // the node exists only to contain the text
	template bool // the workflow replaces a part of the text
}

// addTexts adds fields for prompts and other texts that a person would write.
func (d *manifestBuilder) addTexts() {
	uses := d.findTexts()
	if !slices.ContainsFunc(uses, func(u textUse) bool { return u.role != negativeRole }) {
		uses = append(uses, d.lastResort(uses)...)
	}
	prompted := slices.ContainsFunc(uses, func(u textUse) bool { return u.role == promptRole })
	used := map[place]bool{}
	for _, role := range []textRole{promptRole, negativeRole, tagsRole, lyricsRole, otherRole} {
		for _, u := range uses {
			if u.role != role {
				continue
			}
			places := slices.DeleteFunc(slices.Clone(u.places), func(p place) bool { return used[p] })
			if len(places) > 0 {
				main := !prompted && role != negativeRole
				d.addText(u, places, main)
				prompted = prompted || main
			}
			for _, p := range places {
				used[p] = true
			}
			for _, part := range u.parts {
				if used[part.place] {
					continue
				}
				used[part.place] = true
				d.addTextPart(part)
			}
		}
	}
}

// maxDefaultText is the maximum length of a text field's default, in
// characters.
const maxDefaultText = 10_000

// addText adds a field for a text. main means that the text is the tool's
// prompt although the workflow calls it otherwise.
func (d *manifestBuilder) addText(u textUse, places []place, main bool) {
	base := "prompt"
	f := manifestdraft.Field{Type: "PROMPT", Label: "Prompt"}
	switch u.role {
	case promptRole:
		main = true
	case negativeRole:
		base = "negative_prompt"
		f = manifestdraft.Field{Type: "NEG_PROMPT", Label: "Negative prompt"}
	case tagsRole:
		base = "tags"
		f = manifestdraft.Field{Type: "TEXT_AREA", Label: "Tags"}
	case lyricsRole:
		base = "lyrics"
		f = manifestdraft.Field{Type: "TEXT_AREA", Label: "Lyrics"}
	default:
		base = d.keyFor(u.name, "text")
		f = manifestdraft.Field{Type: "TEXT_AREA", Label: manifestdraft.Label(u.name)}
	}
	if main {
		f.Type = "PROMPT"
	}
	first := main && !slices.ContainsFunc(d.fields, func(f manifestdraft.Field) bool { return f.Type == "PROMPT" })
	if first {
		f.Required = true
	} else {
		f.Default = defaultText(u.text)
		f.Help = d.classOf(u.id).titleOf(d.nodes[u.id])
	}
	d.addField(base, u.text, places, func() manifestdraft.Field { return f })
}

// addTextPart adds a field for a text that a workflow joins with its prompt.
// Text in a node of its own is meant to be edited; other text stays fixed.
func (d *manifestBuilder) addTextPart(part textLeaf) {
	if !part.box {
		d.leaveFixed(part.place, "it is part of the text around the prompt")
		return
	}
	label := d.classOf(part.id).titleOf(d.nodes[part.id])
	if label == "" {
		label = "Further text"
	}
	d.addField("text", part.String(), []place{part.place}, func() manifestdraft.Field {
		return manifestdraft.Field{Type: "TEXT_AREA", Label: label, Default: defaultText(part.text), Advanced: true}
	})
}

func defaultText(text string) any {
	if text == "" || len([]rune(text)) > maxDefaultText {
		return nil
	}
	return text
}

// findTexts returns the uses of texts in the workflow that a person could
// write.
func (d *manifestBuilder) findTexts() []textUse {
	roles := d.findConditioning()
	var uses []textUse
	for _, id := range d.order {
		if !d.live[id] {
			continue
		}
		encoder := d.classOf(id).hasOutput("CONDITIONING")
		byRole := map[textRole]int{} // index of the encoder's use plus 1
		for _, name := range d.inputNames(id) {
			p := place{id, name}
			if !d.usesText(p, encoder) {
				continue
			}
			role := roleOf(name, d.specOf(p).about.Multiline)
			if encoder && role == promptRole && !hasWord(name, "positive") {
				role = roles[id]
			}
			main, parts := d.mainText(p)
			if main.id == "" {
				continue
			}
			if role == systemRole || isInstruction(main.text) && role != promptRole {
				d.leaveFixed(main.place, "it is an instruction for a language model")
				continue
			}
			if why := technicalText(main.text); why != "" {
				d.leaveFixed(main.place, why)
				continue
			}
			if at := byRole[role]; encoder && at > 0 {
				u := &uses[at-1]
				u.places = append(u.places, main.place)
				u.parts = append(u.parts, parts...)
				continue
			}
			uses = append(uses, textUse{
				role:   role,
				id:     id,
				name:   name,
				places: []place{main.place},
				text:   main.text,
				parts:  parts,
			})
			byRole[role] = len(uses)
		}
	}
	return uses
}

// lastResort returns the text that most likely is the prompt of a workflow in
// which no node is known to use a prompt: the longest text in a node of its
// own, or else the longest text of several lines. uses are the known uses of
// other texts.
func (d *manifestBuilder) lastResort(uses []textUse) []textUse {
	var best textLeaf
	for _, id := range d.order {
		for _, name := range d.inputNames(id) {
			p := place{id, name}
			text, isText := d.nodes[id].Inputs[name].(string)
			s := d.specOf(p)
			known := slices.ContainsFunc(uses, func(u textUse) bool { return slices.Contains(u.places, p) })
			if !isText || !d.live[id] || known || s.kind != "STRING" || !s.about.Multiline || text == "" {
				continue
			}
			if isTechnical(name) || hasWord(name, "replace") || roleOf(name, true) == systemRole || isInstruction(text) || technicalText(text) != "" {
				continue
			}
			leaf := textLeaf{place: p, text: text, box: d.isTextBox(p) && d.isTextNode(id)}
			if best.id == "" || leaf.box && !best.box || leaf.box == best.box && len(leaf.text) > len(best.text) {
				best = leaf
			}
		}
	}
	if best.id == "" {
		return nil
	}
	return []textUse{{
		role:   promptRole,
		id:     best.id,
		name:   best.name,
		places: []place{best.place},
		text:   best.text,
	}}
}

// usesText reports whether an input takes text that a person would write: text
// of several lines, or an input that is called prompt or the like. Nodes that
// only process text are followed from the nodes that use their result.
func (d *manifestBuilder) usesText(p place, encoder bool) bool {
	s := d.specOf(p)
	c := d.classOf(p.id)
	unknown := s.kind == "" && hasWord(p.name, "prompt") // an input that the server does not describe
	switch {
	case s.kind != "STRING" && !unknown || isTechnical(p.name):
		return false
	case c.OutputNode && !hasWord(p.name, "prompt"):
		return false
	case encoder:
		return s.about.Multiline || roleOf(p.name, false) != otherRole
	case hasWord(p.name, "prompt"):
		return true
	case d.isTextNode(p.id):
		return false
	}
	return s.about.Multiline || slices.Contains([]string{"text", "lyrics", "tags", "positive", "negative", "script", "caption"}, strings.ToLower(p.name))
}

// isTextNode reports whether a node only processes text: all its inputs are
// plain values, and its outputs too.
func (d *manifestBuilder) isTextNode(id string) bool {
	c := d.classOf(id)
	if len(c.Output) == 0 {
		return false
	}
	for i := range c.Output {
		if !slices.Contains([]string{"STRING", "INT", "FLOAT", "BOOLEAN", combo, "*"}, c.outputType(i)) {
			return false
		}
	}
	for name := range d.nodes[id].Inputs {
		for _, kind := range strings.Split(d.specOf(place{id, name}).kind, ",") {
			if !slices.Contains([]string{"STRING", "INT", "FLOAT", "BOOLEAN", combo, "*", "", matchType}, kind) {
				return false
			}
		}
	}
	return true
}

// roleOf returns the role of a text by the name of its input.
func roleOf(name string, multiline bool) textRole {
	switch {
	case hasWord(name, "negative", "neg", "uncond"):
		return negativeRole
	case hasWord(name, "system", "template"):
		return systemRole
	case hasWord(name, "lyrics", "lyric"):
		return lyricsRole
	case hasWord(name, "tags", "tag", "genre", "genres"):
		return tagsRole
	case hasWord(name, "prompt", "text", "positive", "caption", "description", "instruction", "query", "message", "speech", "dialogue", "script", "string", "t5xxl", "clip", "llama"):
		return promptRole
	case multiline && hasWord(name, "value", "input", "content", "question"):
		return promptRole
	}
	return otherRole
}

// isInstruction reports whether a text is an instruction for a language model.
func isInstruction(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "You are ") && len(text) > 150
}

// technicalText returns the reason why nobody would write a text by hand, or
// "".
func technicalText(text string) string {
	text = strings.TrimSpace(text)
	switch {
	case (strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")) && json.Valid([]byte(text)):
		return "it is JSON"
	case (strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://")) && !strings.ContainsAny(text, " \n"):
		return "it is an address"
	case text != "" && strings.Trim(text, "0123456789.,;:- \n") == "":
		return "it is a list of numbers"
	}
	return ""
}

// mainText returns the text of an input that a person would write, and the
// other texts that the workflow joins with it.
func (d *manifestBuilder) mainText(p place) (main textLeaf, parts []textLeaf) {
	leaves := d.textLeaves(p, 0, map[string]bool{})
	best := -1
	score := -1
	for i, leaf := range leaves {
		points := 0
		if leaf.box {
			points += 4
		}
		if leaf.text != "" {
			points += 2
		}
		if hasWord(d.classOf(leaf.id).titleOf(d.nodes[leaf.id]), "prompt") {
			points += 4
		}
		if leaf.template || isInstruction(leaf.text) || technicalText(leaf.text) != "" || roleOf(leaf.name, true) == systemRole {
			points = 0
		}
		if points > score || points == score && len(leaf.text) > len(leaves[best].text) {
			best = i
			score = points
		}
	}
	if best < 0 {
		return textLeaf{}, nil
	}
	return leaves[best], slices.Delete(slices.Clone(leaves), best, best+1)
}

// textLeaves returns the inputs whose text reaches an input, through nodes
// that pass text on or join, replace and format it.
func (d *manifestBuilder) textLeaves(p place, depth int, seen map[string]bool) []textLeaf {
	if v, ok := d.literalOf(p); ok {
		text, isText := v.(string)
		if !isText {
			return nil
		}
		return []textLeaf{{place: p, text: text, box: depth > 0 && d.isTextBox(p)}}
	}
	l, ok := d.linkOf(p)
	if !ok || depth > maxHops || seen[l.from] {
		return nil
	}
	seen[l.from] = true
	if name, ok := d.passedInput(l); ok {
		return d.textLeaves(place{l.from, name}, depth+1, seen)
	}
	if !d.isTextNode(l.from) {
		return nil // such as a language model, whose own prompt is a use of text
	}
	var all []textLeaf
	find, _ := d.nodes[l.from].Inputs["find"].(string)
	for _, name := range d.inputNames(l.from) {
		from := place{l.from, name}
		kind := d.specOf(from).kind
		_, linked := d.linkOf(from)
		if isTechnical(name) && !linked || kind != "STRING" && (!linked || kind != "*" && kind != "" && kind != matchType) {
			continue
		}
		if text, isText := d.nodes[l.from].Inputs[name].(string); isText && text == "" {
			continue
		}
		for _, leaf := range d.textLeaves(from, depth+1, seen) {
			leaf.template = leaf.template || find != "" && strings.Contains(leaf.text, find)
			all = append(all, leaf)
		}
	}
	return all
}

// isTextBox reports whether the place is the only text of its node.
func (d *manifestBuilder) isTextBox(p place) bool {
	for name := range d.nodes[p.id].Inputs {
		other := place{p.id, name}
		if _, linked := d.linkOf(other); linked || name != p.name && d.specOf(other).kind == "STRING" {
			return false
		}
	}
	return true
}

// findConditioning returns the roles of text encoders: negative if their
// result is used as negative conditioning only, otherwise prompt.
func (d *manifestBuilder) findConditioning() map[string]textRole {
	roles := map[string]textRole{}
	for _, id := range d.order {
		if !d.live[id] || d.classOf(id).hasOutput("CONDITIONING") {
			continue
		}
		for _, name := range d.inputNames(id) {
			l, ok := d.linkOf(place{id, name})
			if !ok {
				continue
			}
			role := promptRole
			if hasWord(name, "negative", "neg", "uncond") {
				role = negativeRole
			}
			d.followConditioning(l, role, roles, map[string]bool{})
		}
	}
	return roles
}

// followConditioning follows links from a sampler or guider back to its text
// encoders, through nodes that only change the conditioning. A prompt that is
// used as positive anywhere counts as positive, because workflows often derive
// an empty negative prompt from it.
func (d *manifestBuilder) followConditioning(l link, role textRole, roles map[string]textRole, seen map[string]bool) {
	c := d.classOf(l.from)
	kind := c.outputType(l.slot)
	if kind != "CONDITIONING" && kind != "*" && kind != matchType {
		return
	}
	key := fmt.Sprint(l.from, " ", l.slot, " ", role)
	if seen[key] {
		return
	}
	seen[key] = true
	isText := func(name string) bool { return d.usesText(place{l.from, name}, true) }
	if kind == "CONDITIONING" && slices.ContainsFunc(d.inputNames(l.from), isText) {
		if was, ok := roles[l.from]; !ok || was == negativeRole {
			roles[l.from] = role
		}
		return
	}
	side := "positive"
	if role == negativeRole {
		side = "negative"
	}
	if name := c.outputName(l.slot); strings.Contains(name, "negative") || strings.Contains(name, "positive") {
		side = name
	}
	_, sided := d.linkOf(place{l.from, side})
	if name, ok := d.switchedInput(l.from); ok {
		side = name
		sided = true
	}
	for _, name := range d.inputNames(l.from) {
		if next, ok := d.linkOf(place{l.from, name}); ok && (!sided || name == side) {
			d.followConditioning(next, role, roles, seen)
		}
	}
}
