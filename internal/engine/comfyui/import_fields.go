package comfyui

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"atelier/internal/engine/manifestdraft"
)

// addPrompts adds fields for the positive and negative prompts of samplers.
func (d *manifestBuilder) addPrompts() {
	away := map[string]bool{} // node ids of text encoders; true if the prompt is only used as negative
	for _, id := range d.order {
		n := d.nodes[id]
		for _, name := range slices.Sorted(maps.Keys(n.Inputs)) {
			l, ok := asLink(n.Inputs[name])
			switch {
			case !ok:
			case name == "positive", name == "conditioning" && !d.classOf(id).hasOutput("CONDITIONING"):
				d.followConditioning(l, false, away, map[string]bool{})
			case name == "negative":
				d.followConditioning(l, true, away, map[string]bool{})
			}
		}
	}
	for _, negative := range []bool{false, true} {
		for _, id := range d.order {
			if is, ok := away[id]; !ok || is != negative {
				continue
			}
			places, text := d.textInputs(id)
			if len(places) == 0 {
				continue
			}
			if negative {
				d.addField("negative_prompt", text, places, func() manifestdraft.Field {
					return manifestdraft.Field{Type: "NEG_PROMPT", Label: "Negative prompt", Default: nilIfEmpty(text)}
				})
			} else {
				d.addField("prompt", text, places, func() manifestdraft.Field {
					return manifestdraft.Field{Type: "PROMPT", Label: "Prompt", Required: true}
				})
			}
		}
	}
}

func nilIfEmpty(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// followConditioning follows links from a sampler back to its text encoders,
// through nodes that only change the conditioning. A prompt that is used as
// positive anywhere counts as positive, because workflows often derive an
// empty negative prompt from it.
func (d *manifestBuilder) followConditioning(l link, negative bool, away, seen map[string]bool) {
	if seen[l.from] || d.classOf(l.from).outputType(l.slot) != "CONDITIONING" {
		return
	}
	seen[l.from] = true
	if places, _ := d.textInputs(l.from); len(places) > 0 {
		if is, ok := away[l.from]; !ok || is {
			away[l.from] = negative
		}
		return
	}
	side := map[bool]string{false: "positive", true: "negative"}[negative]
	inputs := d.nodes[l.from].Inputs
	_, sided := asLink(inputs[side])
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		if next, ok := asLink(inputs[name]); ok && (!sided || name == side) {
			d.followConditioning(next, negative, away, seen)
		}
	}
}

// textInputs returns the inputs that contain the prompt of a text encoder, as
// node.input, and the prompt. The inputs belong to the encoder or to a node
// that only contains a string for it.
func (d *manifestBuilder) textInputs(id string) (places []string, text string) {
	n := d.nodes[id]
	for _, name := range slices.Sorted(maps.Keys(n.Inputs)) {
		s := d.classOf(id).inputSpecOf(name)
		if s.kind != "STRING" || !s.about.Multiline {
			continue
		}
		at := id + "." + name
		v := n.Inputs[name]
		if l, ok := asLink(v); ok {
			if at, v = d.textOf(l); at == "" {
				continue
			}
		}
		if own, ok := v.(string); ok {
			if len(places) == 0 {
				text = own
			}
			places = append(places, at)
		}
	}
	return places, text
}

// textOf returns the only input, as node.input, of a node that outputs a
// string, and the input's value. It returns "" if there is no such input.
func (d *manifestBuilder) textOf(l link) (place string, v any) {
	if d.classOf(l.from).outputType(l.slot) != "STRING" {
		return "", nil
	}
	inputs := d.nodes[l.from].Inputs
	for name := range inputs {
		if d.classOf(l.from).inputSpecOf(name).kind != "STRING" || place != "" {
			return "", nil // the node has other inputs, or several strings
		}
		place = l.from + "." + name
		v = inputs[name]
	}
	return place, v
}

// addFiles adds fields for inputs whose value is the name of an uploaded file.
func (d *manifestBuilder) addFiles() {
	for _, id := range d.order {
		n := d.nodes[id]
		for _, name := range slices.Sorted(maps.Keys(n.Inputs)) {
			_, isText := n.Inputs[name].(string)
			s := d.classOf(id).inputSpecOf(name)
			f := manifestdraft.Field{Required: true}
			var base string
			switch {
			case !isText:
				continue
			case s.about.ImageUpload && strings.Contains(n.Class, "Mask"):
				base = "mask"
				f.Type = "IMG"
				f.Label = "Mask"
			case s.about.ImageUpload:
				base = "picture"
				f.Type = "IMG"
				f.Label = "Picture"
			case s.about.VideoUpload, n.Class == "VHS_LoadVideo" && name == "video":
				base = "video"
				f.Type = "VIDEO"
				f.Label = "Video"
			case s.about.AudioUpload, n.Class == "VHS_LoadAudioUpload" && name == "audio":
				base = "audio"
				f.Type = "AUDIO"
				f.Label = "Sound"
			default:
				continue
			}
			f.Accept = map[string][]string{
				"IMG": {"image/png", "image/jpeg", "image/webp"}, "VIDEO": {"video/mp4", "video/webm"},
				"AUDIO": {"audio/flac", "audio/mpeg", "audio/wav", "audio/ogg"},
			}[f.Type]
			// Two nodes never have a common field, even if both have the same
			// example file.
			d.addField(base, id, []string{id + "." + name}, func() manifestdraft.Field { return f })
		}
	}
}

