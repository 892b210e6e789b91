package workflowimport

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"atelier/internal/engine/manifestdraft"
)

// sizeFinder finds the sizes of pictures and videos in a workflow, and adds
// fields for them.
type sizeFinder struct {
	workflow *workflow
	form     *form
	numbers  numberFields
}

// maxSide is the maximum side of a picture, in pixels. Servers allow sizes
// that no graphics card has memory for.
const maxSide = 2048

// addSizes adds fields for the sizes of the latents that samplers start with,
// and of the pictures and videos that nodes make from a prompt.
func (s *sizeFinder) addSizes() {
	for _, id := range s.workflow.order {
		for _, name := range s.workflow.inputNames(id) {
			stem, ok := strings.CutSuffix(name, "width")
			width := inputRef{id, name}
			height := inputRef{id, stem + "height"}
			if !ok || !s.workflow.live[id] || s.workflow.specOf(width).kind != "INT" || s.workflow.specOf(height).kind != "INT" || !s.hasSize(id) {
				continue
			}
			fromW, okW := s.workflow.followValue(width)
			fromH, okH := s.workflow.followValue(height)
			switch {
			case okW && okH && fromW == fromH:
				s.numbers.addNumberField(numberField{
					base:  "side",
					label: "Width and height",
					kind:  "NUM",
					spec:  s.workflow.specOf(width),
					limit: maxSide,
				}, fromW)
			case okW && okH:
				s.addSize(width, height, fromW, fromH)
			default:
				s.numbers.addComputed(width, "width", "Width", maxSide)
				s.numbers.addComputed(height, "height", "Height", maxSide)
			}
		}
	}
	s.bindEqualSizes()
}

// bindEqualSizes binds further inputs to size fields: inputs with the same
// values whose nodes use the size of the results without determining it, such
// as schedulers.
func (s *sizeFinder) bindEqualSizes() {
	s.workflow.eachInput(intKind, func(ref, fromW inputRef, w any, _ inputSpec) {
		fromH, ok := s.workflow.followValue(inputRef{ref.id, strings.TrimSuffix(ref.name, "width") + "height"})
		if !ok || fromH == fromW || s.form.isBound(fromW) || s.form.isBound(fromH) {
			return
		}
		h, _ := s.workflow.literalOf(fromH)
		if key := s.form.findKey("size", sizeValue(w, h)); key != "" {
			s.form.bindInput(key+".width", fromW)
			s.form.bindInput(key+".height", fromH)
		}
	}, "width")
}

// sizeValue returns a width and a height as one string, which identifies the
// field that inputs with this size share.
func sizeValue(w, h any) string { return fmt.Sprintf("%vx%v", w, h) }

// hasSize reports whether the size of a node determines the size of results.
func (s *sizeFinder) hasSize(id string) bool {
	c := s.workflow.classOf(id)
	if c.hasOutput("LATENT") || slices.ContainsFunc(c.Output, func(raw json.RawMessage) bool { return strings.Contains(string(raw), "EMBED") }) {
		return true
	}
	return (c.hasOutput("IMAGE") || c.hasOutput("VIDEO")) && s.workflow.hasPromptInput(id)
}

// addSize adds a field for a width and a height whose values are in the inputs
// fromW and fromH.
func (s *sizeFinder) addSize(width, height, fromW, fromH inputRef) {
	vw, _ := s.workflow.literalOf(fromW)
	vh, _ := s.workflow.literalOf(fromH)
	w, okW := floatOf(vw)
	h, okH := floatOf(vh)
	if !okW || !okH || s.form.isBound(fromW) || s.form.isBound(fromH) {
		return
	}
	low, high, step := s.workflow.specOf(width).numberBounds()
	lowH, highH, _ := s.workflow.specOf(height).numberBounds()
	least := max(valueOr(low, 16), valueOr(lowH, 16), 1)
	top := max(min(valueOr(high, maxSide), valueOr(highH, maxSide), maxSide), w, h)
	multiple := max(math.Trunc(valueOr(step, 8)), 1)
	least = math.Ceil(least/multiple) * multiple
	top = math.Floor(top/multiple) * multiple
	if w < 1 || h < 1 || least > top {
		s.form.leaveFixed(fromW, "it is no size in pixels")
		s.form.leaveFixed(fromH, "it is no size in pixels")
		return
	}
	fit := func(side float64) int {
		return int(math.Floor(min(max(side, least), top)/multiple) * multiple)
	}
	key := s.form.ensureField("size", sizeValue(vw, vh), func() manifestdraft.Field {
		return manifestdraft.Field{
			Type:       "WIDTH_HEIGHT",
			Label:      "Size",
			Min:        &least,
			Max:        &top,
			MultipleOf: int(min(multiple, 4096)),
			Default:    map[string]any{"width": fit(w), "height": fit(h)},
		}
	})
	s.form.bindInput(key+".width", fromW)
	s.form.bindInput(key+".height", fromH)
}
