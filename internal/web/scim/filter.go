package scim

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	filter "github.com/scim2/filter-parser/v2"
)

// Bounds of filters and paths.
const (
	maxFilter = 2000 // bytes
	maxPath   = 500
	maxDepth  = 16 // of brackets
)

// bounded refuses an expression that would cost too much to read.
func bounded(text string, most int, scimType string) error {
	depth := 0
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		}
		if depth > maxDepth {
			return refuse(scimType, "Brackets are nested more than %d deep.", maxDepth)
		}
	}
	if !utf8.ValidString(text) {
		return refuse(scimType, "This is not UTF-8.")
	}
	if len(text) > most {
		return refuse(scimType, "An expression has %d bytes at most.", most)
	}
	return nil
}

// where is a filter that was read.
type where struct {
	matches func(object) bool
	pinned  map[string]string // attributes that must have this value
	members bool              // it looks at the members of groups
}

// filter reads a filter on resources of the kind (RFC 7644 section 3.4.2.2).
func (k *kind) filter(text string) (w where, err error) {
	if err := bounded(text, maxFilter, invalidFilter); err != nil {
		return w, err
	}
	tree, err := filter.ParseFilter([]byte(text))
	if err != nil {
		return w, refuse(invalidFilter, "This filter cannot be read.")
	}
	w.pinned = map[string]string{}
	if w.matches, err = k.compile(tree, &w); err == nil {
		pin(tree, w.pinned)
	}
	return w, err
}

// pin finds what every match has: equal ids and names in a chain of "and".
func pin(tree filter.Expression, into map[string]string) {
	switch e := tree.(type) {
	case *filter.LogicalExpression:
		if e.Operator == filter.AND {
			pin(e.Left, into)
			pin(e.Right, into)
		}
	case *filter.AttributeExpression:
		if s, ok := e.CompareValue.(string); ok && e.Operator == filter.EQ && e.AttributePath.SubAttribute == nil {
			if text, err := unquoted(s); err == nil {
				into[strings.ToLower(e.AttributePath.AttributeName)] = text
			}
		}
	}
}

// unquoted reads the escapes of a text in a filter, which are those of JSON.
func unquoted(raw string) (s string, err error) {
	err = json.Unmarshal([]byte(`"`+raw+`"`), &s)
	return s, err
}

// compile makes a test of an expression over resources.
func (k *kind) compile(tree filter.Expression, w *where) (func(object) bool, error) {
	return compile(tree, func(p filter.AttributePath) (target, error) {
		t, err := k.resolve(p, invalidFilter)
		if err == nil && t.attribute.name == "groups" {
			err = refuse(invalidFilter, "Filters on groups are not supported.")
		}
		w.members = w.members || err == nil && t.attribute.name == "members"
		return t, err
	}, k.extension)
}

// values gives what a comparison with a target looks at. Of a complex attribute
// that is its value, where it has one.
func (t target) values() (*attribute, func(object) []any) {
	a := t.attribute
	sub := t.sub
	if sub == nil && a.kind == complexes {
		sub = find(a.sub, "value")
	}
	of := func(v any) []any {
		if sub == nil {
			return []any{v}
		}
		if v, ok := v.(object)[sub.name]; ok {
			return []any{v}
		}
		return nil
	}
	last := a
	if sub != nil {
		last = sub
	}
	return last, func(o object) (all []any) {
		v, ok := o[a.name]
		if !ok {
			return nil
		}
		list, ok := v.([]any)
		if !ok {
			return of(v)
		}
		for _, one := range list {
			all = append(all, of(one)...)
		}
		return all
	}
}

// compileIn makes a test of an expression over the values of a complex
// attribute.
func (a *attribute) compileIn(tree filter.Expression) (func(object) bool, error) {
	return compile(tree, func(p filter.AttributePath) (target, error) {
		sub := find(a.sub, p.AttributeName)
		if sub == nil || p.SubAttribute != nil || p.URIPrefix != nil {
			return target{}, refuse(invalidFilter, "%s has no %s.", a.name, p.String())
		}
		return target{attribute: sub}, nil
	}, nil)
}

// compile makes a test of an expression. What its paths name is found by look.
func compile(tree filter.Expression, look func(filter.AttributePath) (target, error), extension *schema) (func(object) bool, error) {
	again := func(tree filter.Expression) (func(object) bool, error) { return compile(tree, look, extension) }
	switch e := tree.(type) {
	case *filter.LogicalExpression:
		left, err := again(e.Left)
		if err != nil {
			return nil, err
		}
		right, err := again(e.Right)
		if e.Operator == filter.AND {
			return func(o object) bool { return left(o) && right(o) }, err
		}
		return func(o object) bool { return left(o) || right(o) }, err
	case *filter.NotExpression:
		not, err := again(e.Expression)
		return func(o object) bool { return !not(o) }, err
	case *filter.ValuePath: // emails[type eq "work"]
		t, err := look(e.AttributePath)
		if err != nil {
			return nil, err
		}
		if !t.attribute.many || t.sub != nil {
			return nil, refuse(invalidFilter, "%s has no several values.", e.AttributePath.String())
		}
		one, err := t.attribute.compileIn(e.ValueFilter)
		return func(o object) bool {
			list, _ := o[t.attribute.name].([]any)
			return slices.ContainsFunc(list, func(v any) bool { return one(v.(object)) })
		}, err
	case *filter.AttributeExpression:
		t, err := look(e.AttributePath)
		if err != nil {
			return nil, err
		}
		last, values := t.values()
		if t.extension {
			return last.test(e, func(o object) []any {
				part, _ := o[extension.id].(object)
				return values(part)
			})
		}
		return last.test(e, values)
	}
	return nil, refuse(invalidFilter, "This filter cannot be read.")
}

