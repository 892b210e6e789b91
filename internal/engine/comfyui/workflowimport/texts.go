package workflowimport

import (
	"encoding/json"
	"slices"
	"strings"

	"atelier/internal/engine/manifestdraft"
)

// textFinder finds the texts of a workflow that a person would write, and adds
// fields for them.
type textFinder struct {
	workflow *workflow
	form     *form
}

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

// textUse is a node that uses text, with the inputs that contain the text.
type textUse struct {
	role  textRole
	id    string
	name  string // name of the first input
	refs  []inputRef
	text  string
	parts []textLeaf // further texts that are joined with the main text
}

// textLeaf is a node input that contains the text itself, found by following
// links back from a node that uses text, such as a prompt encoder.
type textLeaf struct {
	inputRef
	text     string
	box      bool // the node exists only to contain the text
	template bool // the workflow replaces a part of the text
}

// addTexts adds fields for prompts and other texts that a person would write.
func (t *textFinder) addTexts() {
	uses := t.findTexts()
	if !slices.ContainsFunc(uses, func(u textUse) bool { return u.role != negativeRole }) {
		uses = append(uses, t.findLikelyPrompt(uses)...)
	}
	prompted := slices.ContainsFunc(uses, func(u textUse) bool { return u.role == promptRole })
	used := map[inputRef]bool{}
	for _, role := range []textRole{promptRole, negativeRole, tagsRole, lyricsRole, otherRole} {
		for _, u := range uses {
			if u.role != role {
				continue
			}
			refs := slices.DeleteFunc(slices.Clone(u.refs), func(ref inputRef) bool { return used[ref] })
			if len(refs) > 0 {
				main := !prompted && role != negativeRole
				t.addText(u, refs, main)
				prompted = prompted || main
			}
			for _, ref := range refs {
				used[ref] = true
			}
			for _, part := range u.parts {
				if used[part.inputRef] {
					continue
				}
				used[part.inputRef] = true
				t.addTextPart(part)
			}
		}
	}
}

// maxDefaultText is the maximum length of a text field's default, in
// characters.
const maxDefaultText = 10_000

// addText adds a field for a text. main means that the text is the tool's
// prompt although the workflow has another name for it.
func (t *textFinder) addText(u textUse, refs []inputRef, main bool) {
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
		base = keyFor(u.name, "text")
		f = manifestdraft.Field{Type: "TEXT_AREA", Label: manifestdraft.Label(u.name)}
	}
	if main {
		f.Type = "PROMPT"
	}
	first := main && !t.form.hasFieldType("PROMPT")
	if first {
		f.Required = true
	} else {
		f.Default = defaultText(u.text)
		f.Help = t.workflow.titleOf(u.id)
	}
	t.form.addField(base, u.text, refs, func() manifestdraft.Field { return f })
}

// addTextPart adds a field for a text that a workflow joins with its prompt. If
// a node exists only for this text, the text is meant to be edited; otherwise
// it stays fixed.
func (t *textFinder) addTextPart(part textLeaf) {
	if !part.box {
		t.form.leaveFixed(part.inputRef, "it is part of the text around the prompt")
		return
	}
	label := t.workflow.titleOf(part.id)
	if label == "" {
		label = "Further text"
	}
	t.form.addField("text", part.String(), []inputRef{part.inputRef}, func() manifestdraft.Field {
		return manifestdraft.Field{Type: "TEXT_AREA", Label: label, Default: defaultText(part.text), Advanced: true}
	})
}

func defaultText(text string) any {
	if text == "" || len([]rune(text)) > maxDefaultText {
		return nil
	}
	return text
}

// findTexts returns the uses, in the workflow, of texts that a person could
// write.
func (t *textFinder) findTexts() []textUse {
	roles := t.findConditioning()
	var uses []textUse
	for _, id := range t.workflow.order {
		if !t.workflow.live[id] {
			continue
		}
		encoder := t.workflow.classOf(id).hasOutput("CONDITIONING")
		byRole := map[textRole]int{} // by role, 1 plus the index of this encoder's entry in the result
		for _, name := range t.workflow.inputNames(id) {
			ref := inputRef{id, name}
			if !t.workflow.usesText(ref, encoder) {
				continue
			}
			role := roleOf(name, t.workflow.specOf(ref).about.Multiline)
			if encoder && role == promptRole && !hasWord(name, "positive") {
				role = roles[id]
			}
			main, parts := t.findMainText(ref)
			if main.id == "" {
				continue
			}
			if role == systemRole || isInstruction(main.text) && role != promptRole {
				t.form.leaveFixed(main.inputRef, "it is an instruction for a language model")
				continue
			}
			if why := technicalReason(main.text); why != "" {
				t.form.leaveFixed(main.inputRef, why)
				continue
			}
			if at := byRole[role]; encoder && at > 0 {
				u := &uses[at-1]
				u.refs = append(u.refs, main.inputRef)
				u.parts = append(u.parts, parts...)
				continue
			}
			uses = append(uses, textUse{
				role:  role,
				id:    id,
				name:  name,
				refs:  []inputRef{main.inputRef},
				text:  main.text,
				parts: parts,
			})
			byRole[role] = len(uses)
		}
	}
	return uses
}

