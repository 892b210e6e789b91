package scim

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	filter "github.com/scim2/filter-parser/v2"
)

// operation is one change of a PATCH request (RFC 7644 section 3.5.2).
type operation struct {
	op    string // add, remove or replace
	at    string // the attribute path as received
	path  patchPath
	value any
}

// Limits on a PATCH request: the number of operations, the bytes of all paths
// together, and the number of attributes in an operation without a path.
const (
	maxOperations = 1000
	maxPaths      = 100_000
	maxNames      = 200
)

// parseOperations parses the body of a PATCH request. It does all expensive
// work before a database transaction begins.
func (k *resourceType) parseOperations(sent map[string]any) ([]operation, error) {
	sent, err := lowerKeys(sent)
	if err != nil {
		return nil, err
	}
	if err := checkMessage(sent, patchOp); err != nil {
		return nil, err
	}

	list, ok := sent["operations"].([]any)
	if !ok || len(list) == 0 || len(list) > maxOperations {
		return nil, newProblem(invalidSyntax, "Operations must be a list of 1 to %d operations.", maxOperations)
	}

	var all []operation
	pathBytes := 0
	for _, one := range list {
		o, ok := one.(map[string]any)
		if !ok {
			return nil, newProblem(invalidSyntax, "An operation must be an object.")
		}
		if o, err = lowerKeys(o); err != nil {
			return nil, err
		}
		op, _ := o["op"].(string)
		op = strings.ToLower(op)
		if op != "add" && op != "remove" && op != "replace" {
			return nil, newProblem(invalidSyntax, "op must be add, remove or replace.")
		}
		at, ok := o["path"].(string)
		if !ok && o["path"] != nil {
			return nil, newProblem(invalidPath, "A path must be a string.")
		}
		value, given := o["value"]
		if op != "remove" && !given || op == "add" && value == nil {
			return nil, newProblem(invalidValue, "%s needs a value.", op)
		}
		parts := []operation{{op: op, at: at, value: value}}
		if at == "" {
			if parts, err = splitOperation(op, value); err != nil {
				return nil, err
			}
		}
		for _, part := range parts {
			if pathBytes += len(part.at); pathBytes > maxPaths {
				return nil, newProblem(invalidPath, "The paths of all operations together must have at most %d bytes.", maxPaths)
			}
			part.path, err = k.parsePath(part.at)
			if at == "" && (err != nil || part.path.attribute != nil && part.path.attribute.mutability == readOnly) {
				continue // unknown and read-only attributes are ignored, as in POST requests
			}
			if err != nil {
				return nil, err
			}
			all = append(all, part)
		}
	}

	return all, nil
}

// splitOperation splits an operation without a path into one operation per
// attribute: its value is an object whose names are attributes or paths.
func splitOperation(op string, value any) (all []operation, err error) {
	if op == "remove" {
		return nil, newProblem(noTarget, "remove needs a path.")
	}

	parts, ok := value.(map[string]any)
	if !ok {
		return nil, newProblem(invalidValue, "Without a path the value must be an object.")
	}
	if len(parts) > maxNames {
		return nil, newProblem(invalidValue, "A value must have at most %d attributes.", maxNames)
	}

	for _, name := range slices.Sorted(maps.Keys(parts)) {
		all = append(all, operation{op: op, at: name, value: parts[name]})
	}

	return all, nil
}

// lowerKeys returns an object with its names converted to lower case.
func lowerKeys(o map[string]any) (map[string]any, error) {
	got := make(map[string]any, len(o))
	for name, v := range o {
		low := strings.ToLower(name)
		if _, exists := got[low]; exists {
			return nil, newProblem(invalidSyntax, "A name appears twice in one object.")
		}
		got[low] = v
	}
	return got, nil
}

// checkMessage returns an error if the attribute schemas of a request body
// names another kind of message than want. A body without schemas is accepted.
func checkMessage(sent map[string]any, want string) error {
	if sent["schemas"] == nil {
		return nil
	}
	list, _ := sent["schemas"].([]any)
	for _, one := range list {
		if s, ok := one.(string); ok && strings.EqualFold(s, want) {
			return nil
		}
	}
	return newProblem(invalidSyntax, "schemas must name %s.", want)
}

