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

// Draft is a form for a model, with the mapping of the form's fields to the
// model's inputs.
type Draft struct {
	Fields []Field
	// Rename maps field keys to the names of the model's inputs, where they
	// differ.
	Rename map[string]string
	// Seed and Results are the names of the inputs for the seed and the number
	// of results, or empty. SeedMax is the largest seed; 0 means no limit.
	Seed    string
	SeedMax int64
	Results string
	// Several means that one request makes several results, whose number the
	// model decides.
	Several bool
	// Fixed are the inputs with fixed values, by name.
	Fixed map[string]any
	// NumResults is the number of results that a run may request. If it is
	// nil, a run has one result.
	NumResults *NumResults
	Output     Output
	// Missing lists the required inputs that no field can represent, each with
	// the reason.
	Missing []string
	// Notes are sentences for the operator about guesses and fixed inputs.
	Notes []string
}

// Limits of a manifest: lengths in characters, and numbers of items.
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

// defaultMaxResults is the maximum number of results of a run if the model
// states none.
const defaultMaxResults = 4

// Source is a model's schema and the operator's data about the tool.
type Source struct {
	// Doc is an OpenAPI document. Input and Output are the names of the
	// schemas for the model's inputs and outputs, for example Input and Output
	// on Cog servers.
	Doc           []byte
	Input, Output string
	// Name is the name of the tool, Engine the name of the engine that runs it.
	Name, Engine string
	// OutputType is the tool's output type, such as AUDIO. If it is empty, the
	// type is guessed from the schema or else from Hint, such as a description
	// of the model.
	OutputType string
	Hint       string
}

// FromSchema drafts a form from a model's schema.
func FromSchema(from Source) (Draft, error) {
	d, in, err := parseDocument(from.Doc, from.Input)
	if err != nil {
		return Draft{}, err
	}
	b := drafter{document: d, keys: map[string]bool{}}
	all := d.listInputs(in)
	for _, i := range all {
		b.keys[i.name] = true // a generated key must not collide with an input's name
	}
	for n, i := range all {
		b.addInput(i, all[n+1:])
	}
	out := d.flatten(d.schemas.nodePart(from.Output))
	if err := b.setOutput(out, from); err != nil {
		return Draft{}, err
	}
	b.setNumResults(out)
	return b.Draft, nil
}

// ToolFromSchema drafts a tool's manifest from a model's schema as FromSchema
// does. It fails if the model requires an input that no field can represent.
// The tool has a price, because the work costs the operator money.
func ToolFromSchema(from Source) (Tool, error) {
	d, err := FromSchema(from)
	if err != nil {
		return Tool{}, fmt.Errorf("read the model's inputs: %w", err)
	}
	if len(d.Missing) > 0 {
		return Tool{}, fmt.Errorf("no field type supports these required inputs of the model: %s", strings.Join(d.Missing, "; "))
	}
	return d.Tool(from.Name, from.Engine), nil
}

// setOutput sets the output type: the operator's choice or, if there is none, a
// guess.
func (b *drafter) setOutput(out schemaNode, from Source) error {
	if from.OutputType != "" {
		for _, o := range outputsByKind {
			if o.Type == from.OutputType {
				b.Output = o
				return nil
			}
		}
		return fmt.Errorf("the output type must be one of %s", strings.Join(OutputTypes, ", "))
	}
	kind, said := b.guessOutput(out, from.Output, 0)
	if !said {
		kind = cmp.Or(guessKind(from.Hint), kind, "IMG")
		b.addNote("The output type %s is a guess: the model's schema does not say which files it makes. If it is wrong, import again with --output.", outputsByKind[kind].Type)
	}
	b.Output = outputsByKind[kind]
	return nil
}

// setNumResults sets the number of results of a model that has no input for
// it. A model with a seed runs once for each result. A model without a seed
// would repeat itself, so it has several results only if one request makes a
// list of them.
func (b *drafter) setNumResults(out schemaNode) {
	if b.Results != "" {
		return
	}
	isList := out.valueType() == "array" && out.textPart("x-cog-array-display") != "concatenate"
	if b.Seed == "" && !isList {
		return
	}
	b.NumResults = &NumResults{Min: 1, Max: defaultMaxResults, Default: 1}
	if b.Seed == "" {
		b.Several = true
		b.addNote("The model returns a list. A run gets as many results as it requests, at most %d (num_results), if the model makes that many.", defaultMaxResults)
	}
}