// findLikelyPrompt returns the text that most likely is the prompt of a
// workflow in which no node is known to use a prompt: the longest text in a
// node that contains only text, or else the longest text of several lines. uses
// are the texts found before.
func (t *textFinder) findLikelyPrompt(uses []textUse) []textUse {
	var best textLeaf
	for _, id := range t.workflow.order {
		for _, name := range t.workflow.inputNames(id) {
			ref := inputRef{id, name}
			text, isText := t.workflow.nodes[id].Inputs[name].(string)
			s := t.workflow.specOf(ref)
			known := slices.ContainsFunc(uses, func(u textUse) bool { return slices.Contains(u.refs, ref) })
			if !isText || !t.workflow.live[id] || known || s.kind != "STRING" || !s.about.Multiline || text == "" {
				continue
			}
			if isTechnical(name) || hasWord(name, "replace") || roleOf(name, true) == systemRole || isInstruction(text) || technicalReason(text) != "" {
				continue
			}
			leaf := textLeaf{inputRef: ref, text: text, box: t.isTextBox(ref) && t.workflow.isTextNode(id)}
			if best.id == "" || leaf.box && !best.box || leaf.box == best.box && len(leaf.text) > len(best.text) {
				best = leaf
			}
		}
	}
	if best.id == "" {
		return nil
	}
	return []textUse{{
		role: promptRole,
		id:   best.id,
		name: best.name,
		refs: []inputRef{best.inputRef},
		text: best.text,
	}}
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

// technicalReason returns the reason why a text looks machine-generated, or ""
// if a person may have written it.
func technicalReason(text string) string {
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

// findMainText returns the text of an input that a person would write, and the
// other texts that the workflow joins with it.
func (t *textFinder) findMainText(ref inputRef) (main textLeaf, parts []textLeaf) {
	leaves := t.findTextLeaves(ref, 0, map[string]bool{})
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
		if hasWord(t.workflow.titleOf(leaf.id), "prompt") {
			points += 4
		}
		if leaf.template || isInstruction(leaf.text) || technicalReason(leaf.text) != "" || roleOf(leaf.name, true) == systemRole {
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

// findTextLeaves returns the inputs that contain the text of the input ref. It
// follows links back through nodes that pass text on, join, replace or format
// it.
func (t *textFinder) findTextLeaves(ref inputRef, depth int, seen map[string]bool) []textLeaf {
	if v, ok := t.workflow.literalOf(ref); ok {
		text, isText := v.(string)
		if !isText {
			return nil
		}
		return []textLeaf{{inputRef: ref, text: text, box: depth > 0 && t.isTextBox(ref)}}
	}
	l, ok := t.workflow.linkOf(ref)
	if !ok || depth > maxHops || seen[l.from] {
		return nil
	}
	seen[l.from] = true
	if name, ok := t.workflow.passedInput(l); ok {
		return t.findTextLeaves(inputRef{l.from, name}, depth+1, seen)
	}
	if !t.workflow.isTextNode(l.from) {
		return nil // for example a language model, whose own prompt is found separately
	}
	var all []textLeaf
	find, _ := t.workflow.nodes[l.from].Inputs["find"].(string)
	for _, name := range t.workflow.inputNames(l.from) {
		from := inputRef{l.from, name}
		kind := t.workflow.specOf(from).kind
		_, linked := t.workflow.linkOf(from)
		if isTechnical(name) && !linked || kind != "STRING" && (!linked || kind != "*" && kind != "" && kind != matchType) {
			continue
		}
		if text, isText := t.workflow.nodes[l.from].Inputs[name].(string); isText && text == "" {
			continue
		}
		for _, leaf := range t.findTextLeaves(from, depth+1, seen) {
			leaf.template = leaf.template || find != "" && strings.Contains(leaf.text, find)
			all = append(all, leaf)
		}
	}
	return all
}

// isTextBox reports whether the input is the only text of its node.
func (t *textFinder) isTextBox(ref inputRef) bool {
	for name := range t.workflow.nodes[ref.id].Inputs {
		other := inputRef{ref.id, name}
		if _, linked := t.workflow.linkOf(other); linked || name != ref.name && t.workflow.specOf(other).kind == "STRING" {
			return false
		}
	}
	return true
}