// applyOperations applies the operations of a PATCH request to a resource, in
// order.
func (k *resourceType) applyOperations(o object, all []operation) error {
	for _, op := range all {
		if err := k.applyOperation(o, op.path, op); err != nil {
			return err
		}
	}
	return nil
}

// applyOperation applies one operation of a PATCH request to a resource.
func (k *resourceType) applyOperation(o object, p patchPath, op operation) error {
	if op.value == nil {
		op.op = "remove"
	}
	if p.extension {
		part, _ := o[k.extension.id].(object)
		if part == nil {
			part = object{}
		}
		err := k.applyExtension(part, p, op)
		if o[k.extension.id] = part; len(part) == 0 {
			delete(o, k.extension.id)
		}
		return err
	}

	return p.applyAt(o, op)
}

func (k *resourceType) applyExtension(part object, p patchPath, op operation) error {
	if p.attribute != nil {
		return p.applyAt(part, op)
	}
	if op.op == "remove" {
		clear(part)
		return nil
	}

	sent, ok := op.value.(map[string]any)
	if !ok {
		return newProblem(invalidValue, "%s must be an object.", k.extension.id)
	}

	got, err := readAttributes(k.extension.attributes, sent, "")
	maps.Copy(part, got)
	return err
}

// applyAt applies one operation to the object that contains the attribute: the
// resource or its extension.
func (p patchPath) applyAt(o object, op operation) error {
	a := p.attribute
	if a.mutability == readOnly || p.sub != nil && (p.sub.mutability == readOnly || p.sub.mutability == immutable) {
		return newProblem(mutability, "%s cannot be changed.", op.at)
	}

	switch {
	case p.filter != nil:
		return p.applySelected(o, op)
	case p.sub != nil:
		return p.applySub(o, op)
	case op.op == "remove":
		if a.required {
			return newProblem(mutability, "%s is required.", a.name)
		}
		return a.removeValues(o, op.value)
	}

	v, err := a.readValue(op.value, a.name)
	if err != nil {
		return err
	}

	has := o[a.name]
	switch {
	case v == nil:
		delete(o, a.name)
	case a.multiValued && op.op == "add":
		list, _ := has.([]any)
		o[a.name] = mergeValues(list, v.([]any))
	case !a.multiValued && a.dataType == complexType && has != nil:
		maps.Copy(has.(object), v.(object)) // both add and replace keep the sub-attributes that are not named
	default:
		o[a.name] = v
	}

	return nil
}

// removeValues removes an attribute. If it has multiple values and named lists
// some of them, as Entra ID does, only the listed values are removed.
func (a *attribute) removeValues(o object, named any) error {
	if !a.multiValued || named == nil {
		delete(o, a.name)
		return nil
	}

	v, err := a.readValue(named, a.name)
	if err != nil {
		return err
	}

	list, _ := v.([]any)
	removed := indexByValue(list)
	has, _ := o[a.name].([]any)
	a.setValues(o, slices.DeleteFunc(has, func(one any) bool {
		value := one.(object)["value"]
		if value != nil {
			return removed[value] != nil
		}
		return slices.ContainsFunc(removed[nil], func(named object) bool { return reflect.DeepEqual(one, named) })
	}))
	return nil
}

// indexByValue indexes the values of an attribute by their sub-attribute
// "value", because lists may be long. Values without it, such as postal
// addresses, have the key nil.
func indexByValue(list []any) map[any][]object {
	all := make(map[any][]object, len(list))
	for _, one := range list {
		o := one.(object)
		all[o["value"]] = append(all[o["value"]], o)
	}
	return all
}

// setValues sets the values of a multi-valued attribute. An empty list removes
// the attribute.
func (a *attribute) setValues(o object, list []any) {
	if o[a.name] = list; len(list) == 0 {
		delete(o, a.name)
	}
}

// mergeValues adds values to the list unless it already contains them. If an
// added value is primary, the values that were already in the list lose that
// property.
func mergeValues(list, more []any) []any {
	known := indexByValue(list)
	for _, one := range more {
		o := one.(object)
		if slices.ContainsFunc(known[o["value"]], func(has object) bool { return isSameValue(has, o) }) {
			continue
		}
		if isPrimary(one) {
			for _, has := range list {
				if isPrimary(has) {
					has.(object)["primary"] = false
				}
			}
		}
		list = append(list, one)
	}

	return list
}

