package manifestdraft

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// field finds the type of field that an input wants; none where no type gives
// such values. many tells that the input takes a list and the field one file,
// or a list that may have one.
func (b *drafter) field(i input) (f Field, many bool) {
	if i.kind == "array" {
		items := b.flat(i.schema.node("items"))
		one := input{name: i.name, schema: items, kind: items.kind()}
		if isFile(one) {
			return files(i, one), true
		}
		if options := choices(items); options != nil {
			return multi(i, options), false
		}
		return Field{}, false
	}
	if isFile(i) {
		return Field{Type: fileKind(i), Accept: accepted(i)}, false
	}
	if options := choices(i.schema); options != nil {
		return choice(i, options), false
	}
	switch i.kind {
	case "string":
		return text(i), false
	case "integer", "number":
		return number(i), false
	case "boolean":
		f := Field{Type: "BOOLEAN"}
		if v, ok := value(i.schema["default"]).(bool); ok {
			f.Default = v
		}
		return f, false
	}
	return Field{}, false
}

func text(i input) Field {
	f := Field{Type: "TEXT"}
	if most := i.schema.number("maxLength"); most != nil && *most >= 1 && *most <= maxText {
		f.MaxLength = int(*most)
	}
	v, _ := value(i.schema["default"]).(string)
	if n := utf8.RuneCountInString(v); v != "" && n <= maxDefault && (f.MaxLength == 0 || n <= f.MaxLength) {
		f.Default = v
	}
	switch name := strings.ToLower(i.name); {
	case name == "prompt", name == "text_prompt":
		f.Type = "PROMPT"
	case name == "negative_prompt", name == "negative":
		f.Type = "NEG_PROMPT"
	case strings.ContainsAny(v, "\r\n"), len(v) > 80, slices.ContainsFunc(words(name), func(w string) bool { return slices.Contains(lengthy, w) }):
		f.Type = "TEXT_AREA"
	}
	return f
}

// lengthy are words in the names of inputs for more than a line.
var lengthy = []string{"prompt", "text", "lyrics", "script", "story", "caption", "message", "instructions"}

func number(i input) Field {
	low, high := limits(i)
	f := Field{Type: "NUM", Min: low, Max: high, Integer: i.kind == "integer"}
	if step := i.schema.number("multipleOf"); step != nil && *step > 0 && (!f.Integer || *step == math.Trunc(*step)) {
		f.Step = step
	}
	if v := i.schema.number("default"); v != nil && (low == nil || *v >= *low) && (high == nil || *v <= *high) && (!f.Integer || *v == math.Trunc(*v)) {
		f.Default = plain(*v)
	}
	name := strings.ToLower(i.name)
	switch {
	case f.Integer && slices.Contains([]string{"steps", "num_steps", "num_inference_steps", "inference_steps", "sampling_steps"}, name):
		f.Type = "STEPS"
		f.Integer = false // it always is
	case slices.Contains([]string{"cfg", "cfg_scale", "guidance", "guidance_scale"}, name):
		f.Type = "CFG"
	case low == nil || high == nil || *high-*low > 10_000: // nobody hits a number on such a slider
		return f
	case slices.Contains([]string{"upscale", "upscale_factor", "scale_factor"}, name):
		f.Type = "UPSCALE_FACTOR_SLIDER"
	default:
		f.Type = "SLIDER"
	}
	if f.Step == nil && i.kind == "number" && low != nil && high != nil {
		step := 0.01
		if *high-*low > 10 {
			step = 0.1
		}
		f.Step = &step
	}
	return f
}

// choices are the values to choose from; nil where there are none, or too many.
func choices(n node) []Option {
	enum := part[[]any](n, "enum")
	if v := part[any](n, "const"); v != nil && enum == nil {
		enum = []any{v}
	}
	var all []Option
	seen := map[any]bool{}
	for _, v := range enum {
		v = plain(v)
		shown := "(none)"
		switch v := v.(type) {
		case string:
			if len(v) > 1000 {
				continue
			}
			if l := line(v, maxLabel); l != "" {
				shown = l
			}
		case int64, float64:
			shown = fmt.Sprint(v)
		default:
			continue
		}
		if !seen[v] {
			seen[v] = true
			all = append(all, Option{Text: shown, Value: v})
		}
	}
	if len(all) > maxOptions {
		return nil
	}
	return all
}

func choice(i input, options []Option) Field {
	f := Field{Type: "SINGLE_SELECT", Options: options}
	if v := value(i.schema["default"]); offered(options, v) {
		f.Default = v
	}
	return f
}

func multi(i input, options []Option) Field {
	f := Field{Type: "MULTI_SELECT", Options: options}
	if most := i.schema.number("maxItems"); most != nil && *most >= 1 && *most <= maxOptions {
		f.MaxItems = int(*most)
	}
	var chosen []any
	for _, v := range part[[]any](i.schema, "default") {
		v = plain(v)
		if !offered(options, v) || slices.Contains(chosen, v) {
			return f
		}
		chosen = append(chosen, v)
	}
	if len(chosen) > 0 && (f.MaxItems == 0 || len(chosen) <= f.MaxItems) {
		f.Default = chosen
	}
	return f
}

func offered(options []Option, v any) bool {
	switch v.(type) {
	case string, int64, float64: // what can be compared
		return slices.ContainsFunc(options, func(o Option) bool { return o.Value == v })
	}
	return false
}