// addSizes adds fields for the sizes of the empty latent pictures that
// samplers start with.
func (d *manifestBuilder) addSizes() {
	d.eachInput("INT", func(id, _ string, v any, s inputSpec) {
		w, okW := floatOf(v)
		h, okH := floatOf(d.nodes[id].Inputs["height"])
		if !okW || !okH || !d.classOf(id).hasOutput("LATENT") {
			return
		}
		const maxSide = 2048 // pixels; servers allow sizes that no graphics card has memory for
		low, high, step := s.numberBounds()
		lowH, highH, _ := d.classOf(id).inputSpecOf("height").numberBounds()
		least := max(valueOr(low, 16), valueOr(lowH, 16))
		top := max(min(valueOr(high, maxSide), valueOr(highH, maxSide), maxSide), w, h)
		multiple := max(math.Trunc(valueOr(step, 8)), 1)
		least = math.Ceil(least/multiple) * multiple
		top = math.Floor(top/multiple) * multiple
		fit := func(side float64) int {
			return int(math.Floor(min(max(side, least), top)/multiple) * multiple)
		}
		d.addField("size", fmt.Sprint(w, h), []string{id + ".width"}, func() manifestdraft.Field {
			return manifestdraft.Field{
				Type:       "WIDTH_HEIGHT",
				Label:      "Size",
				Min:        &least,
				Max:        &top,
				MultipleOf: int(min(multiple, 4096)),
				Default:    map[string]any{"width": fit(w), "height": fit(h)},
			}
		})
	}, "width")
}

// addSamplers adds fields for the model and for the settings of samplers, such
// as the steps.
func (d *manifestBuilder) addSamplers() {
	d.addChoice("model", "Model", "MODEL_SINGLE_SELECT", "ckpt_name")
	d.addNumber("steps", "Steps", "STEPS", "INT", 150, "steps")
	d.addNumber("cfg", "Guidance", "CFG", "FLOAT", 30, "cfg")
	d.addNumber("denoise", "Strength", "SLIDER", "FLOAT", 1, "denoise")
	d.addChoice("sampler", "Sampler", "SINGLE_SELECT", "sampler_name")
	d.addChoice("scheduler", "Scheduler", "SINGLE_SELECT", "scheduler")
}

// addNumber adds a field for a numeric input. The field's maximum is the
// server's or limit, whichever is lower, but at least the workflow's value.
func (d *manifestBuilder) addNumber(base, label, fieldType, kind string, limit float64, input string) {
	d.eachInput(kind, func(id, _ string, v any, s inputSpec) {
		own, ok := floatOf(v)
		if !ok {
			return
		}
		d.addField(base, v, []string{id + "." + input}, func() manifestdraft.Field {
			low, high, step := s.numberBounds()
			least := valueOr(low, 0)
			top := max(min(valueOr(high, limit), limit), min(own, valueOr(high, own)), least)
			f := manifestdraft.Field{
				Type:     fieldType,
				Label:    label,
				Min:      &least,
				Max:      &top,
				Step:     step,
				Advanced: fieldType != "STEPS" && fieldType != "CFG",
			}
			if step != nil && *step <= 0 {
				f.Step = nil
			}
			if fitted := min(max(own, least), top); kind == "INT" {
				f.Default = int64(fitted)
			} else {
				f.Default = fitted
			}
			return f
		})
	}, input)
}

// addChoice adds a field for an input whose options the server lists, if there
// is more than one option or if the workflow's value is not among them.
func (d *manifestBuilder) addChoice(base, label, fieldType, input string) {
	d.eachInput(combo, func(id, _ string, v any, s inputSpec) {
		const maxSide = 500
		var options []manifestdraft.Option
		own := 0
		for _, o := range s.options[:min(len(s.options), maxSide)] {
			name, ok := o.(string)
			if !ok || name == "" {
				continue
			}
			if name == v {
				own = len(options)
			}
			text := name
			if fieldType == "MODEL_SINGLE_SELECT" {
				text = strings.TrimSuffix(name, path.Ext(name))
			}
			options = append(options, manifestdraft.Option{Text: truncateText(singleLine(text), 120), Value: name})
		}
		if len(options) == 0 || len(options) == 1 && options[0].Value == v {
			return
		}
		d.addField(base, v, []string{id + "." + input}, func() manifestdraft.Field {
			return manifestdraft.Field{
				Type:     fieldType,
				Label:    label,
				Options:  options,
				Default:  options[own].Value,
				Advanced: fieldType == "SINGLE_SELECT",
			}
		})
	}, input)
}

// singleLine replaces control characters, such as line breaks, with spaces.
func singleLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

// addSeeds binds all seed inputs of the workflow to the seed of the run.
func (d *manifestBuilder) addSeeds() {
	d.eachInput("INT", func(id, name string, _ any, _ inputSpec) {
		if d.bind[keySeed] == nil {
			d.fields = append(d.fields, manifestdraft.Field{Key: keySeed, Type: "SEED", Label: "Seed", Advanced: true})
		}
		d.bind[keySeed] = append(d.bind[keySeed], id+"."+name)
	}, "seed", "noise_seed")
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
