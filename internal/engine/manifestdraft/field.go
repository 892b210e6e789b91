package manifestdraft

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// fieldFor returns a field for an input. The field is empty if no field type
// can represent the input's values. many is true if the input takes a list of
// files.
func (b *drafter) fieldFor(i modelInput) (f Field, many bool) {
	if i.kind == "array" {
		items := b.flatten(i.schema.nodePart("items"))
		one := modelInput{name: i.name, schema: items, kind: items.valueType()}
		if isFile(one) {
			return filesField(i, one), true
		}
		if options := optionsOf(items); options != nil {
			return multiField(i, options), false
		}
		return Field{}, false
	}
	if isFile(i) {
		return Field{Type: fileKind(i), Accept: acceptedTypes(i)}, false
	}
	if options := optionsOf(i.schema); options != nil {
		return selectField(i, options), false
	}
	switch i.kind {
	case "string":
		return textField(i), false
	case "integer", "number":
		return numberField(i), false
	case "boolean":
		f := Field{Type: "BOOLEAN"}
		if v, ok := defaultValue(i.schema["default"]).(bool); ok {
			f.Default = v
		}
		return f, false
	}
	return Field{}, false
}

func textField(i modelInput) Field {
	f := Field{Type: "TEXT"}
	if most := i.schema.numberPart("maxLength"); most != nil && *most >= 1 && *most <= maxText {
		f.MaxLength = int(*most)
	}
	v, _ := defaultValue(i.schema["default"]).(string)
	if n := utf8.RuneCountInString(v); v != "" && n <= maxDefault && (f.MaxLength == 0 || n <= f.MaxLength) {
		f.Default = v
	}
	switch name := strings.ToLower(i.name); {
	case name == "prompt", name == "text_prompt":
		f.Type = "PROMPT"
	case name == "negative_prompt", name == "negative":
		f.Type = "NEG_PROMPT"
	case strings.ContainsAny(v, "\r\n"), len(v) > 80, slices.ContainsFunc(splitWords(name), func(w string) bool { return slices.Contains(longTextWords, w) }):
		f.Type = "TEXT_AREA"
	}
	return f
}

// longTextWords are words that occur in the names of inputs for more than one
// line of text.
var longTextWords = []string{"prompt", "text", "lyrics", "script", "story", "caption", "message", "instructions"}

