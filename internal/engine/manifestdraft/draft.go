package manifestdraft

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Draft is a form for a model, and how its fields become the model's inputs.
type Draft struct {
	Fields []Field
	// Rename gives the input for fields whose key is another.
	Rename map[string]string
	// Seed and Results name the inputs that take the seed and how many results
	// are wanted. SeedMax is the largest seed, 0 where all are taken.
	Seed    string
	SeedMax int64
	Results string
	// NumResults are how many the model makes at once, nil for one.
	NumResults *NumResults
	Output     Output
	// Missing are inputs that the model needs and no field can give, each with
	// the reason.
	Missing []string
}

// Bounds of a manifest.
const (
	maxName    = 80
	maxLabel   = 120
	maxHelp    = 1000
	maxKey     = 64
	maxFields  = 200
	maxOptions = 500
	maxText    = 100_000
	maxDefault = 10_000
	maxFiles   = 12
	maxResults = 64
)

// FromSchema drafts a form from an OpenAPI document. input and output name the
// schemas of what the model takes and gives, which Cog calls Input and Output.
func FromSchema(doc []byte, input, output string) (Draft, error) {
	d, in, err := parse(doc, input)
	if err != nil {
		return Draft{}, err
	}
	b := drafter{document: d, keys: map[string]bool{}}
	all := d.inputs(in)
	for _, i := range all {
		b.keys[i.name] = true // a made key never takes another input's place
	}
	for n, i := range all {
		b.add(i, all[n+1:])
	}
	b.Output = outputs[cmp.Or(d.gives(d.flat(d.schemas.node(output)), output, 0), "IMG")]
	return b.Draft, nil
}

// Tool makes a manifest of the draft.
func (d Draft) Tool(name, engine string) Tool {
	with := map[string]any{}
	if len(d.Rename) > 0 {
		with["rename"] = d.Rename
	}
	if d.Seed != "" {
		with["seed"] = d.Seed
	}
	if d.SeedMax != 0 {
		with["seed_max"] = d.SeedMax
	}
	if d.Results != "" {
		with["results"] = d.Results
	}
	if name = line(name, maxName); name == "" {
		name = "Tool"
	}
	return Tool{
		Name:       name,
		Price:      Price{Type: "FREE"},
		NumResults: d.NumResults,
		Output:     d.Output,
		Engine:     Engine{Name: engine, With: with},
		Timeout:    "10m",
		Fields:     d.Fields,
	}
}

// drafter goes through a model's inputs.
type drafter struct {
	document
	Draft
	keys map[string]bool // names of inputs, and keys of fields
	size bool            // height came with width
}

// add finds a field, or another use, for an input. rest are those to come.
func (b *drafter) add(i input, rest []input) {
	s := i.schema
	switch {
	case s.text("format") == "password" || s.flag("x-cog-secret") || s.flag("writeOnly"):
		b.leave(i, "it is a secret")
	case i.name == "-" || strings.HasSuffix(i.name, "[]"):
		b.leave(i, "its name has another meaning in a manifest")
	case len(b.Fields) == maxFields:
		b.leave(i, "there are too many")
	case s.flag("deprecated") && !i.required:
	case b.Seed == "" && i.name == "seed" && i.kind == "integer":
		b.seed(i)
	case b.Results == "" && slices.Contains([]string{"num_outputs", "num_images", "batch_size", "num_samples"}, i.name) && i.kind == "integer":
		b.results(i)
	case b.size && i.name == "height":
	case i.name == "width" && b.pair(i, rest):
	default:
		f, many := b.field(i)
		if f.Type == "" {
			b.leave(i, "no field gives such values")
			return
		}
		f.Key = b.key(i.name)
		b.rename(f.Key, i.name, many)
		b.put(f, i)
	}
}

func (b *drafter) leave(i input, why string) {
	if i.required {
		b.Missing = append(b.Missing, line(i.name, maxLabel)+": "+why)
	}
}

func (b *drafter) rename(key, name string, many bool) {
	if many {
		name += "[]"
	}
	if name == key {
		return
	}
	if b.Rename == nil {
		b.Rename = map[string]string{}
	}
	b.Rename[key] = name
}

// put completes a field.
func (b *drafter) put(f Field, i input) {
	if f.Label == "" {
		f.Label = title(i.name)
	}
	if help := strings.TrimSpace(i.schema.text("description")); f.Help == "" && help != "An enumeration." {
		f.Help = cut(help, maxHelp)
	}
	f.Required = i.required
	switch f.Type {
	case "PROMPT", "NEG_PROMPT", "WIDTH_HEIGHT", "IMG", "IMGS", "VIDEO", "AUDIO", "ASSET_3D", "SINGLE_SELECT":
	default:
		f.Advanced = !i.required
	}
	b.Fields = append(b.Fields, f)
}

