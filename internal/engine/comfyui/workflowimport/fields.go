package workflowimport

import (
	"encoding/json"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"

	"atelier/internal/engine/comfyui/nodegraph"
	"atelier/internal/engine/manifestdraft"
)

// addField binds inputs to a field, which create returns. Inputs with the same
// base and value get a common field, for example the steps of two samplers.
// Inputs with other values get fields of their own. An input that is already
// bound keeps its field.
func (d *manifestBuilder) addField(base string, value any, places []place, create func() manifestdraft.Field) {
	places = slices.DeleteFunc(slices.Clone(places), func(p place) bool { return d.owner[p] != "" })
	if len(places) == 0 {
		return
	}
	same := fmt.Sprintf("%s %v", base, value)
	key, ok := d.keys[same]
	if !ok {
		key = d.freeKey(base)
		d.keys[same] = key
		d.createField(key, base, create())
	}
	for _, p := range places {
		d.bindPlace(key, p)
	}
}

// freeKey returns base, or base with a number if another field has that key.
func (d *manifestBuilder) freeKey(base string) string {
	key := base
	for n := 2; d.usedKeys[key]; n++ {
		key = fmt.Sprintf("%s_%d", base, n)
	}
	return key
}

func (d *manifestBuilder) createField(key, base string, f manifestdraft.Field) {
	f.Key = key
	if n := strings.TrimPrefix(key, base+"_"); n != key {
		f.Label += " " + n
	}
	f.Label = truncateText(singleLine(f.Label), 120)
	d.usedKeys[key] = true
	d.fields = append(d.fields, f)
}

func (d *manifestBuilder) bindPlace(key string, p place) {
	if d.owner[p] == "" {
		d.bind[key] = append(d.bind[key], p.String())
		d.owner[p] = key
	}
}

var notKey = regexp.MustCompile(`[^a-z0-9_]+`)

// keyFor returns the key of a field for the input called name.
func (d *manifestBuilder) keyFor(name, fallback string) string {
	key := strings.Trim(notKey.ReplaceAllString(strings.ToLower(name), "_"), "_")
	if key == "" || key[0] < 'a' || key[0] > 'z' || key == nodegraph.KeySeed || key == nodegraph.KeyResults {
		key = fallback
	}
	return key[:min(len(key), 48)]
}

// eachInput calls do for every input of a live node that has one of the names
// and takes values of one of the given kinds, with the place that determines
// its value. The place belongs to the node or to a primitive node.
func (d *manifestBuilder) eachInput(kinds []string, do func(p, from place, v any, s inputSpec), names ...string) {
	for _, id := range d.order {
		if !d.live[id] {
			continue
		}
		for _, name := range d.inputNames(id) {
			p := place{id, name}
			s := d.specOf(p)
			if !slices.Contains(names, lastPart(name)) || !slices.Contains(kinds, s.kind) {
				continue
			}
			if from, ok := d.followValue(p); ok {
				v, _ := d.literalOf(from)
				do(p, from, v, s)
			}
		}
	}
}

// lastPart returns the name of an input without the names of the dynamic
// choices that it belongs to.
func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

var (
	numberKinds = []string{"INT", "FLOAT"}
	intKind     = []string{"INT"}
	floatKind   = []string{"FLOAT"}
)

// addFiles adds fields for inputs whose value is the name of an uploaded file.
func (d *manifestBuilder) addFiles() {
	for _, id := range d.order {
		if !d.live[id] {
			continue
		}
		n := d.nodes[id]
		for _, name := range d.inputNames(id) {
			p := place{id, name}
			if _, isText := n.Inputs[name].(string); !isText {
				continue
			}
			base, f := fileField(n.Class, name, d.specOf(p))
			if base == "" {
				continue
			}
			f.Help = d.classOf(id).titleOf(n)
			// Two nodes never have a common field, even if both have the same
			// example file.
			d.addField(base, id, []place{p}, func() manifestdraft.Field { return f })
		}
	}
}