// isSameValue reports whether two values of an attribute are equal. Group
// members are compared by their id only.
func isSameValue(has, one object) bool {
	if _, member := has["$ref"]; member && has["value"] != nil {
		return has["value"] == one["value"]
	}
	return reflect.DeepEqual(has, one)
}

// applySub applies an operation to a sub-attribute, such as name.givenName.
// For a multi-valued attribute, such as emails.type, it changes all values.
func (p patchPath) applySub(o object, op operation) error {
	a := p.attribute
	if !a.multiValued {
		part, _ := o[a.name].(object)
		if part == nil {
			part = object{}
		}
		if err := p.setSub(part, op); err != nil {
			return err
		}
		if o[a.name] = part; len(part) == 0 {
			delete(o, a.name)
		}
		return nil
	}

	list, _ := o[a.name].([]any)
	if len(list) == 0 && op.op != "remove" {
		list = []any{object{}}
	}

	return p.setEach(o, list, func(object) bool { return true }, op)
}

// setSub sets or removes the sub-attribute of the path in one value.
func (p patchPath) setSub(part object, op operation) error {
	if op.op == "remove" {
		delete(part, p.sub.name)
		return nil
	}
	v, err := p.sub.readValue(op.value, p.attribute.name+"."+p.sub.name)
	if err != nil {
		return err
	}
	if part[p.sub.name] = v; v == nil {
		delete(part, p.sub.name)
	}
	return nil
}

// setEach calls setSub for each value of the list that selected accepts, and
// removes values that became empty.
func (p patchPath) setEach(o object, list []any, selected func(object) bool, op operation) error {
	for _, one := range list {
		if part := one.(object); selected(part) {
			if err := p.setSub(part, op); err != nil {
				return err
			}
		}
	}
	p.attribute.setValues(o, slices.DeleteFunc(list, func(one any) bool { return len(one.(object)) == 0 }))
	return nil
}

// applySelected applies an operation to a path with a filter, such as
// members[value eq "…"] or emails[type eq "work"].value.
func (p patchPath) applySelected(o object, op operation) error {
	a := p.attribute
	if !a.multiValued {
		return newProblem(invalidPath, "%s does not have multiple values.", a.name)
	}

	selected, err := a.compileValueFilter(p.filter)
	if err != nil {
		return err
	}

	list, _ := o[a.name].([]any)
	if op.op == "remove" && p.sub == nil {
		a.setValues(o, slices.DeleteFunc(list, func(one any) bool { return selected(one.(object)) }))
		return nil
	}
	if !slices.ContainsFunc(list, func(one any) bool { return selected(one.(object)) }) {
		switch op.op {
		case "remove": // nothing to remove
			return nil
		case "replace":
			return newProblem(noTarget, "The path selects no value of %s.", a.name)
		}
		added := object{}
		if err := a.impliedValue(p.filter, added); err != nil {
			return err
		}
		list = append(list, added)
	}
	if p.sub != nil {
		return p.setEach(o, list, selected, op)
	}

	v, err := a.readSingle(op.value, a.name)
	if err == nil && v == nil {
		err = newProblem(invalidValue, "%s must have a value.", a.name)
	}
	if err != nil {
		return err
	}

	for i, one := range list {
		if !selected(one.(object)) {
			continue
		}
		if op.op == "replace" {
			list[i] = maps.Clone(v.(object))
		} else {
			maps.Copy(one.(object), v.(object))
		}
	}

	o[a.name] = list
	return nil
}

// impliedValue adds the sub-attributes that a filter requires by eq to a new
// value. Entra ID relies on this to add a work address to users without one,
// with the path emails[type eq "work"].
func (a *attribute) impliedValue(tree filter.Expression, into object) error {
	switch e := tree.(type) {
	case *filter.LogicalExpression:
		if e.Operator == filter.AND {
			if err := a.impliedValue(e.Left, into); err != nil {
				return err
			}
			return a.impliedValue(e.Right, into)
		}
	case *filter.AttributeExpression:
		if e.Operator != filter.EQ || e.CompareValue == nil {
			break
		}
		sub := findAttribute(a.sub, e.AttributePath.AttributeName)
		v, err := sub.parseOperand(e)
		if err == nil {
			into[sub.name] = v
		}
		return err
	}

	return newProblem(noTarget, "The path selects no value of %s.", a.name)
}