// Tool returns a manifest for the tool called name, with the draft's form.
// engine is the name of the engine that runs it.
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
	if d.Several {
		with["several"] = true
	}
	if len(d.Fixed) > 0 {
		with["input"] = d.Fixed
	}
	if name = singleLine(name, maxName); name == "" {
		name = "Tool"
	}
	return Tool{
		Name:       name,
		Price:      Price{Type: "COST", Tokens: 1},
		NumResults: d.NumResults,
		Output:     d.Output,
		Engine:     Engine{Name: engine, With: with},
		Timeout:    "10m",
		Fields:     d.Fields,
		Notes:      d.Notes,
	}
}

// drafter builds a Draft from a model's inputs.
type drafter struct {
	document
	Draft
	keys    map[string]bool // used keys: names of inputs and keys of fields
	hasSize bool            // a field for both width and height exists
}

// addInput adds a field for an input, or uses it for the seed or the number of
// results. rest are the inputs that follow it.
func (b *drafter) addInput(i modelInput, rest []modelInput) {
	s := i.schema
	switch {
	case s.textPart("format") == "password" || s.flagPart("x-cog-secret") || s.flagPart("writeOnly"):
		b.skipInput(i, "it is a secret")
	case i.name == "-" || strings.HasSuffix(i.name, "[]"):
		b.skipInput(i, "its name is reserved in manifests")
	case !isWritable(i.name):
		b.skipInput(i, "its name cannot be written in a manifest")
	case isSafetySwitch(i.name):
		b.fixSafetySwitch(i)
	case len(b.Fields) == maxFields:
		b.skipInput(i, "there are too many inputs")
	case s.flagPart("deprecated") && !i.required:
	case b.Seed == "" && i.name == "seed" && i.kind == "integer":
		b.addSeed(i)
	case b.Results == "" && slices.Contains([]string{"num_outputs", "num_images", "batch_size", "num_samples"}, i.name) && i.kind == "integer":
		b.addResults(i)
	case b.hasSize && i.name == "height":
	case i.name == "width" && b.addSize(i, rest):
	default:
		f, many := b.fieldFor(i)
		if f.Type == "" {
			b.skipInput(i, "no field type supports its values")
			return
		}
		f.Key = b.keyFor(i.name)
		b.renameField(f.Key, i.name, many)
		b.addField(f, i)
	}
}

func (b *drafter) skipInput(i modelInput, why string) {
	if i.required {
		b.Missing = append(b.Missing, singleLine(i.name, maxLabel)+": "+why)
	}
}

