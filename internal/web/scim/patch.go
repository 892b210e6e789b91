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
	at    string // the path as it was sent
	path  path
	value any
}

// Bounds of a request: its operations, the bytes of all their paths, and the
// names in a value that stands for the whole resource.
const (
	maxOperations = 1000
	maxPaths      = 100_000
	maxNames      = 200
)

// operations reads the body of a PATCH request. All that takes long is done
// here, where no transaction is open.
func (k *kind) operations(sent map[string]any) ([]operation, error) {
	sent, err := folded(sent)
	if err != nil {
		return nil, err
	}
	if err := message(sent, patchOp); err != nil {
		return nil, err
	}
	list, ok := sent["operations"].([]any)
	if !ok || len(list) == 0 || len(list) > maxOperations {
		return nil, refuse(invalidSyntax, "Operations must be a list of 1 to %d.", maxOperations)
	}
	var all []operation
	length := 0
	for _, one := range list {
		o, ok := one.(map[string]any)
		if !ok {
			return nil, refuse(invalidSyntax, "An operation must be an object.")
		}
		if o, err = folded(o); err != nil {
			return nil, err
		}
		op, _ := o["op"].(string)
		op = strings.ToLower(op)
		if op != "add" && op != "remove" && op != "replace" {
			return nil, refuse(invalidSyntax, "op must be add, remove or replace.")
		}
		at, ok := o["path"].(string)
		if !ok && o["path"] != nil {
			return nil, refuse(invalidPath, "A path must be a text.")
		}
		value, given := o["value"]
		if op != "remove" && !given || op == "add" && value == nil {
			return nil, refuse(invalidValue, "%s needs a value.", op)
		}
		more := []operation{{op: op, at: at, value: value}}
		if at == "" {
			if more, err = whole(op, value); err != nil {
				return nil, err
			}
		}
		for _, part := range more {
			if length += len(part.at); length > maxPaths {
				return nil, refuse(invalidPath, "The paths of all operations have %d bytes at most.", maxPaths)
			}
			part.path, err = k.path(part.at)
			if at == "" && (err != nil || part.path.attribute != nil && part.path.attribute.mutability == readOnly) {
				continue // what POST ignores is ignored here
			}
			if err != nil {
				return nil, err
			}
			all = append(all, part)
		}
	}
	return all, nil
}

// whole takes an operation without a path apart: the value holds attributes,
// with their paths as names where the sender likes that.
func whole(op string, value any) (all []operation, err error) {
	if op == "remove" {
		return nil, refuse(noTarget, "remove needs a path.")
	}
	parts, ok := value.(map[string]any)
	if !ok {
		return nil, refuse(invalidValue, "Without a path the value must be an object.")
	}
	if len(parts) > maxNames {
		return nil, refuse(invalidValue, "A value has %d names at most.", maxNames)
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		all = append(all, operation{op: op, at: name, value: parts[name]})
	}
	return all, nil
}

// folded has the names of an object in lower case.
func folded(o map[string]any) (map[string]any, error) {
	got := make(map[string]any, len(o))
	for name, v := range o {
		low := strings.ToLower(name)
		if _, twice := got[low]; twice {
			return nil, refuse(invalidSyntax, "A name stands twice in one object.")
		}
		got[low] = v
	}
	return got, nil
}

// message refuses a body that says it is another message. One that does not say
// what it is is believed.
func message(sent map[string]any, want string) error {
	if sent["schemas"] == nil {
		return nil
	}
	list, _ := sent["schemas"].([]any)
	for _, one := range list {
		if s, ok := one.(string); ok && strings.EqualFold(s, want) {
			return nil
		}
	}
	return refuse(invalidSyntax, "schemas must name %s.", want)
}

// patch changes a resource.
func (k *kind) patch(o object, all []operation) error {
	for _, op := range all {
		if err := k.apply(o, op.path, op); err != nil {
			return err
		}
	}
	return nil
}

// apply does one operation at a path.
func (k *kind) apply(o object, p path, op operation) error {
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
	return p.apply(o, op)
}

func (k *kind) applyExtension(part object, p path, op operation) error {
	if p.attribute != nil {
		return p.apply(part, op)
	}
	if op.op == "remove" {
		clear(part)
		return nil
	}
	sent, ok := op.value.(map[string]any)
	if !ok {
		return refuse(invalidValue, "%s must be an object.", k.extension.id)
	}
	got, err := read(k.extension.attributes, sent, "")
	maps.Copy(part, got)
	return err
}

// apply does one operation on the object that the path begins in.
func (p path) apply(o object, op operation) error {
	a := p.attribute
	if a.mutability == readOnly || p.sub != nil && (p.sub.mutability == readOnly || p.sub.mutability == immutable) {
		return refuse(mutability, "%s cannot be changed.", op.at)
	}
	switch {
	case p.filter != nil:
		return p.applySelected(o, op)
	case p.sub != nil:
		return p.applySub(o, op)
	case op.op == "remove":
		if a.required {
			return refuse(mutability, "%s is required.", a.name)
		}
		return a.remove(o, op.value)
	}
	v, err := a.read(op.value, a.name)
	if err != nil {
		return err
	}
	has := o[a.name]
	switch {
	case v == nil:
		delete(o, a.name)
	case a.many && op.op == "add":
		list, _ := has.([]any)
		o[a.name] = merged(list, v.([]any))
	case !a.many && a.kind == complexes && has != nil:
		maps.Copy(has.(object), v.(object)) // what is not named stays, in either case
	default:
		o[a.name] = v
	}
	return nil
}

