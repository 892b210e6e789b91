// Package toolschema describes the form of a tool as a JSON Schema (draft
// 2020-12), for programs that fill the form, and converts what they send to the
// inputs of the tool.
//
//	field                 value
//	texts                 string
//	numbers, seeds        number, integer
//	selects               one of the values, or a list of them
//	sizes                 string such as 1024x1024
//	files                 string: an id, an address of this service, or a data: URL
package toolschema

import (
	"fmt"
	"maps"
	"math"
	"strings"

	"atelier/internal/catalog/catalog"
)

// ResultsKey is the property with the number of results of a run.
const ResultsKey = "num_results"

// Schema is a JSON Schema.
type Schema = map[string]any

// Of returns the schema of an object with the inputs of a tool. maxResults is
// the largest number of results that the installation allows in one run.
func Of(t *catalog.Tool, maxResults int64) Schema {
	properties := Schema{}
	required := []string{}
	for _, f := range t.Leaves() {
		p := property(f)
		if p == nil {
			continue
		}
		properties[f.Key] = p
		if f.Required && f.Default == nil {
			required = append(required, f.Key)
		}
	}
	if n := t.NumResults; n != nil && properties[ResultsKey] == nil {
		properties[ResultsKey] = Schema{
			"type":        "integer",
			"description": "Number of results. Each costs " + FormatTokens(t.TokenCost(1)) + ".",
			"minimum":     max(1, n.Min),
			"maximum":     min(n.Max, maxResults),
			"default":     max(1, n.Min),
		}
	}
	return Schema{
		"type":                 "object",
		"properties":           properties,
		"required":             required,
		"additionalProperties": false,
	}
}

// FormatTokens formats a price.
func FormatTokens(n int64) string {
	switch n {
	case 0:
		return "nothing"
	case 1:
		return "1 token"
	}
	return fmt.Sprintf("%d tokens", n)
}

// property returns the schema of one field, or nil if the field has no value.
func property(f *catalog.Field) Schema {
	s := valueSchema(f)
	if s == nil {
		return nil
	}
	description := []string{}
	if f.Label != "" && !strings.EqualFold(f.Label, f.Key) {
		description = append(description, strings.TrimSuffix(f.Label, ".")+".")
	}
	if f.Display.Help != "" {
		description = append(description, f.Display.Help)
	}
	if more, ok := s["description"].(string); ok {
		description = append(description, more)
	}
	if len(description) > 0 {
		s["description"] = strings.Join(description, " ")
	}
	if f.Default != nil && !f.IsMedia() {
		s["default"] = defaultValue(f)
	}
	return s
}

func defaultValue(f *catalog.Field) any {
	size, ok := f.Default.(map[string]any)
	if !ok {
		return f.Default
	}
	return fmt.Sprintf("%vx%v", size["width"], size["height"])
}

// valueSchema returns the schema of the values of a field.
func valueSchema(f *catalog.Field) Schema {
	if f.IsMedia() {
		return fileSchema(f)
	}
	switch f.Type {
	case "HEADER", "HTML":
		return nil
	case "BOOLEAN":
		return Schema{"type": "boolean"}
	case "SEED":
		return Schema{"type": "integer", "minimum": 0, "maximum": int64(math.MaxUint32), "description": "Without it the service chooses one."}
	case "SINGLE_SELECT", "MODEL_SINGLE_SELECT":
		return optionSchema(f)
	case "MULTI_SELECT":
		s := Schema{"type": "array", "items": optionSchema(f), "uniqueItems": true}
		if n := f.Display.MaxItems; n > 0 {
			s["maxItems"] = n
		}
		return s
	case "WIDTH_HEIGHT":
		return sizeSchema(f)
	case "SLIDER", "UPSCALE_FACTOR_SLIDER", "CFG", "STEPS", "NUM":
		return numberSchema(f)
	}
	s := Schema{"type": "string"}
	if n := f.Display.MaxLength; n > 0 {
		s["maxLength"] = n
	}
	if f.Required && f.Default == nil {
		s["minLength"] = 1
	}
	return s
}

