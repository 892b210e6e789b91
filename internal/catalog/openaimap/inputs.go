package openaimap

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"atelier/internal/base/fault"
	"atelier/internal/base/sanitize"
	"atelier/internal/catalog/catalog"
)

// Request has the parameters of one request. Their values are those of decoded
// JSON; the values of a form are texts.
type Request struct {
	Parameters map[string]any
	// Pictures are references to the pictures of the request, in the form that
	// catalog.Tool.ParseInputs accepts.
	Pictures []any
	Mask     any // nil if there is none
}

// ownParameters are parameters that say how to respond, and not what to make.
var ownParameters = map[Endpoint][]string{
	Generations: {"model", "n", "response_format", "stream", "partial_images", "user"},
	Edits:       {"model", "n", "response_format", "stream", "partial_images", "user"},
	Variations:  {"model", "n", "response_format", "user"},
	Speech:      {"model", "stream_format"},
	Videos:      {"model"},
}

// Inputs converts the parameters of a request to the inputs of the tool. The
// error names the parameters that are not valid. Values that only the tool can
// judge are checked when the run is created.
func (m *Mapping) Inputs(r Request) (map[string]any, error) {
	c := converter{Mapping: m, inputs: map[string]any{}}
	for _, name := range slices.Sorted(maps.Keys(r.Parameters)) {
		if value := r.Parameters[name]; value != nil {
			c.convert(name, value)
		}
	}
	c.addPictures(r)
	if len(c.problems) > 0 {
		e := fault.New(fault.Invalid, c.problems[0].Message)
		e.Fields = c.problems
		return nil, e
	}
	return c.inputs, nil
}

type converter struct {
	*Mapping
	inputs   map[string]any
	problems []fault.Field
}

func (c *converter) addProblem(parameter, format string, args ...any) {
	c.problems = append(c.problems, fault.Field{Path: sanitize.Line(parameter, 80), Message: fmt.Sprintf(format, args...)})
}

// convert sets the field of one parameter.
func (c *converter) convert(name string, value any) {
	field := c.fields[name]
	switch {
	case slices.Contains(ownParameters[c.Endpoint], name):
	case name == c.text && name != "":
		c.setText(name, value)
	case slices.Contains(c.settings, name):
		if field != nil {
			c.setSetting(name, field, value)
		}
	default:
		c.setField(name, value)
	}
}

// setText sets the field for the text of the request.
func (c *converter) setText(name string, value any) {
	text, ok := value.(string)
	if !ok {
		c.addProblem(name, "%s must be text.", name)
		return
	}
	if f := c.fields[name]; f != nil {
		c.inputs[f.Key] = text
	}
}

// automatic is the value of settings with which a client leaves the choice to
// the service.
const automatic = "auto"

// setSetting sets the field of a parameter such as quality.
func (c *converter) setSetting(name string, f *catalog.Field, value any) {
	if value == automatic || value == "" {
		return
	}
	if text, ok := value.(string); ok {
		if own, ok := c.Tool.OpenAI.Values[name][text]; ok {
			c.inputs[f.Key] = own
			return
		}
	}
	var problem string
	switch {
	case name == "size":
		value, problem = chooseSize(f, value)
	case name == "speed":
		value, problem = scaleSpeed(f, value)
	case name == "voice":
		value, problem = chooseVoice(f, value)
	default:
		value = coerce(f, value)
		problem = f.CheckValue(value)
	}
	switch {
	case problem != "":
		c.addProblem(name, "%s %s.", name, problem)
	case value != nil:
		c.inputs[f.Key] = value
	}
}

// setField sets the field that has the name of a further parameter as its key.
func (c *converter) setField(name string, value any) {
	for _, f := range c.Tool.Leaves() {
		if f.Key == name {
			c.inputs[name] = coerce(f, value)
			return
		}
	}
	c.addProblem(name, "Unknown parameter: %s is neither a parameter of this endpoint nor a field of the model %s.", sanitize.Line(name, 80), c.Tool.Slug)
}

// addPictures fills the fields for pictures.
func (c *converter) addPictures(r Request) {
	if r.Mask != nil {
		f := c.fields["mask"]
		switch {
		case f == nil:
			c.addProblem("mask", "The model %s takes no mask.", c.Tool.Slug)
		case len(r.Pictures) == 0:
			c.addProblem("mask", "A mask needs the picture that it belongs to.")
		default:
			c.inputs[f.Key] = r.Mask
		}
	}
	left := r.Pictures
	if c.needsPicture && len(left) == 0 && r.Mask == nil {
		c.addProblem(c.picture, "A picture is required.")
	}
	for _, f := range c.pictures {
		if len(left) == 0 {
			return
		}
		if !f.IsList() {
			c.inputs[f.Key] = left[0]
			left = left[1:]
			continue
		}
		n := len(left)
		if limit := f.Display.MaxItems; limit > 0 {
			n = min(n, int(limit))
		}
		c.inputs[f.Key] = left[:n:n]
		left = left[n:]
	}
	if len(left) > 0 {
		c.addProblem(cmp.Or(c.picture, "image"), "The model %s takes at most %d pictures.", c.Tool.Slug, c.maxPictures())
	}
}