// test makes the test of one comparison.
func (a *attribute) test(e *filter.AttributeExpression, values func(object) []any) (func(object) bool, error) {
	if e.Operator == filter.PR {
		return func(o object) bool { return len(values(o)) > 0 }, nil
	}
	if e.CompareValue == nil && (e.Operator == filter.EQ || e.Operator == filter.NE) {
		return func(o object) bool { return (len(values(o)) == 0) == (e.Operator == filter.EQ) }, nil
	}
	against, err := a.operand(e)
	if err != nil {
		return nil, err
	}
	holds := func(v any) bool { return compare(v, against, a.exact || a.kind == boolean, e.Operator) }
	if e.Operator == filter.NE {
		holds = func(v any) bool { return compare(v, against, a.exact, filter.EQ) }
	}
	return func(o object) bool {
		any := false
		for _, v := range values(o) {
			any = any || holds(v)
		}
		return any != (e.Operator == filter.NE)
	}, nil
}

// operand reads what an attribute is compared with.
func (a *attribute) operand(e *filter.AttributeExpression) (any, error) {
	wrong := refuse(invalidFilter, "%s cannot be compared like this.", a.name)
	text, isText := e.CompareValue.(string)
	if isText {
		s, err := unquoted(text)
		if err != nil || strings.ContainsRune(s, 0) { // which no text of ours holds, nor the database takes
			return nil, refuse(invalidFilter, "This filter cannot be read.")
		}
		text = s
	}
	switch a.kind {
	case boolean:
		v, err := a.readOne(e.CompareValue, a.name)
		if err != nil || e.Operator != filter.EQ && e.Operator != filter.NE {
			return nil, wrong
		}
		return v, nil
	case dateTime:
		at, err := time.Parse(time.RFC3339, text)
		if err != nil || e.Operator == filter.CO || e.Operator == filter.SW || e.Operator == filter.EW {
			return nil, wrong
		}
		return at, nil
	}
	if !isText {
		return nil, wrong
	}
	return text, nil
}

// compare tells whether a value stands to another as the operator says.
func compare(v, against any, exact bool, op filter.CompareOperator) bool {
	switch want := against.(type) {
	case bool:
		return v == want
	case time.Time:
		return ordered(v.(time.Time).Compare(want), op)
	case string:
		has, ok := v.(string)
		if !ok {
			return false
		}
		if !exact {
			has = strings.ToLower(has)
			want = strings.ToLower(want)
		}
		switch op {
		case filter.CO:
			return strings.Contains(has, want)
		case filter.SW:
			return strings.HasPrefix(has, want)
		case filter.EW:
			return strings.HasSuffix(has, want)
		}
		return ordered(cmp.Compare(has, want), op)
	}
	return false
}

func ordered(c int, op filter.CompareOperator) bool {
	switch op {
	case filter.EQ:
		return c == 0
	case filter.GT:
		return c > 0
	case filter.GE:
		return c >= 0
	case filter.LT:
		return c < 0
	case filter.LE:
		return c <= 0
	}
	return false
}

// resolve finds what the path of an attribute names.
func (k *kind) resolve(p filter.AttributePath, scimType string) (t target, err error) {
	unknown := refuse(scimType, "There is no attribute %s.", p.String())
	switch uri := p.URI(); {
	case uri == "", strings.EqualFold(uri, k.core.id):
		t.attribute = k.attribute(p.AttributeName)
	case k.extension != nil && strings.EqualFold(uri, k.extension.id):
		t.extension = true
		t.attribute = find(k.extension.attributes, p.AttributeName)
	}
	if t.attribute == nil {
		return t, unknown
	}
	if p.SubAttribute != nil {
		if t.sub = find(t.attribute.sub, *p.SubAttribute); t.sub == nil {
			return t, unknown
		}
	}
	return t, nil
}

// path is what an operation is about (RFC 7644 section 3.5.2).
type path struct {
	target
	filter filter.Expression // nil: none
}

// path reads a path.
func (k *kind) path(text string) (p path, err error) {
	if err := bounded(text, maxPath, invalidPath); err != nil {
		return p, err
	}
	if k.extension != nil && strings.EqualFold(text, k.extension.id) {
		p.extension = true
		return p, nil
	}
	parsed, err := filter.ParsePath([]byte(text))
	if err != nil {
		return p, refuse(invalidPath, "This path cannot be read.")
	}
	if parsed.SubAttribute != nil {
		parsed.AttributePath.SubAttribute = parsed.SubAttribute
	}
	p.target, err = k.resolve(parsed.AttributePath, invalidPath)
	p.filter = parsed.ValueExpression
	return p, err
}
