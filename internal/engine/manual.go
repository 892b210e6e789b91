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

// Manual says what an engine takes as its part of a manifest, so that one that
// cannot run is found before anybody runs it.
type Manual struct {
	// Setting makes what Run decodes that part into with the function Setting: a
	// pointer to a struct. nil means that the engine takes anything, as one does
	// that hands it on.
	Setting func() any
	// Choices are the values that keys must have one of.
	Choices map[string][]string
	// Check finds what else the engine would refuse, nil for nothing.
	Check func(with string) error
}

// Misuse is something in a manifest that an engine does not take.
type Misuse struct {
	Key     string // of the engine's part, "" for the whole
	Message string
}

// Inspect gives everything in an engine's part of a manifest that the engine does
// not take.
func (m Manual) Inspect(with string) (all []Misuse) {
	if m.Setting == nil {
		return nil
	}
	var given map[string]any
	if err := json.Unmarshal([]byte(with), &given); err != nil {
		return []Misuse{{"", "is not a mapping"}}
	}
	keys := Keys(m.Setting())
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if !slices.ContainsFunc(keys, func(known string) bool { return strings.EqualFold(known, key) }) {
			all = append(all, Misuse{key, unknown("setting", key, keys)})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.Choices)) {
		choices := m.Choices[key]
		switch value, there := given[key].(string); {
		case !there && given[key] == nil:
			all = append(all, Misuse{"", key + " is required: one of " + strings.Join(choices, ", ")})
		case !slices.Contains(choices, value):
			all = append(all, Misuse{key, unknown(key, fmt.Sprint(given[key]), choices)})
		}
	}
	if len(all) > 0 {
		return all
	}
	err := Setting(with, m.Setting())
	if err == nil && m.Check != nil {
		err = m.Check(with)
	}
	if err != nil {
		all = append(all, misuseOf(err, keys))
	}
	return all
}

// misuseOf says what an engine's refusal of a manifest is about.
func misuseOf(err error, keys []string) Misuse {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		key := ""
		for part := range strings.SplitSeq(wrong.Field, ".") { // embedded structs come first
			if key == "" && slices.Contains(keys, part) {
				key = part
			}
		}
		return Misuse{key, "must not be a " + wrong.Value}
	}
	if cause := errors.Unwrap(err); cause != nil {
		return Misuse{"", cause.Error()}
	}
	return Misuse{"", err.Error()}
}

// unknown says that there is no such word, and which there are.
func unknown(what, word string, known []string) string {
	text := fmt.Sprintf("there is no %s %s", what, word)
	if near := sanitize.Nearest(word, known); near != "" {
		text += " (did you mean " + near + "?)"
	}
	if len(known) == 0 {
		return text + "; there are none"
	}
	return text + "; there are " + strings.Join(known, ", ")
}

// Keys gives the names that a struct has in JSON, in order.
func Keys(setting any) []string {
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
			all = append(all, Keys(reflect.Zero(f.Type).Interface())...)
		case f.IsExported() && name != "-" && name != "":
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}
