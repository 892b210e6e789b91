package workflowimport

import (
	"slices"
	"strings"
)

// isTextNode reports whether a node only processes text: all its inputs and
// outputs are plain values.
func (w *workflow) isTextNode(id string) bool {
	c := w.classOf(id)
	if len(c.Output) == 0 {
		return false
	}
	for i := range c.Output {
		if !slices.Contains([]string{"STRING", "INT", "FLOAT", "BOOLEAN", combo, "*"}, c.outputType(i)) {
			return false
		}
	}
	for name := range w.nodes[id].Inputs {
		for _, kind := range strings.Split(w.specOf(inputRef{id, name}).kind, ",") {
			if !slices.Contains([]string{"STRING", "INT", "FLOAT", "BOOLEAN", combo, "*", "", matchType}, kind) {
				return false
			}
		}
	}
	return true
}

// usesText reports whether an input accepts text that a person would write:
// text of several lines, or an input with a name such as prompt. It returns
// false for most inputs of nodes that only process text, because these are
// found by following links from the nodes that use the text.
func (w *workflow) usesText(ref inputRef, encoder bool) bool {
	s := w.specOf(ref)
	c := w.classOf(ref.id)
	unknown := s.kind == "" && hasWord(ref.name, "prompt") // an input that the server does not describe
	switch {
	case s.kind != "STRING" && !unknown || isTechnical(ref.name):
		return false
	case c.OutputNode && !hasWord(ref.name, "prompt"):
		return false
	case encoder:
		return s.about.Multiline || roleOf(ref.name, false) != otherRole
	case hasWord(ref.name, "prompt"):
		return true
	case w.isTextNode(ref.id):
		return false
	}
	return s.about.Multiline || slices.Contains([]string{"text", "lyrics", "tags", "positive", "negative", "script", "caption"}, strings.ToLower(ref.name))
}

// hasPromptInput reports whether a node has an input for a prompt.
func (w *workflow) hasPromptInput(id string) bool {
	return slices.ContainsFunc(w.inputNames(id), func(name string) bool { return w.usesText(inputRef{id, name}, false) })
}

// hasLinkedInput reports whether a node has a linked input of the given type.
func (w *workflow) hasLinkedInput(id, kind string) bool {
	for name := range w.nodes[id].Inputs {
		if l, ok := w.linkOf(inputRef{id, name}); ok && w.classOf(l.from).outputType(l.slot) == kind {
			return true
		}
	}
	return false
}

// makesMedia reports whether a node creates media: it outputs a latent, a
// picture, a video or sound, and does not only change an input of the same
// type.
func (w *workflow) makesMedia(id string) bool {
	c := w.classOf(id)
	for i := range c.Output {
		switch kind := c.outputType(i); kind {
		case "LATENT", "CONDITIONING", "NOISE":
			return true
		case "IMAGE", "VIDEO", "AUDIO":
			if !w.hasLinkedInput(id, kind) || w.hasPromptInput(id) {
				return true
			}
		default:
			if strings.Contains(kind, "EMBED") { // embeddings of video models
				return true
			}
		}
	}
	return false
}
