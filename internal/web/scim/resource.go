package scim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// object is a resource or a part of one. Its names are spelled as in the
// schema.
type object = map[string]any

// maxValues is the maximum number of values of an attribute. It does not apply
// to the members of groups, which package provisioning limits.
const maxValues = 1000

// readAttributes reads the attributes of a schema from a request body.
// Attributes that are unknown, read-only or null are ignored. at is the path
// of the object, for error messages.
func readAttributes(all []attribute, sent map[string]any, at string) (object, error) {
	got := object{}
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		a := findAttribute(all, name)
		if a == nil || a.mutability == readOnly {
			continue
		}
		v, err := a.readValue(sent[name], at+a.name)
		if err != nil {
			return nil, err
		}
		if _, twice := got[a.name]; twice {
			return nil, newProblem(invalidSyntax, "%s appears twice.", at+a.name)
		}
		if v != nil {
			got[a.name] = v
		}
	}

	return got, nil
}

// readValue reads the value of an attribute. It returns nil if there is none.
// It accepts deviations of common identity providers: booleans as strings, and
// single values in a list.
func (a *attribute) readValue(sent any, at string) (any, error) {
	if !a.multiValued {
		if list, ok := sent.([]any); ok && len(list) == 1 {
			sent = list[0]
			if o, ok := sent.(map[string]any); ok && a.dataType != complexType {
				sent = o["value"]
			}
		}
		return a.readSingle(sent, at)
	}

	list, ok := sent.([]any)
	if !ok {
		if sent == nil {
			return nil, nil
		}
		list = []any{sent}
	}
	if len(list) > maxValues && a.name != "members" {
		return nil, newProblem(invalidValue, "%s has more than %d values.", at, maxValues)
	}

	var got []any
	primary := 0
	for _, one := range list {
		v, err := a.readSingle(one, at)
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
		return nil, newProblem(invalidValue, "More than one value of %s is primary.", at)
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

// readSingle reads one value of an attribute. It returns nil if there is none.
func (a *attribute) readSingle(sent any, at string) (any, error) {
	if sent == nil {
		return nil, nil
	}

	switch a.dataType {
	case complexType:
		if s, ok := sent.(string); ok && findAttribute(a.sub, "value") != nil {
			sent = map[string]any{"value": s}
		}
		o, ok := sent.(map[string]any)
		if !ok {
			return nil, newProblem(invalidValue, "%s must be an object.", at)
		}
		got, err := readAttributes(a.sub, o, at+".")
		if err != nil || len(got) == 0 {
			return nil, err
		}
		return got, nil
	case booleanType:
		switch v := sent.(type) {
		case bool:
			return v, nil
		case string:
			if strings.EqualFold(v, "true") || strings.EqualFold(v, "false") {
				return strings.EqualFold(v, "true"), nil
			}
		}
		return nil, newProblem(invalidValue, "%s must be true or false.", at)
	}

	s, ok := sent.(string)
	if !ok {
		return nil, newProblem(invalidValue, "%s must be a string.", at)
	}
	if len(s) > maxText {
		return nil, newProblem(invalidValue, "%s is too long.", at)
	}

	return s, nil
}

// Maximum length in bytes of a string, and of an externalId, which has a
// shorter limit because it is indexed.
const (
	maxText     = 4096
	maxExternal = 1000
)

// externalID returns the identity provider's id of a resource. It returns ""
// if there is none.
func externalID(o object) (string, error) {
	id, _ := o["externalId"].(string)
	if len(id) > maxExternal {
		return "", newProblem(invalidValue, "externalId must have at most %d bytes.", maxExternal)
	}
	return id, nil
}

// readResource reads a complete resource from a request body.
func (k *resourceType) readResource(sent map[string]any) (object, error) {
	got, err := readAttributes(slices.Concat(k.core.attributes, commonAttributes), sent, "")
	if err != nil || k.extension == nil {
		return got, err
	}

	for name, v := range sent {
		if !strings.EqualFold(name, k.extension.id) || v == nil {
			continue
		}
		part, ok := v.(map[string]any)
		if !ok {
			return nil, newProblem(invalidValue, "%s must be an object.", k.extension.id)
		}
		more, err := readAttributes(k.extension.attributes, part, "")
		if err != nil {
			return nil, err
		}
		if _, twice := got[k.extension.id]; twice {
			return nil, newProblem(invalidSyntax, "%s appears twice.", k.extension.id)
		}
		if len(more) > 0 {
			got[k.extension.id] = more
		}
	}

	return got, nil
}

// selection is the set of attributes to include in a response (RFC 7644
// section 3.9).
type selection struct {
	only     []target
	without  []target
	hasNames bool // the request names the attributes to include; these are in only
}

// target is an attribute or sub-attribute of a resource type, or a whole
// schema extension.
type target struct {
	extension bool
	attribute *attribute // nil means the whole extension
	sub       *attribute // nil means the whole attribute
}

// maxSelected is the maximum number of attributes that a request can select.
const maxSelected = 100

// parseSelection parses the parameters attributes and excludedAttributes.
// Unknown attributes are ignored.
func (k *resourceType) parseSelection(attributes, excluded []string) (s selection, err error) {
	if len(attributes) > 0 && len(excluded) > 0 {
		return s, newProblem(invalidValue, "Send attributes or excludedAttributes, not both.")
	}
	if len(attributes) > maxSelected || len(excluded) > maxSelected {
		return s, newProblem(invalidValue, "At most %d attributes can be selected.", maxSelected)
	}

	s.hasNames = len(attributes) > 0
	for i, names := range [][]string{attributes, excluded} {
		for _, name := range names {
			path, err := k.parsePath(name)
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

// includesAttribute reports whether the response includes an attribute of the
// core schema.
func (s selection) includesAttribute(name string) bool {
	if s.hasNames {
		return slices.ContainsFunc(s.only, func(t target) bool { return !t.extension && t.attribute.name == name })
	}
	return !slices.ContainsFunc(s.without, func(t target) bool { return !t.extension && t.attribute.name == name && t.sub == nil })
}

// selectAttributes returns a resource with the selected attributes only.
func (k *resourceType) selectAttributes(full object, s selection) object {
	got := object{"schemas": full["schemas"], "id": full["id"]}
	for name, v := range full {
		if name == "schemas" || name == "id" {
			continue
		}
		if k.extension != nil && name == k.extension.id {
			part := object{}
			for name, v := range v.(object) {
				s.copySelected(part, true, findAttribute(k.extension.attributes, name), v)
			}
			if len(part) > 0 {
				got[name] = part
			}
			continue
		}
		s.copySelected(got, false, k.coreAttribute(name), v)
	}

	return got
}

// copySelected copies the selected parts of an attribute's value to a
// response.
func (s selection) copySelected(into object, extension bool, a *attribute, v any) {
	subs := map[string]bool{} // selected sub-attributes
	whole := !s.hasNames
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
			sub := findAttribute(a.sub, name)
			if subs[name] || whole && sub.returned != onRequest && !without[name] {
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

// newProblem returns a SCIM error with status 400.
func newProblem(scimType, format string, args ...any) error {
	return &problem{status: 400, scimType: scimType, detail: fmt.Sprintf(format, args...)}
}
