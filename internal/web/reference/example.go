package reference

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of one made-up example. A schema that contains itself appears inside
// itself once, so that a tree shows a branch and a leaf.
const (
	maxLevels = 12
	maxValues = 600
	maxNested = 2
	maxText   = 200
)

// sampler makes up a value that a schema allows.
type sampler struct {
	b       *builder
	request bool // fields that only answers have are left out, and the reverse
	brief   bool // only required fields, where any are
	values  int
	via     []string // references being followed
}

// sample makes up an answer, or the smallest useful request; nil and false
// where the schema does not say enough for one.
func (b *builder) sample(s *schema, request bool) (any, bool) {
	x := sampler{b: b, request: request, brief: request}
	v, ok := x.value(s, 0)
	if o, isObject := v.(object); !ok || v == nil || isObject && len(o) == 0 {
		return nil, false
	}
	return v, true
}

// value gives false where the bounds leave no room for one. An example that
// has become too long ends in nulls.
func (x *sampler) value(s *schema, level int) (any, bool) {
	if level > maxLevels {
		return nil, false
	}
	if x.values++; x.values > maxValues {
		return nil, true
	}
	if s == nil || s.Bool != nil {
		return nil, true
	}
	if n, ok := given(s); ok {
		return plain(&n), true
	}
	if s.Ref != "" {
		return x.referred(s.Ref, level)
	}
	if hasOptions(s) {
		return x.combined(s, level)
	}
	return x.typed(s, level)
}

// given is the value that the document itself offers.
func given(s *schema) (yaml.Node, bool) {
	all := slices.Clone(examplesOf(s))
	all = append(all, s.Const)
	all = append(all, s.Enum...)
	all = append(all, s.Default)
	i := slices.IndexFunc(all, func(n yaml.Node) bool { return !n.IsZero() })
	if i < 0 {
		return yaml.Node{}, false
	}
	return all[i], true
}

func (x *sampler) referred(ref string, level int) (any, bool) {
	if x.nested(ref) >= maxNested {
		return nil, false
	}
	x.via = append(x.via, ref)
	v, ok := x.value(x.b.target(ref), level)
	x.via = x.via[:len(x.via)-1]
	return v, ok
}

func (x *sampler) nested(ref string) int {
	n := 0
	for _, r := range x.via {
		if r == ref {
			n++
		}
	}
	return n
}

// combined joins what allOf demands with one of the alternatives: the first
// that is not null and, where there is a choice, not what is being made.
func (x *sampler) combined(s *schema, level int) (any, bool) {
	var v any = object{}
	known := false
	merge := func(more any, ok bool) {
		o, isObject := v.(object)
		fields, areFields := more.(object)
		switch {
		case !ok:
		case isObject && areFields:
			v = merged(o, fields)
			known = true
		default:
			v = more
			known = true
		}
	}
	if len(s.Properties) > 0 {
		merge(x.typed(s, level))
	}
	for _, part := range s.AllOf {
		if part != nil && part.Ref == "" && len(part.Type) == 0 && len(part.Properties) == 0 && !hasOptions(part) {
			continue // narrows the rest and has no value of its own
		}
		merge(x.value(part, level))
	}
	options := slices.Concat(s.OneOf, s.AnyOf)
	slices.SortStableFunc(options, func(a, b *schema) int { return x.rank(a) - x.rank(b) })
	for _, o := range options {
		if one, ok := x.value(o, level); ok && (one != nil || !known) {
			merge(one, true)
			break
		}
	}
	if !known && len(s.Type) > 0 {
		return x.typed(s, level)
	}
	return v, known
}

func (x *sampler) rank(s *schema) int {
	switch {
	case s == nil || slices.Equal(s.Type, words{"null"}):
		return math.MaxInt
	case s.Ref != "":
		return x.nested(s.Ref)
	}
	return 0
}

func merged(o, more object) object {
	for _, m := range more {
		if i := slices.IndexFunc(o, func(have member) bool { return have.name == m.name }); i >= 0 {
			o[i] = m
		} else {
			o = append(o, m)
		}
	}
	return o
}