func (b *drafter) seed(i input) {
	b.Seed = i.name
	if top := i.schema.number("maximum"); top != nil && *top >= 1 && *top < math.MaxUint32 {
		b.SeedMax = int64(*top)
	}
	i.required = false // every run has one
	b.put(Field{Key: "seed", Type: "SEED", Help: "The same seed and the same inputs give the same result."}, i)
}

// results makes an input the one for the number of results. Without a known
// end it gets a 1.
func (b *drafter) results(i input) {
	b.Results = i.name
	low, high := limits(i)
	if high == nil || *high < 2 {
		return
	}
	n := &NumResults{Min: 1, Max: int64(min(*high, maxResults)), Default: 1}
	if low != nil && *low > 1 {
		n.Min = min(int64(*low), n.Max)
	}
	n.Default = max(n.Default, n.Min)
	b.NumResults = n
}

// pair makes one field of width and height.
func (b *drafter) pair(width input, rest []input) bool {
	at := slices.IndexFunc(rest, func(i input) bool { return i.name == "height" })
	if at < 0 {
		return false
	}
	height := rest[at]
	for _, side := range []input{width, height} {
		if side.kind != "integer" || side.schema["enum"] != nil || side.schema.flag("deprecated") {
			return false
		}
	}
	low := 1.0
	high := 100_000.0
	bounded := false
	for _, side := range []input{width, height} {
		least, most := limits(side)
		if least != nil {
			low = max(low, *least)
		}
		if most != nil {
			high = min(high, *most)
			bounded = true
		}
	}
	if !bounded {
		high = 4096 // the model leaves it to us
	}
	if low > high {
		return false
	}
	f := Field{
		Key:   b.fresh("size"),
		Type:  "WIDTH_HEIGHT",
		Label: "Size",
		Min:   &low,
		Max:   &high,
	}
	m := width.schema.number("multipleOf")
	n := height.schema.number("multipleOf")
	if m != nil && n != nil && *m == *n && *m >= 2 && *m <= 4096 && *m == math.Trunc(*m) {
		f.MultipleOf = int(*m)
	}
	w := width.schema.number("default")
	h := height.schema.number("default")
	if w != nil && h != nil && fits(*w, f) && fits(*h, f) {
		f.Default = map[string]any{"width": int64(*w), "height": int64(*h)}
	}
	width.required = width.required || height.required
	b.put(f, width)
	b.size = true
	return true
}

// fits tells whether a side is one that the field of sizes takes.
func fits(side float64, f Field) bool {
	return side == math.Trunc(side) && side >= *f.Min && side <= *f.Max && (f.MultipleOf == 0 || math.Mod(side, float64(f.MultipleOf)) == 0)
}

// limits are an input's bounds: both in order, and whole where the values are.
func limits(i input) (low, high *float64) {
	low = i.schema.number("minimum")
	high = i.schema.number("maximum")
	if v := i.schema.number("exclusiveMinimum"); v != nil && low == nil {
		low = v
		if i.kind == "integer" {
			*low = math.Floor(*low) + 1
		}
	}
	if v := i.schema.number("exclusiveMaximum"); v != nil && high == nil {
		high = v
		if i.kind == "integer" {
			*high = math.Ceil(*high) - 1
		}
	}
	if enum := part[[]float64](i.schema, "enum"); len(enum) > 0 && i.kind == "integer" {
		first := slices.Min(enum)
		last := slices.Max(enum)
		if last-first == float64(len(enum)-1) { // 1, 2, 3 and 4 are bounds, 1 and 4 are not
			low = &first
			high = &last
		}
	}
	if i.kind == "integer" {
		if low != nil {
			*low = math.Ceil(*low)
		}
		if high != nil {
			*high = math.Floor(*high)
		}
	}
	if low != nil && high != nil && *low > *high {
		return nil, nil
	}
	return low, high
}

var notKey = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// key gives the key of the field for an input.
func (b *drafter) key(name string) string {
	key := notKey.ReplaceAllString(name, "_")
	if key == "" || !unicode.IsLetter(rune(key[0])) {
		key = "x" + key
	}
	if key = key[:min(len(key), maxKey)]; key == name {
		return name
	}
	return b.fresh(key)
}

// fresh gives a key that nothing else has.
func (b *drafter) fresh(key string) string {
	made := key
	for n := 2; b.keys[made]; n++ {
		tail := fmt.Sprintf("_%d", n)
		made = key[:min(len(key), maxKey-len(tail))] + tail
	}
	b.keys[made] = true
	return made
}

// title is a label for a name.
func title(name string) string {
	if label := line(Label(name), maxLabel); label != "" {
		return label
	}
	return "Input"
}

// line makes text one line of at most so many characters.
func line(text string, most int) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	return cut(text, most)
}

func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return strings.TrimSpace(string(runes[:most-1])) + "…"
	}
	return text
}

// value is a default as it is written: whole numbers without a point.
func value(raw json.RawMessage) any {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return plain(v)
}

func plain(v any) any {
	if n, ok := v.(float64); ok && n == math.Trunc(n) && math.Abs(n) < 1<<53 {
		return int64(n)
	}
	return v
}