// fileField returns the field for an input whose value is the name of an
// uploaded file, and the base of the field's key. The base is empty for other
// inputs.
func fileField(class, name string, s inputSpec) (string, manifestdraft.Field) {
	f := manifestdraft.Field{Required: true}
	var base string
	switch {
	case s.about.ImageUpload && strings.Contains(class, "Mask"):
		base = "mask"
		f.Type = "IMG"
		f.Label = "Mask"
	case s.about.ImageUpload:
		base = "picture"
		f.Type = "IMG"
		f.Label = "Picture"
	case s.about.VideoUpload, class == "VHS_LoadVideo" && name == "video":
		base = "video"
		f.Type = "VIDEO"
		f.Label = "Video"
	case s.about.AudioUpload, class == "VHS_LoadAudioUpload" && name == "audio":
		base = "audio"
		f.Type = "AUDIO"
		f.Label = "Sound"
	case strings.HasPrefix(class, "Load3D") && name == "model_file":
		base = "model_3d"
		f.Type = "ASSET_3D"
		f.Label = "3D model"
	default:
		return "", f
	}
	f.Accept = map[string][]string{
		"IMG": {"image/png", "image/jpeg", "image/webp"}, "VIDEO": {"video/mp4", "video/webm"},
		"AUDIO": {"audio/flac", "audio/mpeg", "audio/wav", "audio/ogg"}, "ASSET_3D": {"model/gltf-binary"},
	}[f.Type]
	return base, f
}

// makesMedia reports whether a node starts the making of something: it has a
// latent, a picture, a video or sound as output and does not only change one
// of the same type.
func (d *manifestBuilder) makesMedia(id string) bool {
	c := d.classOf(id)
	for i := range c.Output {
		switch kind := c.outputType(i); kind {
		case "LATENT", "CONDITIONING", "NOISE":
			return true
		case "IMAGE", "VIDEO", "AUDIO":
			if !d.takesLinked(id, kind) || d.takesPrompt(id) {
				return true
			}
		default:
			if strings.Contains(kind, "EMBED") { // of video models
				return true
			}
		}
	}
	return false
}

// takesLinked reports whether a node has a linked input of a type.
func (d *manifestBuilder) takesLinked(id, kind string) bool {
	for name := range d.nodes[id].Inputs {
		if l, ok := d.linkOf(place{id, name}); ok && d.classOf(l.from).outputType(l.slot) == kind {
			return true
		}
	}
	return false
}

func (d *manifestBuilder) takesPrompt(id string) bool {
	return slices.ContainsFunc(d.inputNames(id), func(name string) bool { return d.usesText(place{id, name}, false) })
}

// maxSide is the maximum side of a picture, in pixels. Servers allow sizes
// that no graphics card has memory for.
const maxSide = 2048

// addSizes adds fields for the sizes of what samplers start with, and of what
// nodes with a prompt make.
func (d *manifestBuilder) addSizes() {
	for _, id := range d.order {
		for _, name := range d.inputNames(id) {
			stem, ok := strings.CutSuffix(name, "width")
			width := place{id, name}
			height := place{id, stem + "height"}
			if !ok || !d.live[id] || d.specOf(width).kind != "INT" || d.specOf(height).kind != "INT" || !d.hasSize(id) {
				continue
			}
			fromW, okW := d.followValue(width)
			fromH, okH := d.followValue(height)
			switch {
			case okW && okH && fromW == fromH:
				d.addNumberField(numberField{
					base:  "side",
					label: "Width and height",
					kind:  "NUM",
					spec:  d.specOf(width),
					limit: maxSide,
				}, fromW)
			case okW && okH:
				d.addSize(width, height, fromW, fromH)
			default:
				d.addComputed(width, "width", "Width", maxSide)
				d.addComputed(height, "height", "Height", maxSide)
			}
		}
	}
	d.bindEqualSizes()
}

// bindEqualSizes binds further inputs to size fields: those of nodes that only
// need to know the size of the results, such as a scheduler, and have the same
// values.
func (d *manifestBuilder) bindEqualSizes() {
	d.eachInput(intKind, func(p, fromW place, w any, _ inputSpec) {
		fromH, ok := d.followValue(place{p.id, strings.TrimSuffix(p.name, "width") + "height"})
		if !ok || fromH == fromW || d.owner[fromW] != "" || d.owner[fromH] != "" {
			return
		}
		h, _ := d.literalOf(fromH)
		if key := d.keys[sizeValue(w, h)]; key != "" {
			d.bindPlace(key+".width", fromW)
			d.bindPlace(key+".height", fromH)
		}
	}, "width")
}

// sizeValue returns the key of keys for a size.
func sizeValue(w, h any) string { return fmt.Sprintf("size %vx%v", w, h) }

