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
	owner    map[inputRef]string // keys of bind by input
	keys     map[string]string   // field keys, by the input's name and value
	usedKeys map[string]bool
	fixed    map[inputRef]string // reasons why inputs are not fields
}

func newForm() *form {
	return &form{
		bind:     map[string][]string{},
		owner:    map[inputRef]string{},
		keys:     map[string]string{},
		usedKeys: map[string]bool{},
		fixed:    map[inputRef]string{},
	}
}

// addField binds inputs to a field, which create returns. Inputs with the same
// base and value get a common field, for example the steps of two samplers.
// Inputs with other values get fields of their own. An input that is already
// bound keeps its field.
func (f *form) addField(base string, value any, refs []inputRef, create func() manifestdraft.Field) {
	refs = slices.DeleteFunc(slices.Clone(refs), f.isBound)
	if len(refs) == 0 {
		return
	}
	same := fmt.Sprintf("%s %v", base, value)
	key, ok := f.keys[same]
	if !ok {
		key = f.freeKey(base)
		f.keys[same] = key
		f.createField(key, base, create())
	}
	for _, p := range refs {
		f.bindInput(key, p)
	}
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
func (f *form) bindInput(key string, p inputRef) {
	if !f.isBound(p) {
		f.bind[key] = append(f.bind[key], p.String())
		f.owner[p] = key
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
func (f *form) leaveFixed(p inputRef, why string) {
	if _, ok := f.fixed[p]; !ok {
		f.fixed[p] = why
	}
}

// isBound reports whether a field or the run determines an input.
func (f *form) isBound(ref inputRef) bool { return f.owner[ref] != "" }

// hasFieldOf reports whether the form has a field of a type.
func (f *form) hasFieldOf(fieldType string) bool {
	return slices.ContainsFunc(f.fields, func(field manifestdraft.Field) bool { return field.Type == fieldType })
}

// fieldOf returns the key of the field that an input is bound to, or "".
func (f *form) fieldOf(ref inputRef) string {
	key, _, _ := strings.Cut(f.owner[ref], ".")
	return key
}

// keepFields removes all fields but those with the given keys and changes to
// the order of the keys. The inputs of other fields become fixed for a reason,
// but the seed and the number of results stay bound.
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
