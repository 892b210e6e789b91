package catalog

import (
	"fmt"
	"math"
	"slices"

	"go.yaml.in/yaml/v3"
)

// formReader reads the form of a tool from a manifest. Field keys must be
// unique in the whole form.
type formReader struct {
	r    *manifestReader
	keys map[string]bool
}

func (f *formReader) readFields(nodes []*yaml.Node, path string, depth int) []Field {
	var all []Field
	for i, n := range nodes {
		at := fmt.Sprintf("%s[%d].", path, i)
		o := f.r.openMapping(n, at)
		if o.hasKey("group") {
			all = append(all, f.readGroup(o, at, depth))
		} else {
			all = append(all, f.readLeaf(o))
		}

		o.reportUnknownKeys()
	}
	return all
}

func (f *formReader) readGroup(o *mapping, path string, depth int) Field {
	g := Field{Label: o.readText("group", 80)}
	if depth == maxGroups {
		o.addProblem("group", "groups are nested more than %d deep", maxGroups)
		return g
	}

	g.Children = f.readFields(o.readList("fields"), path+"fields", depth+1)
	if len(g.Children) == 0 {
		o.addProblem("fields", "a group needs at least one field")
	}
	return g
}

func (f *formReader) readLeaf(o *mapping) Field {
	l := Field{Key: o.readText("key", 64), Type: FieldType(o.readText("type", 32)), Label: o.readText("label", 120), Required: o.readBoolean("required")}
	l.Display = Display{Help: o.readLongText("help", 1000), Placeholder: o.readLongText("placeholder", 300), Advanced: o.readBoolean("advanced")}
	o.requireKey("label")
	if o.requireKey("key") != nil {
		switch {
		case !keyPattern.MatchString(l.Key):
			o.addProblem("key", "must start with a letter and have at most 64 letters, digits and underscores")
		case f.keys[l.Key]:
			o.addProblem("key", "%s is used by another field", l.Key)
		}
		f.keys[l.Key] = true
	}
	if o.requireKey("type") == nil {
		return l
	}

	kind, known := fieldTypes[l.Type]
	if !known {
		o.addProblem("type", "%s is not a field type", l.Type)
		o.knownKeys = map[string]bool{}
		for _, k := range o.keys {
			o.knownKeys[k.Value] = true // which keys are valid depends on the type, so no key is reported as unknown
		}
		return l
	}

	f.readDisplay(o, &l, kind)
	f.readDefault(o, &l, kind)
	return l
}

// readDisplay reads the display settings that the field's type has. Other
// settings are reported as unknown keys later.
func (f *formReader) readDisplay(o *mapping, l *Field, kind fieldFamily) {
	d := &l.Display
	switch kind {
	case textFamily:
		d.MaxLength = o.readInteger("max_length", 0, 1, maxTextLen)
	case numberFamily:
		d.Min = o.readFloat("min")
		d.Max = o.readFloat("max")
		d.Step = o.readFloat("step")
		d.Integer = o.readBoolean("integer")
		slider := l.Type == "SLIDER" || l.Type == "UPSCALE_FACTOR_SLIDER"
		if slider && (d.Min == nil || d.Max == nil) {
			o.addProblem("type", "a slider needs min and max")
		}

		checkRange(o, d)
		if d.Step != nil && *d.Step <= 0 {
			o.addProblem("step", "must be above 0")
		}
		if l.IsInteger() {
			for key, v := range map[string]*float64{"min": d.Min, "max": d.Max, "step": d.Step} {
				if v != nil && *v != math.Trunc(*v) {
					o.addProblem(key, "must be a whole number, because the field accepts only whole numbers")
				}
			}
		}
	case selectFamily, multiSelectFamily:
		d.ShowAs = o.readOneOf("show_as", "text", "text", "radio", "image")
		f.readOptions(o, d)
		if kind == multiSelectFamily {
			d.MaxItems = o.readInteger("max_items", 0, 1, maxOptions)
		}
	case sizeFamily:
		f.readSizes(o, d)
	case mediaFamily, mediaListFamily:
		d.Accept = o.readWords("accept")
		for _, m := range d.Accept {
			if !mimePattern.MatchString(m) {
				o.addProblem("accept", "%s is not a mime type", m)
			}
		}
		if kind == mediaListFamily {
			d.MaxItems = o.readInteger("max_items", 12, 1, 12)
		}
	case seedFamily, boolFamily: // have no display settings
	case noValueFamily:
		if l.Type == "HTML" {
			d.Content = sanitizeHTML(o.readLongText("html", 10_000))
			o.requireKey("html")
		}
		if l.Required {
			o.addProblem("required", "a %s field must not have a value", l.Type)
		}
	}
}

