package catalog

import (
	"fmt"
	"math"
	"slices"

	"go.yaml.in/yaml/v3"
)

// formReader reads the tree of fields. Keys are unique in the whole tree.
type formReader struct {
	r    *reader
	keys map[string]bool
}

func (f *formReader) fields(nodes []*yaml.Node, path string, depth int) []Field {
	var all []Field
	for i, n := range nodes {
		at := fmt.Sprintf("%s[%d].", path, i)
		o := f.r.object(n, at)
		if o.has("group") {
			all = append(all, f.group(o, at, depth))
		} else {
			all = append(all, f.leaf(o))
		}
		o.end()
	}
	return all
}

func (f *formReader) group(o *object, path string, depth int) Field {
	g := Field{Label: o.text("group", 80)}
	if depth == maxGroups {
		o.problem("group", "groups are nested more than %d deep", maxGroups)
		return g
	}
	g.Children = f.fields(o.list("fields"), path+"fields", depth+1)
	if len(g.Children) == 0 {
		o.problem("fields", "a group needs at least one field")
	}
	return g
}

func (f *formReader) leaf(o *object) Field {
	l := Field{Key: o.text("key", 64), Type: FieldType(o.text("type", 32)), Label: o.text("label", 120), Required: o.boolean("required")}
	l.Display = Display{Help: o.longText("help", 1000), Placeholder: o.longText("placeholder", 300), Advanced: o.boolean("advanced")}
	o.need("label")
	if o.need("key") != nil {
		switch {
		case !keyForm.MatchString(l.Key):
			o.problem("key", "must start with a letter and have at most 64 letters, digits and underscores")
		case f.keys[l.Key]:
			o.problem("key", "%s is used by another field", l.Key)
		}
		f.keys[l.Key] = true
	}
	if o.need("type") == nil {
		return l
	}
	kind, known := fieldTypes[l.Type]
	if !known {
		o.problem("type", "%s is not a field type", l.Type)
		o.asked = map[string]bool{}
		for _, k := range o.keys {
			o.asked[k.Value] = true // what else it may have depends on the type
		}
		return l
	}
	f.bounds(o, &l, kind)
	f.value(o, &l, kind)
	return l
}

// bounds reads the display settings that the type takes. Others are reported
// as unknown by the object's end.
func (f *formReader) bounds(o *object, l *Field, kind shape) {
	d := &l.Display
	switch kind {
	case textShape:
		d.MaxLength = o.integer("max_length", 0, 1, maxTextLen)
	case numberShape:
		d.Min = o.float("min")
		d.Max = o.float("max")
		d.Step = o.float("step")
		d.Integer = o.boolean("integer")
		slider := l.Type == "SLIDER" || l.Type == "UPSCALE_FACTOR_SLIDER"
		if slider && (d.Min == nil || d.Max == nil) {
			o.problem("type", "a slider needs min and max")
		}
		checkRange(o, d)
		if d.Step != nil && *d.Step <= 0 {
			o.problem("step", "must be above 0")
		}
		if l.Integer() {
			for key, v := range map[string]*float64{"min": d.Min, "max": d.Max, "step": d.Step} {
				if v != nil && *v != math.Trunc(*v) {
					o.problem(key, "must be a whole number, as the field takes only those")
				}
			}
		}
	case selectShape, multiShape:
		d.ShowAs = o.oneOf("show_as", "text", "text", "radio", "image")
		f.options(o, d)
		if kind == multiShape {
			d.MaxItems = o.integer("max_items", 0, 1, maxOptions)
		}
	case sizeShape:
		f.sizes(o, d)
	case mediaShape, mediaListShape:
		d.Accept = o.words("accept")
		for _, m := range d.Accept {
			if !mimeForm.MatchString(m) {
				o.problem("accept", "%s is not a mime type", m)
			}
		}
		if kind == mediaListShape {
			d.MaxItems = o.integer("max_items", 12, 1, 12)
		}
	case silentShape:
		if l.Type == "HTML" {
			d.Content = sanitizeHTML(o.longText("html", 10_000))
			o.need("html")
		}
		if l.Required {
			o.problem("required", "a %s takes no value", l.Type)
		}
	}
}

func checkRange(o *object, d *Display) {
	if d.Min != nil && d.Max != nil && *d.Min > *d.Max {
		o.problem("min", "must not be above max")
	}
}

func (f *formReader) options(o *object, d *Display) {
	for i, n := range o.list("options") {
		p := f.r.object(n, fmt.Sprintf("%soptions[%d].", o.path, i))
		opt := Option{Text: p.text("text", 120)}
		p.need("text")
		if v := p.need("value"); v != nil {
			opt.Value = scalar(v)
			switch opt.Value.(type) {
			case string, int64, float64:
			default:
				p.problem("value", "must be text or a number")
			}
		}
		if d.ShowAs == "image" {
			opt.Image = p.asset("image")
			p.need("image")
		}
		if slices.ContainsFunc(d.Options, func(before Option) bool { return same(before.Value, opt.Value) }) {
			p.problem("value", "is used by another option")
		}
		p.end()
		d.Options = append(d.Options, opt)
	}
	if len(d.Options) == 0 || len(d.Options) > maxOptions {
		o.problem("options", "must have 1 to %d entries", maxOptions)
	}
}

func (f *formReader) sizes(o *object, d *Display) {
	for i, n := range o.list("sizes") {
		p := f.r.object(n, fmt.Sprintf("%ssizes[%d].", o.path, i))
		d.Sizes = append(d.Sizes, Size{p.text("text", 60), p.integer("width", 0, 1, maxSide), p.integer("height", 0, 1, maxSide)})
		p.need("text")
		p.need("width")
		p.need("height")
		p.end()
	}
	d.Min = o.float("min")
	d.Max = o.float("max")
	d.MultipleOf = o.integer("multiple_of", 0, 1, 4096)
	checkRange(o, d)
	if (d.Min == nil) != (d.Max == nil) {
		o.problem("min", "free sizes need both min and max")
	}
	if len(d.Sizes) == 0 && d.Min == nil {
		o.problem("sizes", "needs sizes to choose from, or min and max for free ones")
	}
	if d.MultipleOf > 0 && d.Min == nil {
		o.problem("multiple_of", "is for free sizes, which need min and max")
	}
}

// value reads the default, which must be a value the field would take. Sizes
// are made up where the manifest has none, as many forms can only offer a list.
func (f *formReader) value(o *object, l *Field, kind shape) {
	if kind == sizeShape && len(l.Display.Sizes) == 0 {
		defer func() { l.Display.Sizes = suggestSizes(l) }()
	}
	n := o.get("default")
	if n == nil {
		return
	}
	if kind == mediaShape || kind == mediaListShape || kind == silentShape {
		o.problem("default", "a %s has no default", l.Type)
		return
	}
	l.Default = f.r.plain(n)
	if p := l.Problem(l.Default); p != "" {
		o.problem("default", "%s", p)
		return
	}
	l.Default = l.chosen(l.Default)
}
