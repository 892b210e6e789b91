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

// prompts finds the texts that samplers are told to go towards or away from.
func (d *draft) prompts() {
	away := map[string]bool{} // encoders of texts; false where a sampler goes towards it
	for _, id := range d.order {
		n := d.nodes[id]
		for _, name := range slices.Sorted(maps.Keys(n.Inputs)) {
			l, ok := linked(n.Inputs[name])
			switch {
			case !ok:
			case name == "positive", name == "conditioning" && !d.class(id).makes("CONDITIONING"):
				d.follow(l, false, away, map[string]bool{})
			case name == "negative":
				d.follow(l, true, away, map[string]bool{})
			}
		}
	}
	for _, negative := range []bool{false, true} {
		for _, id := range d.order {
			if is, ok := away[id]; !ok || is != negative {
				continue
			}
			places, text := d.texts(id)
			if len(places) == 0 {
				continue
			}
			if negative {
				d.field("negative_prompt", text, places, func() manifestdraft.Field {
					return manifestdraft.Field{Type: "NEG_PROMPT", Label: "Negative prompt", Default: unlessEmpty(text)}
				})
			} else {
				d.field("prompt", text, places, func() manifestdraft.Field {
					return manifestdraft.Field{Type: "PROMPT", Label: "Prompt", Required: true}
				})
			}
		}
	}
}

func unlessEmpty(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// follow goes back from a sampler to the encoders of its texts, through what
// only changes them. A text that is gone towards somewhere counts as such:
// workflows make an empty negative one of it.
func (d *draft) follow(l link, negative bool, away, seen map[string]bool) {
	if seen[l.from] || d.class(l.from).outputs(l.slot) != "CONDITIONING" {
		return
	}
	seen[l.from] = true
	if places, _ := d.texts(l.from); len(places) > 0 {
		if is, ok := away[l.from]; !ok || is {
			away[l.from] = negative
		}
		return
	}
	side := map[bool]string{false: "positive", true: "negative"}[negative]
	inputs := d.nodes[l.from].Inputs
	_, sided := linked(inputs[side])
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		if next, ok := linked(inputs[name]); ok && (!sided || name == side) {
			d.follow(next, negative, away, seen)
		}
	}
}

// texts are the inputs of an encoder that hold its text, or those of a node
// that only holds a text for it.
func (d *draft) texts(id string) (places []string, text string) {
	n := d.nodes[id]
	for _, name := range slices.Sorted(maps.Keys(n.Inputs)) {
		s := d.class(id).spec(name)
		if s.kind != "STRING" || !s.about.Multiline {
			continue
		}
		at := id + "." + name
		v := n.Inputs[name]
		if l, ok := linked(v); ok {
			if at, v = d.held(l); at == "" {
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

// held finds the one text that a node has which gives text.
func (d *draft) held(l link) (place string, v any) {
	if d.class(l.from).outputs(l.slot) != "STRING" {
		return "", nil
	}
	inputs := d.nodes[l.from].Inputs
	for name := range inputs {
		if d.class(l.from).spec(name).kind != "STRING" || place != "" {
			return "", nil // it does something with more than that
		}
		place = l.from + "." + name
		v = inputs[name]
	}
	return place, v
}

// files are the inputs that name an uploaded file.
func (d *draft) files() {
	for _, id := range d.order {
		n := d.nodes[id]
		for _, name := range slices.Sorted(maps.Keys(n.Inputs)) {
			_, isText := n.Inputs[name].(string)
			s := d.class(id).spec(name)
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
			// Never one field for two nodes: the same example may stand in both.
			d.field(base, id, []string{id + "." + name}, func() manifestdraft.Field { return f })
		}
	}
}

// sizes are those of the empty pictures that samplers begin with.
func (d *draft) sizes() {
	d.each("INT", func(id, _ string, v any, s inputSpec) {
		w, okW := float(v)
		h, okH := float(d.nodes[id].Inputs["height"])
		if !okW || !okH || !d.class(id).makes("LATENT") {
			return
		}
		const most = 2048 // servers allow what no card has the memory for
		low, high, step := s.bounds()
		lowH, highH, _ := d.class(id).spec("height").bounds()
		least := max(or(low, 16), or(lowH, 16))
		top := max(min(or(high, most), or(highH, most), most), w, h)
		multiple := max(math.Trunc(or(step, 8)), 1)
		least = math.Ceil(least/multiple) * multiple
		top = math.Floor(top/multiple) * multiple
		fit := func(side float64) int {
			return int(math.Floor(min(max(side, least), top)/multiple) * multiple)
		}
		d.field("size", fmt.Sprint(w, h), []string{id + ".width"}, func() manifestdraft.Field {
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

// samplers are what sampling is tuned by, and the model.
func (d *draft) samplers() {
	d.choice("model", "Model", "MODEL_SINGLE_SELECT", "ckpt_name")
	d.number("steps", "Steps", "STEPS", "INT", 150, "steps")
	d.number("cfg", "Guidance", "CFG", "FLOAT", 30, "cfg")
	d.number("denoise", "Strength", "SLIDER", "FLOAT", 1, "denoise")
	d.choice("sampler", "Sampler", "SINGLE_SELECT", "sampler_name")
	d.choice("scheduler", "Scheduler", "SINGLE_SELECT", "scheduler")
}

// number makes a field of a number. most bounds it where the server's own limit
// is higher, unless the workflow goes beyond.
func (d *draft) number(base, label, fieldType, kind string, most float64, input string) {
	d.each(kind, func(id, _ string, v any, s inputSpec) {
		own, ok := float(v)
		if !ok {
			return
		}
		d.field(base, v, []string{id + "." + input}, func() manifestdraft.Field {
			low, high, step := s.bounds()
			least := or(low, 0)
			top := max(min(or(high, most), most), min(own, or(high, own)), least)
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

// choice makes a field of a list that the server offers, where there is
// something to choose or the workflow's own value is not among it.
func (d *draft) choice(base, label, fieldType, input string) {
	d.each(combo, func(id, _ string, v any, s inputSpec) {
		const most = 500
		var options []manifestdraft.Option
		own := 0
		for _, o := range s.options[:min(len(s.options), most)] {
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
			options = append(options, manifestdraft.Option{Text: short(line(text), 120), Value: name})
		}
		if len(options) == 0 || len(options) == 1 && options[0].Value == v {
			return
		}
		d.field(base, v, []string{id + "." + input}, func() manifestdraft.Field {
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

// line makes one line without control characters of a name.
func line(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

// seeds are all one: they follow from the seed of the run.
func (d *draft) seeds() {
	d.each("INT", func(id, name string, _ any, _ inputSpec) {
		if d.bind[keySeed] == nil {
			d.fields = append(d.fields, manifestdraft.Field{Key: keySeed, Type: "SEED", Label: "Seed", Advanced: true})
		}
		d.bind[keySeed] = append(d.bind[keySeed], id+"."+name)
	}, "seed", "noise_seed")
}

func or(v *float64, otherwise float64) float64 {
	if v == nil {
		return otherwise
	}
	return *v
}

// float gives a number of the workflow.
func float(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}