func numberSchema(f *catalog.Field) Schema {
	s := Schema{"type": "number"}
	if f.IsInteger() {
		s["type"] = "integer"
	}
	if f.Display.Min != nil {
		s["minimum"] = *f.Display.Min
	}
	if f.Display.Max != nil {
		s["maximum"] = *f.Display.Max
	}
	return s
}

// optionSchema returns the schema of one option of a select.
func optionSchema(f *catalog.Field) Schema {
	values := []any{}
	var texts []string
	for _, o := range f.Display.Options {
		values = append(values, o.Value)
		if text := fmt.Sprint(o.Value); !strings.EqualFold(text, o.Text) {
			texts = append(texts, text+": "+o.Text)
		}
	}
	s := Schema{"enum": values}
	if len(texts) > 0 && len(texts) <= 30 {
		s["description"] = strings.Join(texts, "; ") + "."
	}
	return s
}

func sizeSchema(f *catalog.Field) Schema {
	var sizes []any
	for _, o := range f.Display.Sizes {
		sizes = append(sizes, fmt.Sprintf("%dx%d", o.Width, o.Height))
	}
	low := f.Display.Min
	high := f.Display.Max
	if low == nil || high == nil {
		return Schema{"type": "string", "enum": sizes, "description": "Width x height in pixels."}
	}
	text := fmt.Sprintf("Width x height in pixels, each from %g to %g", *low, *high)
	if f.Display.MultipleOf > 1 {
		text += fmt.Sprintf(" and a multiple of %d", f.Display.MultipleOf)
	}
	return Schema{"type": "string", "pattern": "^[0-9]+x[0-9]+$", "examples": sizes, "description": text + "."}
}

var mediaNames = map[string]string{"IMG": "picture", "VID": "video", "AUDIO": "sound", "ASSET_3D": "3D model"}

func fileSchema(f *catalog.Field) Schema {
	text := "A " + mediaNames[f.MediaType()] + ": the id of a library item or of an upload, the address of a file of this service, or the file itself as a data: URL."
	if len(f.Display.Accept) > 0 {
		text += " Accepts " + strings.Join(f.Display.Accept, ", ") + "."
	}
	one := Schema{"type": "string", "minLength": 1}
	if !f.IsList() {
		one["description"] = text
		return one
	}
	s := Schema{"type": "array", "items": one, "description": text}
	if n := f.Display.MaxItems; n > 0 {
		s["maxItems"] = n
	}
	return s
}

// Inputs converts an object that follows the schema to the inputs of the tool.
// file converts the value of a file to a reference; it is called in the order of
// the form. Values that do not follow the schema are kept, and are refused when
// the inputs are parsed.
func Inputs(t *catalog.Tool, object map[string]any, file func(f *catalog.Field, value any) (any, error)) (map[string]any, error) {
	inputs := maps.Clone(object)
	if inputs == nil {
		inputs = map[string]any{}
	}
	for _, f := range t.Leaves() {
		value, ok := inputs[f.Key]
		switch {
		case !ok:
		case value == nil:
			delete(inputs, f.Key)
		case f.IsMedia():
			converted, err := convertFiles(f, value, file)
			if err != nil {
				return nil, err
			}
			inputs[f.Key] = converted
		case f.Type == "WIDTH_HEIGHT":
			if text, isText := value.(string); isText {
				if width, height, ok := catalog.ParseSize(text); ok {
					inputs[f.Key] = catalog.SizeValue(width, height)
				}
			}
		}
	}
	return inputs, nil
}

func convertFiles(f *catalog.Field, value any, file func(f *catalog.Field, value any) (any, error)) (any, error) {
	if !f.IsList() {
		return file(f, value)
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	all := []any{}
	for _, one := range list {
		converted, err := file(f, one)
		if err != nil {
			return nil, err
		}
		all = append(all, converted)
	}
	return all, nil
}