// hasSize reports whether the size of a node determines the size of results.
func (d *manifestBuilder) hasSize(id string) bool {
	c := d.classOf(id)
	if c.hasOutput("LATENT") || slices.ContainsFunc(c.Output, func(raw json.RawMessage) bool { return strings.Contains(string(raw), "EMBED") }) {
		return true
	}
	return (c.hasOutput("IMAGE") || c.hasOutput("VIDEO")) && d.takesPrompt(id)
}

// addSize adds a field for a width and a height with values at fromW and
// fromH.
func (d *manifestBuilder) addSize(width, height, fromW, fromH place) {
	vw, _ := d.literalOf(fromW)
	vh, _ := d.literalOf(fromH)
	w, okW := floatOf(vw)
	h, okH := floatOf(vh)
	if !okW || !okH || d.owner[fromW] != "" || d.owner[fromH] != "" {
		return
	}
	low, high, step := d.specOf(width).numberBounds()
	lowH, highH, _ := d.specOf(height).numberBounds()
	least := max(valueOr(low, 16), valueOr(lowH, 16), 1)
	top := max(min(valueOr(high, maxSide), valueOr(highH, maxSide), maxSide), w, h)
	multiple := max(math.Trunc(valueOr(step, 8)), 1)
	least = math.Ceil(least/multiple) * multiple
	top = math.Floor(top/multiple) * multiple
	if w < 1 || h < 1 || least > top {
		d.leaveFixed(fromW, "it is no size in pixels")
		d.leaveFixed(fromH, "it is no size in pixels")
		return
	}
	fit := func(side float64) int {
		return int(math.Floor(min(max(side, least), top)/multiple) * multiple)
	}
	same := sizeValue(vw, vh)
	key, ok := d.keys[same]
	if !ok {
		key = d.freeKey("size")
		d.keys[same] = key
		d.createField(key, "size", manifestdraft.Field{
			Type:       "WIDTH_HEIGHT",
			Label:      "Size",
			Min:        &least,
			Max:        &top,
			MultipleOf: int(min(multiple, 4096)),
			Default:    map[string]any{"width": fit(w), "height": fit(h)},
		})
	}
	d.bindPlace(key+".width", fromW)
	d.bindPlace(key+".height", fromH)
}

// addLengths adds fields for lengths in frames or seconds and for frame rates.
func (d *manifestBuilder) addLengths() {
	frames := []string{"length", "num_frames", "frames", "frame_count", "frames_number", "video_frames", "video_length"}
	seconds := []string{"seconds", "duration", "seconds_total", "duration_seconds", "audio_duration", "length_seconds", "duration_s"}
	for _, id := range d.order {
		if !d.live[id] || !d.makesMedia(id) {
			continue
		}
		for _, name := range d.inputNames(id) {
			p := place{id, name}
			s := d.specOf(p)
			part := lastPart(name)
			switch {
			case s.kind == "INT" && slices.Contains(frames, part), s.kind == "INT" && part == "batch_size" && d.isFilm() && d.isFrameCount(p):
				d.addLength(p, numberField{
					base:  "length",
					label: "Length in frames",
					kind:  "NUM",
					spec:  s,
					limit: 300,
				})
			case slices.Contains(numberKinds, s.kind) && slices.Contains(seconds, part):
				d.addLength(p, numberField{
					base:  "seconds",
					label: "Length in seconds",
					kind:  "NUM",
					spec:  s,
					limit: 300,
				})
			}
		}
	}
	d.eachInput(intKind, func(_, from place, v any, _ inputSpec) { // of nodes that only need to know the length
		own, _ := floatOf(v)
		if key := d.keys[fmt.Sprintf("length %v", own)]; key != "" {
			d.bindPlace(key, from)
		}
	}, frames...)
	d.addNumber(numberField{
		base:     "fps",
		label:    "Frames per second",
		kind:     "NUM",
		limit:    60,
		advanced: true,
	}, numberKinds, "fps", "frame_rate")
}

// isFrameCount reports whether a batch size is the number of frames of a
// video: the workflow has no other length and the batch has several pictures.
func (d *manifestBuilder) isFrameCount(p place) bool {
	from, ok := d.followValue(p)
	if !ok {
		return false
	}
	v, _ := d.literalOf(from)
	n, ok := floatOf(v)
	return ok && n > 1 && !d.usedKeys["length"]
}

