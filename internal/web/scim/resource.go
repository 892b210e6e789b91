package scim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// object is a resource or a part of one. Names are as the schema writes them.
type object = map[string]any

// maxValues bounds the values of an attribute, but for the members of groups,
// which the directory bounds.
const maxValues = 1000

// read takes what a directory sent for attributes of a schema. What is unknown,
// read-only or null is left out.
func read(all []attribute, sent map[string]any, at string) (object, error) {
	got := object{}
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		a := find(all, name)
		if a == nil || a.mutability == readOnly {
			continue
		}
		v, err := a.read(sent[name], at+a.name)
		if err != nil {
			return nil, err
		}
		if _, twice := got[a.name]; twice {
			return nil, refuse(invalidSyntax, "%s stands there twice.", at+a.name)
		}
		if v != nil {
			got[a.name] = v
		}
	}
	return got, nil
}

// read takes the value of an attribute, nil for none. It takes what identity
// providers send as well: booleans as texts, and values of one in a list.
func (a *attribute) read(sent any, at string) (any, error) {
	if !a.many {
		if list, ok := sent.([]any); ok && len(list) == 1 {
			sent = list[0]
			if o, ok := sent.(map[string]any); ok && a.kind != complexes {
				sent = o["value"]
			}
		}
		return a.readOne(sent, at)
	}
	list, ok := sent.([]any)
	if !ok {
		if sent == nil {
			return nil, nil
		}
		list = []any{sent}
	}
	if len(list) > maxValues && a.name != "members" {
		return nil, refuse(invalidValue, "%s has more than %d values.", at, maxValues)
	}
	var got []any
	primary := 0
	for _, one := range list {
		v, err := a.readOne(one, at)
		if err != nil {
			return nil, err
		}
		if v == nil {
			continue
		}
		if isPrimary(v) {
			primary++
		}
		got = append(got, v)
	}
	if primary > 1 {
		return nil, refuse(invalidValue, "More than one of %s is primary.", at)
	}
	if got == nil {
		return nil, nil
	}
	return got, nil
}

func isPrimary(v any) bool {
	o, _ := v.(object)
	primary, _ := o["primary"].(bool)
	return primary
}

func (a *attribute) readOne(sent any, at string) (any, error) {
	if sent == nil {
		return nil, nil
	}
	switch a.kind {
	case complexes:
		if s, ok := sent.(string); ok && find(a.sub, "value") != nil {
			sent = map[string]any{"value": s}
		}
		o, ok := sent.(map[string]any)
		if !ok {
			return nil, refuse(invalidValue, "%s must be an object.", at)
		}
		got, err := read(a.sub, o, at+".")
		if err != nil || len(got) == 0 {
			return nil, err
		}
		return got, nil
	case boolean:
		switch v := sent.(type) {
		case bool:
			return v, nil
		case string:
			if strings.EqualFold(v, "true") || strings.EqualFold(v, "false") {
				return strings.EqualFold(v, "true"), nil
			}
		}
		return nil, refuse(invalidValue, "%s must be true or false.", at)
	}
	s, ok := sent.(string)
	if !ok {
		return nil, refuse(invalidValue, "%s must be a text.", at)
	}
	if len(s) > maxText {
		return nil, refuse(invalidValue, "%s is too long.", at)
	}
	return s, nil
}

// maxText bounds a text, and maxExternal an externalId, by which an index goes,
// in bytes.
const (
	maxText     = 4096
	maxExternal = 1000
)

// externalID takes what the directory calls a resource, "" where it does not.
func externalID(o object) (string, error) {
	id, _ := o["externalId"].(string)
	if len(id) > maxExternal {
		return "", refuse(invalidValue, "externalId has %d bytes at most.", maxExternal)
	}
	return id, nil
}