// remove takes an attribute away, or of many values those that are named, as
// Entra ID does.
func (a *attribute) remove(o object, named any) error {
	if !a.many || named == nil {
		delete(o, a.name)
		return nil
	}
	v, err := a.read(named, a.name)
	if err != nil {
		return err
	}
	list, _ := v.([]any)
	gone := byValue(list)
	has, _ := o[a.name].([]any)
	a.keep(o, slices.DeleteFunc(has, func(one any) bool {
		value := one.(object)["value"]
		if value != nil {
			return gone[value] != nil
		}
		return slices.ContainsFunc(gone[nil], func(named object) bool { return reflect.DeepEqual(one, named) })
	}))
	return nil
}

// byValue finds values by what they are about, since lists may be long; nil are
// those, as postal addresses, that have no such part.
func byValue(list []any) map[any][]object {
	all := make(map[any][]object, len(list))
	for _, one := range list {
		o := one.(object)
		all[o["value"]] = append(all[o["value"]], o)
	}
	return all
}

// keep sets the values of an attribute. None of them is none at all.
func (a *attribute) keep(o object, list []any) {
	if o[a.name] = list; len(list) == 0 {
		delete(o, a.name)
	}
}

// merged adds values that are not there yet. One that is primary takes that from
// the others.
func merged(list, more []any) []any {
	known := byValue(list)
	for _, one := range more {
		o := one.(object)
		if slices.ContainsFunc(known[o["value"]], func(has object) bool { return same(has, o) }) {
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

// same tells whether a value is one that is there. Members are by their id
// alone.
func same(has, one object) bool {
	if _, member := has["$ref"]; member && has["value"] != nil {
		return has["value"] == one["value"]
	}
	return reflect.DeepEqual(has, one)
}

// applySub is for name.givenName, and for emails.type, which means all of them.
func (p path) applySub(o object, op operation) error {
	a := p.attribute
	if !a.many {
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

// setSub sets or removes a part of a value.
func (p path) setSub(part object, op operation) error {
	if op.op == "remove" {
		delete(part, p.sub.name)
		return nil
	}
	v, err := p.sub.read(op.value, p.attribute.name+"."+p.sub.name)
	if err != nil {
		return err
	}
	if part[p.sub.name] = v; v == nil {
		delete(part, p.sub.name)
	}
	return nil
}

// setEach does setSub to the values that are meant.
func (p path) setEach(o object, list []any, meant func(object) bool, op operation) error {
	for _, one := range list {
		if part := one.(object); meant(part) {
			if err := p.setSub(part, op); err != nil {
				return err
			}
		}
	}
	p.attribute.keep(o, slices.DeleteFunc(list, func(one any) bool { return len(one.(object)) == 0 }))
	return nil
}

// applySelected is for members[value eq "…"] and emails[type eq "work"].value.
func (p path) applySelected(o object, op operation) error {
	a := p.attribute
	if !a.many {
		return refuse(invalidPath, "%s has no several values.", a.name)
	}
	meant, err := a.compileIn(p.filter)
	if err != nil {
		return err
	}
	list, _ := o[a.name].([]any)
	if op.op == "remove" && p.sub == nil {
		a.keep(o, slices.DeleteFunc(list, func(one any) bool { return meant(one.(object)) }))
		return nil
	}
	if !slices.ContainsFunc(list, func(one any) bool { return meant(one.(object)) }) {
		switch op.op {
		case "remove": // nothing to take away
			return nil
		case "replace":
			return refuse(noTarget, "No value of %s is meant.", a.name)
		}
		fresh := object{}
		if err := a.imply(p.filter, fresh); err != nil {
			return err
		}
		list = append(list, fresh)
	}
	if p.sub != nil {
		return p.setEach(o, list, meant, op)
	}
	v, err := a.readOne(op.value, a.name)
	if err == nil && v == nil {
		err = refuse(invalidValue, "%s must have a value.", a.name)
	}
	if err != nil {
		return err
	}
	for i, one := range list {
		if !meant(one.(object)) {
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

// imply makes a value that a filter means: what Entra ID adds to users that have
// no emails[type eq "work"] yet.
func (a *attribute) imply(tree filter.Expression, into object) error {
	switch e := tree.(type) {
	case *filter.LogicalExpression:
		if e.Operator == filter.AND {
			if err := a.imply(e.Left, into); err != nil {
				return err
			}
			return a.imply(e.Right, into)
		}
	case *filter.AttributeExpression:
		if e.Operator != filter.EQ || e.CompareValue == nil {
			break
		}
		sub := find(a.sub, e.AttributePath.AttributeName)
		v, err := sub.operand(e)
		if err == nil {
			into[sub.name] = v
		}
		return err
	}
	return refuse(noTarget, "No value of %s is meant.", a.name)
}