func (b *drafter) renameField(key, name string, many bool) {
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

// addField completes a field with the label, help and default of an input, and
// adds it to the draft.
func (b *drafter) addField(f Field, i modelInput) {
	if f.Label == "" {
		f.Label = labelFor(i.name)
	}
	if help := strings.TrimSpace(i.schema.textPart("description")); f.Help == "" && help != "An enumeration." {
		f.Help = truncateText(help, maxHelp)
	}
	f.Required = i.required
	switch f.Type {
	case "PROMPT", "NEG_PROMPT", "WIDTH_HEIGHT", "IMG", "IMGS", "VIDEO", "AUDIO", "ASSET_3D", "SINGLE_SELECT":
	default:
		f.Advanced = !i.required
	}
	b.Fields = append(b.Fields, f)
}

func (b *drafter) addSeed(i modelInput) {
	b.Seed = i.name
	if top := i.schema.numberPart("maximum"); top != nil && *top >= 1 && *top < math.MaxUint32 {
		b.SeedMax = int64(*top)
	}
	i.required = false // not required, because every run has a seed
	b.addField(Field{Key: "seed", Type: "SEED", Help: "The same seed and the same inputs produce the same result."}, i)
}

// addResults uses an input for the number of results. If the model states no
// maximum, the number is always 1.
func (b *drafter) addResults(i modelInput) {
	b.Results = i.name
	low, high := boundsOf(i)
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

// addSize adds one field for the inputs width and height. It returns false if
// rest has no suitable input for the height.
func (b *drafter) addSize(width modelInput, rest []modelInput) bool {
	at := slices.IndexFunc(rest, func(i modelInput) bool { return i.name == "height" })
	if at < 0 {
		return false
	}
	height := rest[at]
	for _, side := range []modelInput{width, height} {
		if side.kind != "integer" || side.schema["enum"] != nil || side.schema.flagPart("deprecated") {
			return false
		}
	}
	low := 1.0
	high := 100_000.0
	bounded := false
	for _, side := range []modelInput{width, height} {
		least, maxRunes := boundsOf(side)
		if least != nil {
			low = max(low, *least)
		}
		if maxRunes != nil {
			high = min(high, *maxRunes)
			bounded = true
		}
	}
	if !bounded {
		high = 4096 // pixels; the model states no maximum
	}
	if low > high {
		return false
	}
	f := Field{
		Key:   b.uniqueKey("size"),
		Type:  "WIDTH_HEIGHT",
		Label: "Size",
		Min:   &low,
		Max:   &high,
	}
	m := width.schema.numberPart("multipleOf")
	n := height.schema.numberPart("multipleOf")
	if m != nil && n != nil && *m == *n && *m >= 2 && *m <= 4096 && *m == math.Trunc(*m) {
		f.MultipleOf = int(*m)
	}
	w := width.schema.numberPart("default")
	h := height.schema.numberPart("default")
	if w != nil && h != nil && isValidSide(*w, f) && isValidSide(*h, f) {
		f.Default = map[string]any{"width": int64(*w), "height": int64(*h)}
	}
	width.required = width.required || height.required
	b.addField(f, width)
	b.hasSize = true
	return true
}

// isValidSide reports whether a width or height, in pixels, is valid for the
// size field f.
func isValidSide(side float64, f Field) bool {
	return side == math.Trunc(side) && side >= *f.Min && side <= *f.Max && (f.MultipleOf == 0 || math.Mod(side, float64(f.MultipleOf)) == 0)
}

// boundsOf returns an input's minimum and maximum, or nil where there is none.
// If the input is an integer, they are whole numbers.
func boundsOf(i modelInput) (low, high *float64) {
	low = i.schema.numberPart("minimum")
	high = i.schema.numberPart("maximum")
	if v := i.schema.numberPart("exclusiveMinimum"); v != nil && low == nil {
		low = v
		if i.kind == "integer" {
			*low = math.Floor(*low) + 1
		}
	}
	if v := i.schema.numberPart("exclusiveMaximum"); v != nil && high == nil {
		high = v
		if i.kind == "integer" {
			*high = math.Ceil(*high) - 1
		}
	}
	if enum := decodePart[[]float64](i.schema, "enum"); len(enum) > 0 && i.kind == "integer" {
		first := slices.Min(enum)
		last := slices.Max(enum)
		if last-first == float64(len(enum)-1) { // 1, 2, 3, 4 is a range; 1, 4 is not
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

// keyFor returns the key of the field for the input called name: the name
// itself if it is a valid key, otherwise a similar key.
func (b *drafter) keyFor(name string) string {
	key := notKey.ReplaceAllString(name, "_")
	if key == "" || !unicode.IsLetter(rune(key[0])) {
		key = "x" + key
	}
	if key = key[:min(len(key), maxKey)]; key == name {
		return name
	}
	return b.uniqueKey(key)
}

// uniqueKey returns key, with a number appended if key is already in use.
func (b *drafter) uniqueKey(key string) string {
	made := key
	for n := 2; b.keys[made]; n++ {
		tail := fmt.Sprintf("_%d", n)
		made = key[:min(len(key), maxKey-len(tail))] + tail
	}
	b.keys[made] = true
	return made
}

// labelFor returns a field's label, derived from the name of an input.
func labelFor(name string) string {
	if label := singleLine(Label(name), maxLabel); label != "" {
		return label
	}
	return "Input"
}

// singleLine returns text as one line of at most maxRunes characters.
func singleLine(text string, maxRunes int) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	return truncateText(text, maxRunes)
}

func truncateText(text string, maxRunes int) string {
	if runes := []rune(text); len(runes) > maxRunes {
		return strings.TrimSpace(string(runes[:maxRunes-1])) + "…"
	}
	return text
}

// defaultValue decodes the JSON default of an input. Whole numbers become
// int64.
func defaultValue(raw json.RawMessage) any {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	if text, ok := v.(string); ok && !isWritable(text) {
		return nil
	}
	return plainNumber(v)
}

func plainNumber(v any) any {
	if n, ok := v.(float64); ok && n == math.Trunc(n) && math.Abs(n) < 1<<53 {
		return int64(n)
	}
	return v
}
