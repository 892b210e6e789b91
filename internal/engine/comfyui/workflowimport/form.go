package workflowimport

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"atelier/internal/engine/comfyui/nodegraph"
	"atelier/internal/engine/manifestdraft"
)

// form collects the fields of a tool, and the inputs of the workflow that each
// field sets.
type form struct {
	fields   []manifestdraft.Field
	bind     map[string][]string // the bind setting of the manifest
	owner    map[inputRef]string // key in bind, by input
	keys     map[fieldValue]string
	usedKeys map[string]bool
	fixed    map[inputRef]string // reasons why inputs are not fields
}

// fieldValue identifies a field that several inputs can share.
type fieldValue struct {
	base  string // the field's key without a number
	value string // value of the inputs in the workflow
}

func newForm() *form {
	return &form{
		bind:     map[string][]string{},
		owner:    map[inputRef]string{},
		keys:     map[fieldValue]string{},
		usedKeys: map[string]bool{},
		fixed:    map[inputRef]string{},
	}
}

// addField binds inputs to the field that create returns. Inputs with the same
// base and value share a field, for example the steps of two samplers. Inputs
// with other values get separate fields. An input that is already bound keeps
// its field.
func (f *form) addField(base string, value any, refs []inputRef, create func() manifestdraft.Field) {
	refs = slices.DeleteFunc(slices.Clone(refs), f.isBound)
	if len(refs) == 0 {
		return
	}
	key := f.ensureField(base, value, create)
	for _, ref := range refs {
		f.bindInput(key, ref)
	}
}

// ensureField returns the key of the field with a base and a value. It adds the
// field that create returns if there is none yet.
func (f *form) ensureField(base string, value any, create func() manifestdraft.Field) string {
	if key := f.findKey(base, value); key != "" {
		return key
	}
	key := f.freeKey(base)
	f.keys[fieldValue{base, fmt.Sprint(value)}] = key
	f.createField(key, base, create())
	return key
}

// findKey returns the key of the field with a base and a value, or "" if there
// is none.
func (f *form) findKey(base string, value any) string {
	return f.keys[fieldValue{base, fmt.Sprint(value)}]
}

// freeKey returns base, or base with a number if another field has that key.
func (f *form) freeKey(base string) string {
	key := base
	for n := 2; f.usedKeys[key]; n++ {
		key = fmt.Sprintf("%s_%d", base, n)
	}
	return key
}

// createField adds a field with a key that freeKey returned for base.
func (f *form) createField(key, base string, field manifestdraft.Field) {
	field.Key = key
	if n := strings.TrimPrefix(key, base+"_"); n != key {
		field.Label += " " + n
	}
	field.Label = truncateText(singleLine(field.Label), 120)
	f.usedKeys[key] = true
	f.fields = append(f.fields, field)
}

// bindInput binds an input to a key of the bind setting, unless the input is
// already bound.
func (f *form) bindInput(key string, ref inputRef) {
	if !f.isBound(ref) {
		f.bind[key] = append(f.bind[key], ref.String())
		f.owner[ref] = key
	}
}

var notKey = regexp.MustCompile(`[^a-z0-9_]+`)

// keyFor returns the key of a field for the input called name.
func keyFor(name, fallback string) string {
	key := strings.Trim(notKey.ReplaceAllString(strings.ToLower(name), "_"), "_")
	if key == "" || key[0] < 'a' || key[0] > 'z' || key == nodegraph.KeySeed || key == nodegraph.KeyResults {
		key = fallback
	}
	return key[:min(len(key), 48)]
}

// leaveFixed records why an input is not a field.
func (f *form) leaveFixed(ref inputRef, why string) {
	if _, ok := f.fixed[ref]; !ok {
		f.fixed[ref] = why
	}
}

// isBound reports whether an input is bound to a field, the seed or the number
// of results.
func (f *form) isBound(ref inputRef) bool { return f.owner[ref] != "" }

// hasFieldType reports whether the form has a field of the given type.
func (f *form) hasFieldType(fieldType string) bool {
	return slices.ContainsFunc(f.fields, func(field manifestdraft.Field) bool { return field.Type == fieldType })
}

// fieldOf returns the key of the field that an input is bound to, or "" if it
// is bound to none.
func (f *form) fieldOf(ref inputRef) string {
	key, _, _ := strings.Cut(f.owner[ref], ".")
	return key
}

// keepFields removes all fields except the fields with the given keys, and
// sorts the kept fields in the order of the keys. The inputs of removed fields
// are recorded as fixed with the given reason; the seed and the number of
// results stay bound.
func (f *form) keepFields(keys []string, reason string) {
	for ref, key := range maps.Clone(f.owner) {
		field := f.fieldOf(ref)
		if field == nodegraph.KeySeed || field == nodegraph.KeyResults || slices.Contains(keys, field) {
			continue
		}
		delete(f.owner, ref)
		delete(f.bind, key)
		f.leaveFixed(ref, reason)
	}
	var fields []manifestdraft.Field
	for _, key := range keys {
		at := slices.IndexFunc(f.fields, func(field manifestdraft.Field) bool { return field.Key == key })
		if at >= 0 {
			field := f.fields[at]
			field.Advanced = false
			fields = append(fields, field)
		}
	}
	f.fields = fields
}