// read takes a whole resource.
func (k *kind) read(sent map[string]any) (object, error) {
	got, err := read(slices.Concat(k.core.attributes, common), sent, "")
	if err != nil || k.extension == nil {
		return got, err
	}
	for name, v := range sent {
		if !strings.EqualFold(name, k.extension.id) || v == nil {
			continue
		}
		part, ok := v.(map[string]any)
		if !ok {
			return nil, refuse(invalidValue, "%s must be an object.", k.extension.id)
		}
		more, err := read(k.extension.attributes, part, "")
		if err != nil {
			return nil, err
		}
		if _, twice := got[k.extension.id]; twice {
			return nil, refuse(invalidSyntax, "%s stands there twice.", k.extension.id)
		}
		if len(more) > 0 {
			got[k.extension.id] = more
		}
	}
	return got, nil
}

// selection is which attributes an answer has (RFC 7644 section 3.9).
type selection struct {
	only, without []target
	some          bool // only what is named
}

// target names an attribute of a kind, or a part of one, or a whole extension.
type target struct {
	extension bool
	attribute *attribute // nil: the whole extension
	sub       *attribute // nil: all of it
}

// maxSelected bounds the names of attributes in a request.
const maxSelected = 100

// selects reads the parameters attributes and excludedAttributes. Names that
// nothing has select nothing.
func (k *kind) selects(attributes, excluded []string) (s selection, err error) {
	if len(attributes) > 0 && len(excluded) > 0 {
		return s, refuse(invalidValue, "Give attributes or excludedAttributes, not both.")
	}
	if len(attributes) > maxSelected || len(excluded) > maxSelected {
		return s, refuse(invalidValue, "%d attributes can be chosen at most.", maxSelected)
	}
	s.some = len(attributes) > 0
	for i, names := range [][]string{attributes, excluded} {
		for _, name := range names {
			path, err := k.path(name)
			if err != nil || path.filter != nil {
				continue
			}
			if i == 0 {
				s.only = append(s.only, path.target)
			} else {
				s.without = append(s.without, path.target)
			}
		}
	}
	return s, nil
}

// names tells whether an answer mentions an attribute of the core schema.
func (s selection) names(name string) bool {
	if s.some {
		return slices.ContainsFunc(s.only, func(t target) bool { return !t.extension && t.attribute.name == name })
	}
	return !slices.ContainsFunc(s.without, func(t target) bool { return !t.extension && t.attribute.name == name && t.sub == nil })
}

// cut gives the part of a resource that was asked for.
func (k *kind) cut(full object, s selection) object {
	got := object{"schemas": full["schemas"], "id": full["id"]}
	for name, v := range full {
		if name == "schemas" || name == "id" {
			continue
		}
		if k.extension != nil && name == k.extension.id {
			part := object{}
			for name, v := range v.(object) {
				s.put(part, true, find(k.extension.attributes, name), v)
			}
			if len(part) > 0 {
				got[name] = part
			}
			continue
		}
		s.put(got, false, k.attribute(name), v)
	}
	return got
}

// put puts a value into an answer that has it.
func (s selection) put(into object, extension bool, a *attribute, v any) {
	subs := map[string]bool{} // which were asked for
	whole := !s.some
	for _, t := range s.only {
		switch {
		case t.extension != extension || t.attribute != nil && t.attribute.name != a.name:
		case t.attribute == nil || t.sub == nil:
			whole = true
		default:
			subs[t.sub.name] = true
		}
	}
	if !whole && len(subs) == 0 {
		return
	}
	without := map[string]bool{}
	for _, t := range s.without {
		switch {
		case t.extension != extension || t.attribute != nil && t.attribute.name != a.name:
		case t.attribute == nil || t.sub == nil:
			return
		default:
			without[t.sub.name] = true
		}
	}
	keep := func(one object) object {
		got := object{}
		for name, v := range one {
			sub := find(a.sub, name)
			if asked := subs[name]; asked || whole && sub.returned != onRequest && !without[name] {
				got[name] = v
			}
		}
		return got
	}
	switch v := v.(type) {
	case object:
		into[a.name] = keep(v)
	case []any:
		list := make([]any, len(v))
		for i, one := range v {
			list[i] = keep(one.(object))
		}
		into[a.name] = list
	default:
		into[a.name] = v
	}
}

// refuse makes an error of the protocol.
func refuse(scimType, format string, args ...any) error {
	return &problem{status: 400, scimType: scimType, detail: fmt.Sprintf(format, args...)}
}