func numberField(i modelInput) Field {
	low, high := boundsOf(i)
	f := Field{Type: "NUM", Min: low, Max: high, Integer: i.kind == "integer"}
	if step := i.schema.numberPart("multipleOf"); step != nil && *step > 0 && (!f.Integer || *step == math.Trunc(*step)) {
		f.Step = step
	}
	if v := i.schema.numberPart("default"); v != nil && (low == nil || *v >= *low) && (high == nil || *v <= *high) && (!f.Integer || *v == math.Trunc(*v)) {
		f.Default = plainNumber(*v)
	}
	name := strings.ToLower(i.name)
	switch {
	case f.Integer && slices.Contains([]string{"steps", "num_steps", "num_inference_steps", "inference_steps", "sampling_steps"}, name):
		f.Type = "STEPS"
		f.Integer = false // not needed, because a SEED field is always an integer
	case slices.Contains([]string{"cfg", "cfg_scale", "guidance", "guidance_scale"}, name):
		f.Type = "CFG"
	case low == nil || high == nil || *high-*low > 10_000: // the range is unknown or too large for a slider
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

// optionsOf returns the options of an input that has a fixed list of values.
// It returns nil if there is no list or if it is too long.
func optionsOf(n schemaNode) []Option {
	enum := decodePart[[]any](n, "enum")
	if v := decodePart[any](n, "const"); v != nil && enum == nil {
		enum = []any{v}
	}
	var all []Option
	seen := map[any]bool{}
	for _, v := range enum {
		v = plainNumber(v)
		shown := "(none)"
		switch v := v.(type) {
		case string:
			if len(v) > 1000 || !isWritable(v) {
				continue
			}
			if l := singleLine(v, maxLabel); l != "" {
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

func selectField(i modelInput, options []Option) Field {
	f := Field{Type: "SINGLE_SELECT", Options: options}
	if v := defaultValue(i.schema["default"]); isOffered(options, v) {
		f.Default = v
	}
	return f
}

func multiField(i modelInput, options []Option) Field {
	f := Field{Type: "MULTI_SELECT", Options: options}
	if most := i.schema.numberPart("maxItems"); most != nil && *most >= 1 && *most <= maxOptions {
		f.MaxItems = int(*most)
	}
	var chosen []any
	for _, v := range decodePart[[]any](i.schema, "default") {
		v = plainNumber(v)
		if !isOffered(options, v) || slices.Contains(chosen, v) {
			return f
		}
		chosen = append(chosen, v)
	}
	if len(chosen) > 0 && (f.MaxItems == 0 || len(chosen) <= f.MaxItems) {
		f.Default = chosen
	}
	return f
}

func isOffered(options []Option, v any) bool {
	switch v.(type) {
	case string, int64, float64: // only comparable types can be keys of seen
		return slices.ContainsFunc(options, func(o Option) bool { return o.Value == v })
	}
	return false
}

// isFile reports whether an input is the URL of a file. For some servers only
// the input's name indicates that.
func isFile(i modelInput) bool {
	if i.kind != "string" || i.schema["enum"] != nil {
		return false
	}
	if i.schema.textPart("format") == "uri" {
		return true
	}
	name, ok := strings.CutSuffix(strings.TrimSuffix(strings.ToLower(i.name), "s"), "_url")
	return ok && guessKind(name) != ""
}

// filesField returns the field for a list of files. Only pictures have a field
// type for lists; for other kinds of files the field takes one file.
func filesField(i, one modelInput) Field {
	if one.schema.textPart("description") == "" {
		one.schema["description"] = i.schema["description"]
	}
	if accept, ok := i.schema["x-cog-accept"]; ok {
		one.schema["x-cog-accept"] = accept
	}
	kind := fileKind(one)
	f := Field{Type: kind, Accept: acceptedTypes(one)}
	if kind != "IMG" {
		return f
	}
	f.Type = "IMGS"
	f.MaxItems = maxFiles
	if most := i.schema.numberPart("maxItems"); most != nil && *most >= 1 && *most < maxFiles {
		f.MaxItems = int(*most)
	}
	return f
}

// fileKind guesses the kind of file that an input takes from its accepted
// media types, its name and its description.
func fileKind(i modelInput) string {
	major, _, _ := strings.Cut(i.schema.textPart("x-cog-accept"), "/")
	if kind, ok := map[string]string{"image": "IMG", "video": "VIDEO", "audio": "AUDIO", "model": "ASSET_3D"}[major]; ok {
		return kind
	}
	for _, said := range []string{i.name, i.schema.textPart("title"), i.schema.textPart("description")} {
		if kind := guessKind(said); kind != "" {
			return kind
		}
	}
	return "IMG"
}

var mimeForm = regexp.MustCompile(`^[a-z]+/[a-z0-9.+-]+$`)

// acceptedTypes returns the MIME types that an input accepts. It returns nil
// if the input's list contains anything else, such as a file name ending.
func acceptedTypes(i modelInput) []string {
	var all []string
	for _, m := range strings.Split(i.schema.textPart("x-cog-accept"), ",") {
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

// kindHints map words to the kind of file that they indicate.
var kindHints = map[string]string{
	"image": "IMG", "images": "IMG", "img": "IMG", "picture": "IMG", "pictures": "IMG", "photo": "IMG", "photos": "IMG", "mask": "IMG", "frame": "IMG", "portrait": "IMG",
	"video": "VIDEO", "videos": "VIDEO", "movie": "VIDEO", "mp4": "VIDEO", "webm": "VIDEO",
	"audio": "AUDIO", "music": "AUDIO", "song": "AUDIO", "voice": "AUDIO", "speech": "AUDIO", "sound": "AUDIO", "vocals": "AUDIO", "wav": "AUDIO", "mp3": "AUDIO",
	"mesh": "ASSET_3D", "glb": "ASSET_3D", "gltf": "ASSET_3D", "3d": "ASSET_3D",
}

// guessKind returns the kind of file that the first matching word in text
// indicates. It returns "" if no word matches.
func guessKind(text string) string {
	for _, w := range splitWords(text) {
		if kind := kindHints[w]; kind != "" {
			return kind
		}
	}
	return ""
}

var camel = regexp.MustCompile(`([a-z])([A-Z])`)

func splitWords(text string) []string {
	text = strings.ToLower(camel.ReplaceAllString(text, "$1 $2"))
	return strings.Fields(notWord.ReplaceAllString(text, " "))
}

// outputsByKind are the output types of tools, by kind of file.
var outputsByKind = map[string]Output{
	"IMG":      {"IMG", []string{"image/png", "image/jpeg", "image/webp"}},
	"VIDEO":    {"VID", []string{"video/mp4", "video/webm"}},
	"AUDIO":    {"AUDIO", []string{"audio/wav", "audio/mpeg", "audio/flac", "audio/ogg"}},
	"ASSET_3D": {"ASSET_3D", []string{"model/gltf-binary"}},
	"TEXT":     {"TEXT", []string{"text/plain"}},
}

// OutputTypes are the output types of tools.
var OutputTypes = []string{"IMG", "VID", "AUDIO", "ASSET_3D", "TEXT"}

// guessOutput guesses the kind of a model's output: a kind of file, or TEXT. If
// the output is an object, its first file determines the kind. sure is false if
// the schema does not indicate the kind.
func (d document) guessOutput(n schemaNode, name string, depth int) (kind string, sure bool) {
	said := func(or string) (string, bool) {
		for _, s := range []string{name, n.textPart("title"), n.textPart("description")} {
			if kind := guessKind(s); kind != "" {
				return kind, true
			}
		}
		return or, false
	}
	switch n.valueType() {
	case "array":
		if depth < maxRefs {
			items := d.flatten(n.nodePart("items"))
			if _, ok := items["description"]; !ok {
				items["description"] = n["description"]
			}
			return d.guessOutput(items, name, depth+1)
		}
	case "object":
		parts := n.nodePart("properties")
		if parts["url"] != nil { // an object with a key url is a file
			return said("IMG")
		}
		text := ""
		for _, key := range n.objectKeys("properties") {
			if depth == maxRefs {
				break
			}
			switch kind, sure := d.guessOutput(d.flatten(parts.nodePart(key)), key, depth+1); kind {
			case "":
			case "TEXT":
				text = kind
			default:
				return kind, sure
			}
		}
		return text, text != ""
	case "string":
		if n.textPart("format") == "uri" {
			return said("IMG")
		}
		if kind, _ := said(""); strings.HasSuffix(name, "_url") && kind != "" {
			return kind, true
		}
		return "TEXT", true
	}
	if depth > 0 {
		return "", false
	}
	return said("IMG") // without a hint, pictures are the most likely output
}
