package workflowimport

import (
	"fmt"
	"slices"
	"strings"
)

// findConditioning returns the roles of text encoders: negative if their
// result is used as negative conditioning only, otherwise prompt.
func (t *textFinder) findConditioning() map[string]textRole {
	roles := map[string]textRole{}
	for _, id := range t.workflow.order {
		if !t.workflow.live[id] || t.workflow.classOf(id).hasOutput("CONDITIONING") {
			continue
		}
		for _, name := range t.workflow.inputNames(id) {
			l, ok := t.workflow.linkOf(inputRef{id, name})
			if !ok {
				continue
			}
			role := promptRole
			if hasWord(name, "negative", "neg", "uncond") {
				role = negativeRole
			}
			t.followConditioning(l, role, roles, map[string]bool{})
		}
	}
	return roles
}

// followConditioning follows links from a sampler or guider back to its text
// encoders, through nodes that only change the conditioning. A text that is
// used as positive conditioning anywhere counts as positive, because workflows
// often derive an empty negative prompt from the positive text.
func (t *textFinder) followConditioning(l link, role textRole, roles map[string]textRole, seen map[string]bool) {
	c := t.workflow.classOf(l.from)
	kind := c.outputType(l.slot)
	if kind != "CONDITIONING" && kind != "*" && kind != matchType {
		return
	}
	key := fmt.Sprint(l.from, " ", l.slot, " ", role)
	if seen[key] {
		return
	}
	seen[key] = true
	isText := func(name string) bool { return t.workflow.usesText(inputRef{l.from, name}, true) }
	if kind == "CONDITIONING" && slices.ContainsFunc(t.workflow.inputNames(l.from), isText) {
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
	_, sided := t.workflow.linkOf(inputRef{l.from, side})
	if name, ok := t.workflow.switchedInput(l.from); ok {
		side = name
		sided = true
	}
	for _, name := range t.workflow.inputNames(l.from) {
		if next, ok := t.workflow.linkOf(inputRef{l.from, name}); ok && (!sided || name == side) {
			t.followConditioning(next, role, roles, seen)
		}
	}
}
