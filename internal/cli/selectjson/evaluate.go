package selectjson

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"unicode/utf8"
)

// node is a part of an expression.
type node interface {
	// results returns the results of the part for one value.
	results(v any) ([]any, error)
}

type (
	identity struct{}
	member   string
	element  int
	each     struct{}
	part     struct {
		from     int
		until    int
		hasUntil bool
	}
	pipe         struct{ first, second node }
	comma        []node
	literal      struct{ value any }
	list         struct{ inner node } // nil: the empty list
	object       []objectMember
	objectMember struct {
		name  string
		value node
	}
	comparison struct {
		operator    string
		left, right node
	}
	filter   struct{ condition node }
	optional struct{ inner node }
	function string
)

func (identity) results(v any) ([]any, error) { return []any{v}, nil }

func (m member) results(v any) ([]any, error) {
	switch v := v.(type) {
	case nil:
		return []any{nil}, nil
	case map[string]any:
		return []any{v[string(m)]}, nil
	}
	return nil, fmt.Errorf("%s has no member %q", kindOf(v), string(m))
}

func (e element) results(v any) ([]any, error) {
	switch v := v.(type) {
	case nil:
		return []any{nil}, nil
	case []any:
		i := int(e)
		if i < 0 {
			i += len(v)
		}
		if i < 0 || i >= len(v) {
			return []any{nil}, nil
		}
		return []any{v[i]}, nil
	}
	return nil, fmt.Errorf("%s has no element %d", kindOf(v), int(e))
}

func (p part) results(v any) ([]any, error) {
	switch v := v.(type) {
	case nil:
		return []any{nil}, nil
	case []any:
		bound := func(i int) int {
			if i < 0 {
				i += len(v)
			}
			return min(max(i, 0), len(v))
		}
		from := bound(p.from)
		until := len(v)
		if p.hasUntil {
			until = bound(p.until)
		}
		return []any{v[from:max(from, until)]}, nil
	}
	return nil, fmt.Errorf("%s has no part", kindOf(v))
}

func (each) results(v any) ([]any, error) {
	switch v := v.(type) {
	case []any:
		return v, nil
	case map[string]any:
		var all []any
		for _, name := range slices.Sorted(maps.Keys(v)) {
			all = append(all, v[name])
		}
		return all, nil
	}
	return nil, fmt.Errorf("%s has no elements", kindOf(v))
}

func (p pipe) results(v any) ([]any, error) {
	first, err := p.first.results(v)
	if err != nil {
		return nil, err
	}
	var all []any
	for _, one := range first {
		more, err := p.second.results(one)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

func (c comma) results(v any) ([]any, error) {
	var all []any
	for _, one := range c {
		more, err := one.results(v)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

func (l literal) results(any) ([]any, error) { return []any{l.value}, nil }

func (l list) results(v any) ([]any, error) {
	all := []any{}
	if l.inner != nil {
		inner, err := l.inner.results(v)
		if err != nil {
			return nil, err
		}
		all = append(all, inner...)
	}
	return []any{all}, nil
}

// results returns one object for each combination of the members' results.
func (o object) results(v any) ([]any, error) {
	all := []map[string]any{{}}
	for _, m := range o {
		values, err := m.value.results(v)
		if err != nil {
			return nil, err
		}
		var more []map[string]any
		for _, before := range all {
			for _, value := range values {
				after := maps.Clone(before)
				after[m.name] = value
				more = append(more, after)
			}
		}
		all = more
	}
	var list []any
	for _, one := range all {
		list = append(list, one)
	}
	return list, nil
}

func (c comparison) results(v any) ([]any, error) {
	left, err := c.left.results(v)
	if err != nil {
		return nil, err
	}
	right, err := c.right.results(v)
	if err != nil {
		return nil, err
	}
	var all []any
	for _, r := range right {
		for _, l := range left {
			holds, err := compare(c.operator, l, r)
			if err != nil {
				return nil, err
			}
			all = append(all, holds)
		}
	}
	return all, nil
}

// compare compares two values. Numbers are compared exactly, and only numbers
// and texts have an order.
func compare(operator string, left, right any) (bool, error) {
	var order int
	leftNumber := numberOf(left)
	rightNumber := numberOf(right)
	leftText, isLeftText := left.(string)
	rightText, isRightText := right.(string)
	switch {
	case leftNumber != nil && rightNumber != nil:
		order = leftNumber.Cmp(rightNumber)
	case isLeftText && isRightText:
		order = cmp.Compare(leftText, rightText)
	case operator == "==":
		return reflect.DeepEqual(left, right), nil
	case operator == "!=":
		return !reflect.DeepEqual(left, right), nil
	default:
		return false, fmt.Errorf("%s and %s have no order", kindOf(left), kindOf(right))
	}
	switch operator {
	case "==":
		return order == 0, nil
	case "!=":
		return order != 0, nil
	case "<":
		return order < 0, nil
	case "<=":
		return order <= 0, nil
	case ">":
		return order > 0, nil
	}
	return order >= 0, nil
}

// numberOf returns the number that v is, or nil. A number with a huge exponent
// is none, because its exact value would fill the memory.
func numberOf(v any) *big.Float {
	switch v := v.(type) {
	case json.Number:
		f, _, err := big.ParseFloat(string(v), 10, 200, big.ToNearestEven)
		if err != nil {
			return nil
		}
		return f
	case float64:
		return big.NewFloat(v)
	}
	return nil
}

func (f filter) results(v any) ([]any, error) {
	answers, err := f.condition.results(v)
	if err != nil {
		return nil, err
	}
	var all []any
	for _, a := range answers {
		if a != nil && a != false {
			all = append(all, v)
		}
	}
	return all, nil
}

// results returns nothing instead of an error.
func (o optional) results(v any) ([]any, error) {
	all, err := o.inner.results(v)
	if err != nil {
		return nil, nil
	}
	return all, nil
}

func (f function) results(v any) ([]any, error) {
	switch v := v.(type) {
	case []any:
		if f == "length" {
			return []any{len(v)}, nil
		}
		all := []any{}
		for i := range v {
			all = append(all, i)
		}
		return []any{all}, nil
	case map[string]any:
		if f == "length" {
			return []any{len(v)}, nil
		}
		all := []any{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			all = append(all, name)
		}
		return []any{all}, nil
	case string:
		if f == "length" {
			return []any{utf8.RuneCountInString(v)}, nil
		}
	case nil:
		if f == "length" {
			return []any{0}, nil
		}
	}
	return nil, fmt.Errorf("%s has no %s", kindOf(v), string(f))
}

// kindOf names the kind of a value for error messages.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a text"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "a number"
}