func (d *manifestBuilder) addLength(p place, f numberField) {
	if from, ok := d.followValue(p); ok {
		d.addNumberField(f, from)
		return
	}
	d.addComputed(p, f.base, f.label, f.limit)
}

// addComputed adds fields for the primitive numbers from which the workflow
// computes the value of an input, such as a number of seconds from which it
// computes a number of frames.
func (d *manifestBuilder) addComputed(p place, base, label string, limit float64) {
	for _, from := range d.numberLeaves(p, 0, map[string]bool{}) {
		title := d.classOf(from.id).titleOf(d.nodes[from.id])
		own := numberField{
			base:  base,
			label: label,
			kind:  "NUM",
			spec:  d.specOf(from),
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
		d.addNumberField(own, from)
	}
}

// numberLeaves returns the primitive numbers from which an input's value is
// computed.
func (d *manifestBuilder) numberLeaves(p place, depth int, seen map[string]bool) []place {
	l, ok := d.linkOf(p)
	if !ok || depth > maxHops || seen[l.from] || !d.isTextNode(l.from) {
		return nil
	}
	seen[l.from] = true
	if name, ok := d.passedInput(l); ok {
		from := place{l.from, name}
		if _, plain := d.literalOf(from); plain {
			if slices.Contains(numberKinds, d.specOf(from).kind) {
				return []place{from}
			}
			return nil
		}
		return d.numberLeaves(from, depth+1, seen)
	}
	var all []place
	for _, name := range d.inputNames(l.from) {
		all = append(all, d.numberLeaves(place{l.from, name}, depth+1, seen)...)
	}
	return all
}

// numberField describes the field for a number.
type numberField struct {
	base, label string
	kind        string // field type
	spec        inputSpec
	limit       float64 // maximum, if the server's is higher and the workflow's value is not
	advanced    bool
}

// addSamplers adds fields for the model and for the settings of samplers, such
// as the steps.
func (d *manifestBuilder) addSamplers() {
	anyNode := func(string) bool { return true }
	d.addChoice(anyNode, "model", "Model", "MODEL_SINGLE_SELECT", "ckpt_name")
	d.addNumber(numberField{base: "steps", label: "Steps", kind: "STEPS", limit: 150}, intKind, "steps")
	d.addNumber(numberField{base: "cfg", label: "Guidance", kind: "CFG", limit: 30}, floatKind, "cfg", "cfg_scale", "guidance_scale")
	d.addNumber(numberField{base: "guidance", label: "Distilled guidance", kind: "CFG", limit: 30}, floatKind, "guidance")
	d.addNumber(numberField{
		base:     "denoise",
		label:    "Strength",
		kind:     "SLIDER",
		limit:    1,
		advanced: true,
	}, floatKind, "denoise")
	d.addStrengths()
	d.addChoice(anyNode, "sampler", "Sampler", "SINGLE_SELECT", "sampler_name")
	d.addChoice(anyNode, "scheduler", "Scheduler", "SINGLE_SELECT", "scheduler")
	for _, name := range []string{"aspect_ratio", "resolution", "size", "duration", "quality", "style", "voice", "language"} {
		d.addChoice(d.makesMedia, name, manifestdraft.Label(name), "SINGLE_SELECT", name)
	}
}

// addStrengths adds fields for the strengths of control nets, reference
// pictures and LoRAs.
func (d *manifestBuilder) addStrengths() {
	for _, id := range d.order {
		class := strings.ToLower(d.nodes[id].Class)
		f := numberField{kind: "SLIDER", limit: 2, advanced: true}
		var names []string
		switch {
		case strings.Contains(class, "controlnet"):
			f.base = "control_strength"
			f.label = "Control strength"
			names = []string{"strength"}
		case strings.Contains(class, "ipadapter"), strings.Contains(class, "stylemodel"), strings.Contains(class, "unclipconditioning"):
			f.base = "reference_strength"
			f.label = "Reference strength"
			names = []string{"weight", "strength"}
		case strings.Contains(class, "lora"):
			f.base = "lora_strength"
			f.label = "LoRA strength"
			names = []string{"strength_model", "strength_clip", "strength"}
		}
		for _, name := range names {
			p := place{id, name}
			f.spec = d.specOf(p)
			if from, ok := d.followValue(p); ok && d.live[id] && f.spec.kind == "FLOAT" {
				d.addNumberField(f, from)
			}
		}
	}
}

// addNumber adds a field for each numeric input with one of the names.
func (d *manifestBuilder) addNumber(f numberField, kinds []string, names ...string) {
	d.eachInput(kinds, func(_, from place, _ any, s inputSpec) {
		own := f
		own.spec = s
		d.addNumberField(own, from)
	}, names...)
}

// addNumberField adds a field for a number at a place. The field's maximum is
// the server's or the limit, whichever is lower, but at least the workflow's
// value.
func (d *manifestBuilder) addNumberField(f numberField, from place) {
	v, _ := d.literalOf(from)
	own, ok := floatOf(v)
	if !ok {
		return
	}
	kind := f.spec.kind
	if source := d.specOf(from).kind; source == "INT" {
		kind = "INT" // a primitive node for whole numbers
	}
	d.addField(f.base, own, []place{from}, func() manifestdraft.Field {
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
		made := manifestdraft.Field{
			Type:     f.kind,
			Label:    f.label,
			Min:      &least,
			Max:      &top,
			Step:     step,
			Advanced: f.advanced,
			Integer:  kind == "INT" && f.kind != "STEPS",
		}
		if step != nil && *step <= 0 {
			made.Step = nil
		}
		if fitted := min(max(own, least), top); kind == "INT" {
			made.Default = int64(fitted)
		} else {
			made.Default = fitted
		}
		return made
	})
}

// addChoice adds a field for an input whose options the server lists, if there
// is more than one option and the workflow's value is one of them. Only nodes
// for which suits returns true count.
func (d *manifestBuilder) addChoice(suits func(id string) bool, base, label, fieldType, input string) {
	d.eachInput([]string{combo}, func(p, from place, v any, s inputSpec) {
		if s.isUpload() || !suits(p.id) {
			return
		}
		options := optionsOf(s, fieldType == "MODEL_SINGLE_SELECT")
		own := slices.IndexFunc(options, func(o manifestdraft.Option) bool { return o.Value == plainValue(v) })
		switch {
		case own < 0:
			d.leaveFixed(from, "the server's list does not have its value")
			return
		case len(options) < 2:
			d.leaveFixed(from, "the server has no other option")
			return
		}
		d.addField(base, v, []place{from}, func() manifestdraft.Field {
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

// optionsOf returns the options of a choice. The text of a file's option is
// the file's name without its extension.
func optionsOf(s inputSpec, files bool) []manifestdraft.Option {
	const most = 500
	var options []manifestdraft.Option
	seen := map[any]bool{}
	for _, o := range s.options[:min(len(s.options), most)] {
		v := plainValue(o)
		text := fmt.Sprint(v)
		if v == nil || v == "" || seen[v] {
			continue
		}
		seen[v] = true
		if files {
			text = strings.TrimSuffix(text, path.Ext(text))
		}
		options = append(options, manifestdraft.Option{Text: truncateText(singleLine(text), 120), Value: v})
	}
	return options
}

// plainValue returns an option's value as manifests have it, or nil if it is
// no text and no number.
func plainValue(v any) any {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if f, err := v.Float64(); err == nil {
			return f
		}
	}
	return nil
}

// maxSeed is the largest seed that a run can have.
const maxSeed = math.MaxUint32

// addSeeds binds the seed inputs of the workflow to the seed of the run. A
// node that accepts only smaller seeds gets a field of its own.
func (d *manifestBuilder) addSeeds() {
	for _, id := range d.order {
		if !d.live[id] {
			continue
		}
		for _, name := range d.inputNames(id) {
			p := place{id, name}
			s := d.specOf(p)
			if s.kind != "INT" && s.kind != "" || !hasWord(name, "seed") {
				continue
			}
			from, ok := d.followValue(p)
			if !ok {
				continue
			}
			if v, _ := d.literalOf(from); !isNumber(v) {
				continue
			}
			if _, high, _ := s.numberBounds(); high != nil && *high < maxSeed {
				d.addNumberField(numberField{
					base:     "small_seed",
					label:    "Seed",
					kind:     "NUM",
					spec:     s,
					limit:    *high,
					advanced: true,
				}, from)
				continue
			}
			if !d.usedKeys[nodegraph.KeySeed] {
				d.createField(nodegraph.KeySeed, nodegraph.KeySeed, manifestdraft.Field{Type: "SEED", Label: "Seed", Advanced: true})
			}
			d.bindPlace(nodegraph.KeySeed, from)
		}
	}
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