func checkRange(o *mapping, d *Display) {
	if d.Min != nil && d.Max != nil && *d.Min > *d.Max {
		o.addProblem("min", "must be at most max")
	}
}

func (f *formReader) readOptions(o *mapping, d *Display) {
	for i, n := range o.readList("options") {
		p := f.r.openMapping(n, fmt.Sprintf("%soptions[%d].", o.path, i))
		opt := Option{Text: p.readText("text", 120)}
		p.requireKey("text")
		if v := p.requireKey("value"); v != nil {
			opt.Value = scalarValue(v)
			switch opt.Value.(type) {
			case string, int64, float64:
			default:
				p.addProblem("value", "must be text or a number")
			}
		}
		if d.ShowAs == "image" {
			opt.Image = p.readAsset("image")
			p.requireKey("image")
		}
		if slices.ContainsFunc(d.Options, func(before Option) bool { return isSameOption(before.Value, opt.Value) }) {
			p.addProblem("value", "is used by another option")
		}

		p.reportUnknownKeys()
		d.Options = append(d.Options, opt)
	}
	if len(d.Options) == 0 || len(d.Options) > maxOptions {
		o.addProblem("options", "must have 1 to %d entries", maxOptions)
	}
}

func (f *formReader) readSizes(o *mapping, d *Display) {
	for i, n := range o.readList("sizes") {
		p := f.r.openMapping(n, fmt.Sprintf("%ssizes[%d].", o.path, i))
		d.Sizes = append(d.Sizes, Size{p.readText("text", 60), p.readInteger("width", 0, 1, maxSide), p.readInteger("height", 0, 1, maxSide)})
		p.requireKey("text")
		p.requireKey("width")
		p.requireKey("height")
		p.reportUnknownKeys()
	}

	d.Min = o.readFloat("min")
	d.Max = o.readFloat("max")
	d.MultipleOf = o.readInteger("multiple_of", 0, 1, 4096)
	checkRange(o, d)
	if (d.Min == nil) != (d.Max == nil) {
		o.addProblem("min", "free sizes need both min and max")
	}
	if len(d.Sizes) == 0 && d.Min == nil {
		o.addProblem("sizes", "needs a list of sizes, or min and max for free sizes")
	}
	if d.MultipleOf > 0 && d.Min == nil {
		o.addProblem("multiple_of", "applies only to free sizes, which need min and max")
	}
}

// readDefault reads the default of a field, which must be a valid value. If a
// size field lists no sizes, readDefault adds suggested sizes, because many
// clients can only show a list.
func (f *formReader) readDefault(o *mapping, l *Field, kind fieldFamily) {
	if kind == sizeFamily && len(l.Display.Sizes) == 0 {
		defer func() { l.Display.Sizes = suggestSizes(l) }()
	}

	n := o.lookupKey("default")
	if n == nil {
		return
	}
	if kind == mediaFamily || kind == mediaListFamily || kind == noValueFamily {
		o.addProblem("default", "a %s field must not have a default", l.Type)
		return
	}

	l.Default = f.r.plainValue(n)
	if p := l.CheckValue(l.Default); p != "" {
		o.addProblem("default", "%s", p)
		return
	}

	l.Default = l.resolveOptions(l.Default)
}
