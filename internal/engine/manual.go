package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"atelier/internal/base/sanitize"
)

// ManifestSpec describes which engine.with sections an engine accepts, so that
// an invalid manifest is refused when it is loaded.
type ManifestSpec struct {
	// Setting returns a pointer to the struct into which Run decodes
	// engine.with by DecodeSetting. If Setting is nil, the engine accepts
	// anything, because it passes the settings on.
	Setting func() any
	// Choices are the allowed values of the keys of engine.with that have a
	// fixed list of values.
	Choices map[string][]string
	// Check returns an error for other problems in engine.with. It may be nil.
	Check func(with string) error
}

// ManifestProblem is a value in engine.with that an engine does not accept.
type ManifestProblem struct {
	Key     string // key in engine.with; empty if the problem concerns the whole section
	Message string
}

// FindProblems returns all problems in the engine.with section of a manifest.
func (m ManifestSpec) FindProblems(with string) (all []ManifestProblem) {
	if m.Setting == nil {
		return nil
	}
	var given map[string]any
	if err := json.Unmarshal([]byte(with), &given); err != nil {
		return []ManifestProblem{{"", "is not a mapping"}}
	}
	keys := JSONKeys(m.Setting())
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if !slices.ContainsFunc(keys, func(known string) bool { return strings.EqualFold(known, key) }) {
			all = append(all, ManifestProblem{key, unknownWord("setting", key, keys)})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.Choices)) {
		choices := m.Choices[key]
		switch value, there := given[key].(string); {
		case !there && given[key] == nil:
			all = append(all, ManifestProblem{"", key + " is required: one of " + strings.Join(choices, ", ")})
		case !slices.Contains(choices, value):
			all = append(all, ManifestProblem{key, unknownWord(key, fmt.Sprint(given[key]), choices)})
		}
	}
	if len(all) > 0 {
		return all
	}
	err := DecodeSetting(with, m.Setting())
	if err == nil && m.Check != nil {
		err = m.Check(with)
	}
	if err != nil {
		all = append(all, problemOf(err, keys))
	}
	return all
}

// problemOf converts an engine's error about engine.with to a ManifestProblem.
func problemOf(err error, keys []string) ManifestProblem {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		key := ""
		for part := range strings.SplitSeq(wrong.Field, ".") { // the path may begin with names of embedded structs
			if key == "" && slices.Contains(keys, part) {
				key = part
			}
		}
		return ManifestProblem{key, "must not be a " + wrong.Value}
	}
	if cause := errors.Unwrap(err); cause != nil {
		return ManifestProblem{"", cause.Error()}
	}
	return ManifestProblem{"", err.Error()}
}

// unknownWord returns a message that word is unknown, followed by the known
// words. The parameter what names the kind of word.
func unknownWord(what, word string, known []string) string {
	text := fmt.Sprintf("there is no %s %s", what, word)
	if near := sanitize.Nearest(word, known); near != "" {
		text += " (did you mean " + near + "?)"
	}
	if len(known) == 0 {
		return text + "; none are supported"
	}
	return text + "; supported: " + strings.Join(known, ", ")
}

// JSONKeys returns the JSON keys of a struct's fields, in order.
func JSONKeys(setting any) []string {
	t := reflect.TypeOf(setting)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var all []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			all = append(all, JSONKeys(reflect.Zero(f.Type).Interface())...)
		case f.IsExported() && name != "-" && name != "":
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}