// isFile tells whether an input is the address of a file. Some servers say so
// only by its name.
func isFile(i input) bool {
	if i.kind != "string" || i.schema["enum"] != nil {
		return false
	}
	if i.schema.text("format") == "uri" {
		return true
	}
	name, ok := strings.CutSuffix(strings.TrimSuffix(strings.ToLower(i.name), "s"), "_url")
	return ok && guess(name) != ""
}

// files is the field for a list of files. Only pictures have one; of others
// the list gets one.
func files(i, one input) Field {
	if one.schema.text("description") == "" {
		one.schema["description"] = i.schema["description"]
	}
	if accept, ok := i.schema["x-cog-accept"]; ok {
		one.schema["x-cog-accept"] = accept
	}
	kind := fileKind(one)
	f := Field{Type: kind, Accept: accepted(one)}
	if kind != "IMG" {
		return f
	}
	f.Type = "IMGS"
	f.MaxItems = maxFiles
	if most := i.schema.number("maxItems"); most != nil && *most >= 1 && *most < maxFiles {
		f.MaxItems = int(*most)
	}
	return f
}

// fileKind guesses what kind of file an input takes: from what it accepts, its
// name, what is said about it.
func fileKind(i input) string {
	major, _, _ := strings.Cut(i.schema.text("x-cog-accept"), "/")
	if kind, ok := map[string]string{"image": "IMG", "video": "VIDEO", "audio": "AUDIO", "model": "ASSET_3D"}[major]; ok {
		return kind
	}
	for _, said := range []string{i.name, i.schema.text("title"), i.schema.text("description")} {
		if kind := guess(said); kind != "" {
			return kind
		}
	}
	return "IMG"
}

var mimeForm = regexp.MustCompile(`^[a-z]+/[a-z0-9.+-]+$`)

// accepted are the mime types that an input names, none where it also names
// something else.
func accepted(i input) []string {
	var all []string
	for _, m := range strings.Split(i.schema.text("x-cog-accept"), ",") {
		m = strings.ToLower(strings.TrimSpace(m))
		if !mimeForm.MatchString(m) {
			return nil
		}
		if !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	return all
}

// hints are words that tell what kind of file something is about.
var hints = map[string]string{
	"image": "IMG", "images": "IMG", "img": "IMG", "picture": "IMG", "pictures": "IMG", "photo": "IMG", "photos": "IMG", "mask": "IMG", "frame": "IMG", "portrait": "IMG",
	"video": "VIDEO", "videos": "VIDEO", "movie": "VIDEO", "mp4": "VIDEO", "webm": "VIDEO",
	"audio": "AUDIO", "music": "AUDIO", "song": "AUDIO", "voice": "AUDIO", "speech": "AUDIO", "sound": "AUDIO", "vocals": "AUDIO", "wav": "AUDIO", "mp3": "AUDIO",
	"mesh": "ASSET_3D", "glb": "ASSET_3D", "gltf": "ASSET_3D", "3d": "ASSET_3D",
}

// guess gives the kind of file that the first word with a hint tells, "" for
// none.
func guess(text string) string {
	for _, w := range words(text) {
		if kind := hints[w]; kind != "" {
			return kind
		}
	}
	return ""
}

var camel = regexp.MustCompile(`([a-z])([A-Z])`)

func words(text string) []string {
	text = strings.ToLower(camel.ReplaceAllString(text, "$1 $2"))
	return strings.Fields(notWord.ReplaceAllString(text, " "))
}

// outputs are what tools make, by the kind of file.
var outputs = map[string]Output{
	"IMG":      {"IMG", []string{"image/png", "image/jpeg", "image/webp"}},
	"VIDEO":    {"VID", []string{"video/mp4", "video/webm"}},
	"AUDIO":    {"AUDIO", []string{"audio/wav", "audio/mpeg", "audio/flac", "audio/ogg"}},
	"ASSET_3D": {"ASSET_3D", []string{"model/gltf-binary"}},
	"TEXT":     {"TEXT", []string{"text/plain"}},
}

// gives guesses what an output is: a kind of file, or TEXT. In an object the
// first file counts.
func (d document) gives(n node, name string, depth int) string {
	said := func(or string) string {
		for _, s := range []string{name, n.text("title"), n.text("description")} {
			if kind := guess(s); kind != "" {
				return kind
			}
		}
		return or
	}
	switch n.kind() {
	case "array":
		if depth < maxRefs {
			items := d.flat(n.node("items"))
			if _, ok := items["description"]; !ok {
				items["description"] = n["description"]
			}
			return d.gives(items, name, depth+1)
		}
	case "object":
		parts := n.node("properties")
		if parts["url"] != nil { // a file with more about it
			return said("IMG")
		}
		text := ""
		for _, key := range n.keys("properties") {
			if depth == maxRefs {
				break
			}
			switch kind := d.gives(d.flat(parts.node(key)), key, depth+1); kind {
			case "":
			case "TEXT":
				text = kind
			default:
				return kind
			}
		}
		return text
	case "string":
		if n.text("format") == "uri" {
			return said("IMG")
		}
		if kind := said(""); strings.HasSuffix(name, "_url") && kind != "" {
			return kind
		}
		return "TEXT"
	}
	if depth > 0 {
		return ""
	}
	return said("IMG") // it does not say
}