// typed makes up a value from a schema's own type and bounds.
func (x *sampler) typed(s *schema, level int) (any, bool) {
	name := x.b.typeWords(s, "any", maxDepth)
	if len(name) == 0 {
		return nil, true
	}
	kind := name[0].Text
	if i := slices.IndexFunc(s.Type, func(t string) bool { return t != "null" }); i >= 0 {
		kind = s.Type[i]
	}
	kind, _, _ = strings.Cut(kind, " ") // array of …, map of …
	switch kind {
	case "object", "map":
		return x.object(s, level)
	case "array":
		return x.list(s, level), true
	case "string":
		return sampleText(s), true
	case "integer", "number":
		return sampleNumber(s), true
	case "boolean":
		return true, true
	}
	return nil, true
}

func (x *sampler) object(s *schema, level int) (any, bool) {
	o := object{}
	for _, p := range s.Properties {
		required := slices.Contains(s.Required, p.Key)
		if p.Value != nil && (x.request && p.Value.ReadOnly || !x.request && p.Value.WriteOnly) {
			continue
		}
		if x.brief && !required && len(s.Required) > 0 {
			continue
		}
		v, ok := x.value(p.Value, level+1)
		switch {
		case ok:
			o = append(o, member{p.Key, v})
		case required:
			return nil, false
		}
	}
	if more := s.AdditionalProperties; more != nil && more.Bool == nil && len(o) == 0 {
		if v, ok := x.value(more, level+1); ok {
			o = append(o, member{"name", v})
		}
	}
	return o, true
}

func (x *sampler) list(s *schema, level int) list {
	l := list{}
	for _, item := range s.PrefixItems {
		if v, ok := x.value(item, level+1); ok {
			l = append(l, v)
		}
	}
	if s.Items != nil && s.Items.Bool == nil && len(l) == 0 {
		if v, ok := x.value(s.Items, level+1); ok {
			l = append(l, v)
		}
	}
	return l
}

// formats are examples of the texts that have a well-known form.
var formats = map[string]string{
	"date-time": "2026-11-15T09:00:00Z",
	"date":      "2026-11-15",
	"time":      "09:00:00Z",
	"duration":  "PT90S",
	"email":     "anna@example.com",
	"hostname":  "example.com",
	"ipv4":      "192.0.2.1",
	"ipv6":      "2001:db8::1",
	"uri":       "https://example.com/",
	"url":       "https://example.com/",
	"uuid":      "0b5f8a4e-6c1d-4f0e-9a57-3d2c1b0a9e8f",
	"byte":      "aGVsbG8=",
}

func sampleText(s *schema) string {
	if known, ok := formats[s.Format]; ok {
		return known
	}
	if s.Pattern != "" {
		if made, ok := matching(s.Pattern); ok {
			return made
		}
	}
	made := "string"
	if least, ok := number(s.MinLength); ok && least > float64(len(made)) {
		made += strings.Repeat("x", int(min(least, maxText))-len(made))
	}
	if most, ok := number(s.MaxLength); ok && most >= 0 && most < float64(len(made)) {
		made = made[:int(most)]
	}
	return made
}

func sampleNumber(s *schema) json.Number {
	v := 1.0
	least, bounded := number(s.Minimum)
	above, exclusive := number(s.ExclusiveMinimum)
	if bounded {
		v = least
	}
	if exclusive && (v <= above || !bounded) {
		v = math.Floor(above) + 1
	}
	if most, ok := number(s.Maximum); ok {
		v = min(v, most)
	}
	if below, ok := number(s.ExclusiveMaximum); ok && v >= below {
		v = math.Ceil(below) - 1
		if exclusive && v <= above {
			v = (above + below) / 2
		}
	}
	if step, ok := number(s.MultipleOf); ok && step > 0 {
		v = math.Ceil(v/step) * step
	}
	return json.Number(strconv.FormatFloat(v, 'f', -1, 64))
}

func number(n yaml.Node) (float64, bool) {
	v, err := strconv.ParseFloat(n.Value, 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}
