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

// Limits on filters and attribute paths.
const (
	maxFilter = 2000 // maximum length of a filter in bytes
	maxPath   = 500
	maxDepth  = 16 // maximum nesting of brackets
)

// checkExpression returns an error for a filter or path that is too expensive
// to parse.
func checkExpression(text string, maxBytes int, scimType string) error {
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
			return newProblem(scimType, "Brackets are nested more than %d levels deep.", maxDepth)
		}
	}
	if !utf8.ValidString(text) {
		return newProblem(scimType, "The expression is not valid UTF-8.")
	}
	if len(text) > maxBytes {
		return newProblem(scimType, "An expression must have at most %d bytes.", maxBytes)
	}

	return nil
}

// parsedFilter is a compiled filter on resources.
type parsedFilter struct {
	matches     func(object) bool
	equalTo     map[string]string // for each attribute name, the value that every match must have
	usesMembers bool              // the filter examines the members of groups
}

// parseFilter parses a filter on resources of this type (RFC 7644 section
// 3.4.2.2).
func (k *resourceType) parseFilter(text string) (w parsedFilter, err error) {
	if err := checkExpression(text, maxFilter, invalidFilter); err != nil {
		return w, err
	}
	tree, err := filter.ParseFilter([]byte(text))
	if err != nil {
		return w, newProblem(invalidFilter, "The filter is invalid.")
	}
	w.equalTo = map[string]string{}
	if w.matches, err = k.compileFilter(tree, &w); err == nil {
		collectEqualities(tree, w.equalTo)
	}
	return w, err
}

// collectEqualities adds to into the attribute values that every match must
// have. These are the values of eq comparisons that are joined only by "and".
func collectEqualities(tree filter.Expression, into map[string]string) {
	switch e := tree.(type) {
	case *filter.LogicalExpression:
		if e.Operator == filter.AND {
			collectEqualities(e.Left, into)
			collectEqualities(e.Right, into)
		}
	case *filter.AttributeExpression:
		if s, ok := e.CompareValue.(string); ok && e.Operator == filter.EQ && e.AttributePath.SubAttribute == nil {
			if text, err := unquoteText(s); err == nil {
				into[strings.ToLower(e.AttributePath.AttributeName)] = text
			}
		}
	}
}

// unquoteText resolves the escape sequences of a string in a filter, which are
// the same as in JSON.
func unquoteText(raw string) (s string, err error) {
	err = json.Unmarshal([]byte(`"`+raw+`"`), &s)
	return s, err
}

// compileFilter compiles a filter expression to a predicate on resources.
func (k *resourceType) compileFilter(tree filter.Expression, w *parsedFilter) (func(object) bool, error) {
	return compileExpression(tree, func(p filter.AttributePath) (target, error) {
		t, err := k.resolvePath(p, invalidFilter)
		if err == nil && t.attribute.name == "groups" {
			err = newProblem(invalidFilter, "Filters on groups are not supported.")
		}
		w.usesMembers = w.usesMembers || err == nil && t.attribute.name == "members"
		return t, err
	}, k.extension)
}