// coerce converts a text to the type of a field's value: forms contain only
// texts, and the OpenAI API has numbers as texts. It returns values that it
// cannot convert unchanged, and they are refused later.
func coerce(f *catalog.Field, value any) any {
	text, ok := value.(string)
	if !ok || isText(f) || f.Type == "NEG_PROMPT" {
		return value
	}
	switch f.Type {
	case "WIDTH_HEIGHT":
		if w, h, ok := catalog.ParseSize(text); ok {
			return catalog.SizeValue(w, h)
		}
	case "SINGLE_SELECT", "MODEL_SINGLE_SELECT":
		return text
	}
	var decoded any
	if json.Unmarshal([]byte(text), &decoded) != nil {
		return value
	}
	if n, ok := decoded.(float64); ok && n == math.Trunc(n) && math.Abs(n) < 1<<53 {
		return int64(n)
	}
	return decoded
}

// sameShape is the largest difference of two ratios of width to height that
// counts as equal.
const sameShape = 0.03

// chooseSize returns the requested size if the field accepts it, and otherwise
// the nearest size of the same shape that the field offers.
func chooseSize(f *catalog.Field, value any) (size any, problem string) {
	text, ok := value.(string)
	width, height, parsed := catalog.ParseSize(text)
	if !ok || !parsed {
		return nil, "must be a width and a height such as 1024x1024, or auto; this model offers " + offered(f)
	}
	exact := catalog.SizeValue(width, height)
	if f.CheckValue(exact) == "" {
		return exact, ""
	}

	shape := math.Log(float64(width) / float64(height))
	best := -1
	bestDistance := math.Inf(1)
	for i, s := range f.Display.Sizes {
		if math.Abs(math.Log(float64(s.Width)/float64(s.Height))-shape) > sameShape {
			continue
		}
		if d := math.Abs(math.Log(float64(s.Width) / float64(width))); d < bestDistance {
			best = i
			bestDistance = d
		}
	}
	if best >= 0 {
		return catalog.SizeValue(f.Display.Sizes[best].Width, f.Display.Sizes[best].Height), ""
	}
	return nil, "is not offered in this shape; this model offers " + offered(f)
}

// offered lists the sizes of a field for a message.
func offered(f *catalog.Field) string {
	var all []string
	for _, s := range f.Display.Sizes {
		all = append(all, fmt.Sprintf("%dx%d", s.Width, s.Height))
	}
	low := f.Display.Min
	high := f.Display.Max
	if low != nil && high != nil {
		free := fmt.Sprintf("sides from %g to %g", *low, *high)
		if f.Display.MultipleOf > 1 {
			free += fmt.Sprintf(" in multiples of %d", f.Display.MultipleOf)
		}
		all = append(all, free)
	}
	return strings.Join(all, ", ")
}

// scaleSpeed converts a factor of the normal speed to the number of a field,
// whose default is the normal speed.
func scaleSpeed(f *catalog.Field, value any) (speed any, problem string) {
	factor, ok := catalog.ToFloat(coerce(f, value))
	if !ok {
		return nil, "must be a number"
	}
	normal, ok := catalog.ToFloat(f.Default)
	if !ok || normal <= 0 {
		normal = 1
	}
	n := factor * normal
	if f.IsInteger() {
		n = math.Round(n)
	}
	if step := f.Display.Step; step != nil && *step > 0 {
		n = math.Round(n / *step) * *step
	}
	if f.CheckValue(n) == "" {
		return n, ""
	}
	if f.Display.Min == nil || f.Display.Max == nil {
		return nil, f.CheckValue(n)
	}
	return nil, fmt.Sprintf("must be between %.2f and %.2f with this model", *f.Display.Min/normal, *f.Display.Max/normal)
}

// usualVoices are the voices of OpenAI's models. Clients send one of them if a
// person has chosen none.
var usualVoices = []string{"alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin", "nova", "onyx", "sage", "shimmer", "verse"}

// chooseVoice returns a voice of the field. For a voice of OpenAI's models that
// the field does not offer it returns nil: the default voice is used.
func chooseVoice(f *catalog.Field, value any) (voice any, problem string) {
	problem = f.CheckValue(value)
	if name, ok := value.(string); ok && problem != "" && slices.Contains(usualVoices, name) {
		return nil, ""
	}
	return value, problem
}