// valueReader returns the attribute that a comparison with the target uses,
// and a function that reads its values from a resource. A complex attribute is
// compared by its sub-attribute "value", if it has one.
func (t target) valueReader() (*attribute, func(object) []any) {
	a := t.attribute
	sub := t.sub
	if sub == nil && a.dataType == complexType {
		sub = findAttribute(a.sub, "value")
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

// compileValueFilter compiles a filter expression to a predicate on the values
// of a complex attribute.
func (a *attribute) compileValueFilter(tree filter.Expression) (func(object) bool, error) {
	return compileExpression(tree, func(p filter.AttributePath) (target, error) {
		sub := findAttribute(a.sub, p.AttributeName)
		if sub == nil || p.SubAttribute != nil || p.URIPrefix != nil {
			return target{}, newProblem(invalidFilter, "%s has no %s.", a.name, p.String())
		}
		return target{attribute: sub}, nil
	}, nil)
}

// compileExpression compiles a filter expression to a predicate. resolve finds
// the attribute that a path names.
func compileExpression(tree filter.Expression, resolve func(filter.AttributePath) (target, error), extension *schema) (func(object) bool, error) {
	compile := func(tree filter.Expression) (func(object) bool, error) {
		return compileExpression(tree, resolve, extension)
	}

	switch e := tree.(type) {
	case *filter.LogicalExpression:
		left, err := compile(e.Left)
		if err != nil {
			return nil, err
		}
		right, err := compile(e.Right)
		if e.Operator == filter.AND {
			return func(o object) bool { return left(o) && right(o) }, err
		}
		return func(o object) bool { return left(o) || right(o) }, err
	case *filter.NotExpression:
		not, err := compile(e.Expression)
		return func(o object) bool { return !not(o) }, err
	case *filter.ValuePath: // such as emails[type eq "work"]
		t, err := resolve(e.AttributePath)
		if err != nil {
			return nil, err
		}
		if !t.attribute.multiValued || t.sub != nil {
			return nil, newProblem(invalidFilter, "%s does not have multiple values.", e.AttributePath.String())
		}
		one, err := t.attribute.compileValueFilter(e.ValueFilter)
		return func(o object) bool {
			list, _ := o[t.attribute.name].([]any)
			return slices.ContainsFunc(list, func(v any) bool { return one(v.(object)) })
		}, err
	case *filter.AttributeExpression:
		t, err := resolve(e.AttributePath)
		if err != nil {
			return nil, err
		}
		last, values := t.valueReader()
		if t.extension {
			return last.compileComparison(e, func(o object) []any {
				part, _ := o[extension.id].(object)
				return values(part)
			})
		}
		return last.compileComparison(e, values)
	}

	return nil, newProblem(invalidFilter, "The filter is invalid.")
}

// compileComparison compiles one comparison to a predicate. values reads the
// compared values from a resource.
func (a *attribute) compileComparison(e *filter.AttributeExpression, values func(object) []any) (func(object) bool, error) {
	if e.Operator == filter.PR {
		return func(o object) bool { return len(values(o)) > 0 }, nil
	}
	if e.CompareValue == nil && (e.Operator == filter.EQ || e.Operator == filter.NE) {
		return func(o object) bool { return (len(values(o)) == 0) == (e.Operator == filter.EQ) }, nil
	}

	against, err := a.parseOperand(e)
	if err != nil {
		return nil, err
	}

	matches := func(v any) bool {
		return compareValues(v, against, a.caseExact || a.dataType == booleanType, e.Operator)
	}
	if e.Operator == filter.NE {
		matches = func(v any) bool { return compareValues(v, against, a.caseExact, filter.EQ) }
	}

	return func(o object) bool {
		found := false
		for _, v := range values(o) {
			found = found || matches(v)
		}
		return found != (e.Operator == filter.NE)
	}, nil
}

// parseOperand parses the value that an attribute is compared with.
func (a *attribute) parseOperand(e *filter.AttributeExpression) (any, error) {
	invalid := newProblem(invalidFilter, "%s cannot be compared with this operator or value.", a.name)
	text, isText := e.CompareValue.(string)
	if isText {
		s, err := unquoteText(text)
		if err != nil || strings.ContainsRune(s, 0) { // PostgreSQL refuses NUL in strings
			return nil, newProblem(invalidFilter, "The filter is invalid.")
		}
		text = s
	}

	switch a.dataType {
	case booleanType:
		v, err := a.readSingle(e.CompareValue, a.name)
		if err != nil || e.Operator != filter.EQ && e.Operator != filter.NE {
			return nil, invalid
		}
		return v, nil
	case dateTimeType:
		at, err := time.Parse(time.RFC3339, text)
		if err != nil || e.Operator == filter.CO || e.Operator == filter.SW || e.Operator == filter.EW {
			return nil, invalid
		}
		return at, nil
	}
	if !isText {
		return nil, invalid
	}

	return text, nil
}

// compareValues reports whether the comparison of v with against is true.
// exact makes it case-sensitive.
func compareValues(v, against any, exact bool, op filter.CompareOperator) bool {
	switch want := against.(type) {
	case bool:
		return v == want
	case time.Time:
		return matchesOrder(v.(time.Time).Compare(want), op)
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
		default:
			return matchesOrder(cmp.Compare(has, want), op)
		}
	}

	return false
}

func matchesOrder(c int, op filter.CompareOperator) bool {
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
	default:
		return false
	}
}

// resolvePath finds the attribute, and the sub-attribute if any, that a path
// names.
func (k *resourceType) resolvePath(p filter.AttributePath, scimType string) (t target, err error) {
	unknown := newProblem(scimType, "There is no attribute %s.", p.String())
	switch uri := p.URI(); {
	case uri == "", strings.EqualFold(uri, k.core.id):
		t.attribute = k.coreAttribute(p.AttributeName)
	case k.extension != nil && strings.EqualFold(uri, k.extension.id):
		t.extension = true
		t.attribute = findAttribute(k.extension.attributes, p.AttributeName)
	}
	if t.attribute == nil {
		return t, unknown
	}
	if p.SubAttribute != nil {
		if t.sub = findAttribute(t.attribute.sub, *p.SubAttribute); t.sub == nil {
			return t, unknown
		}
	}

	return t, nil
}

// patchPath is the attribute path of a PATCH operation (RFC 7644 section
// 3.5.2).
type patchPath struct {
	target
	filter filter.Expression // selects values of the attribute; nil selects all
}

// parsePath parses an attribute path.
func (k *resourceType) parsePath(text string) (p patchPath, err error) {
	if err := checkExpression(text, maxPath, invalidPath); err != nil {
		return p, err
	}
	if k.extension != nil && strings.EqualFold(text, k.extension.id) {
		p.extension = true
		return p, nil
	}

	parsed, err := filter.ParsePath([]byte(text))
	if err != nil {
		return p, newProblem(invalidPath, "The path is invalid.")
	}
	if parsed.SubAttribute != nil {
		parsed.AttributePath.SubAttribute = parsed.SubAttribute
	}

	p.target, err = k.resolvePath(parsed.AttributePath, invalidPath)
	p.filter = parsed.ValueExpression
	return p, err
}
