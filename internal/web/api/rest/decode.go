package api

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"atelier/internal/base/fault"
	"atelier/internal/web/httpd"
)

// decode reads a request's JSON body. It is strict where parsers disagree:
// a name twice, a name in another case, broken UTF-8, NUL characters, depth
// and size all have one reading here. Unknown names are ignored.
func decode[T any](w http.ResponseWriter, r *http.Request, l Limits) (v T, err error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return v, fault.New(fault.UnsupportedMediaType, "Send the body as application/json.")
	}
	body, err := httpd.ReadJSON(http.MaxBytesReader(w, r.Body, l.JSONBytes))
	if err != nil {
		return v, err
	}
	if err := httpd.WellFormed(body, l.JSONDepth); err != nil {
		return v, err
	}
	if err := checkShape(body, reflect.TypeFor[T]()); err != nil {
		return v, err
	}
	if err := json.Unmarshal(body, &v, wholeNumbers); err != nil {
		path := "body"
		message := "Has the wrong type."
		if s, ok := errors.AsType[*json.SemanticError](err); ok && s.JSONPointer != "" {
			path = dotted(s.JSONPointer)
		}
		return v, fault.New(fault.Invalid, "The body is not as it should be.").Field(path, message).Because(err)
	}
	return v, nil
}

// wholeNumbers reads integers in every form that JSON Schema takes for one: 2,
// 2.0 and 2e0 are the same number.
var wholeNumbers = json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, to *int64) error {
	if d.PeekKind() != '0' {
		return json.SkipFunc
	}
	value, err := d.ReadValue()
	if err != nil {
		return err
	}

	switch n := number(string(value)).(type) {
	case int64:
		*to = n
		return nil
	case float64:
		if n == math.Trunc(n) && math.Abs(n) <= maxExact {
			*to = int64(n)
			return nil
		}
	}
	return fmt.Errorf("%s is not a whole number", value)
}))

// maxExact is up to where a float64 holds every whole number.
const maxExact = 1 << 53

// checkShape refuses a body that is not an object, and reports every required
// field that is missing or null, at any depth: unmarshalling would read these as
// zero. A field is required where its wire type is not left out when empty.
func checkShape(body []byte, t reflect.Type) error {
	if t == reflect.TypeFor[jsontext.Value]() {
		return nil // read by hand
	}
	if jsontext.Value(body).Kind() != '{' {
		return fault.New(fault.Invalid, "The body is not as it should be.").Field("body", "Must be an object.")
	}

	missing := missingFields(plainValue(jsontext.NewDecoder(bytes.NewReader(body))), t, "")
	if len(missing) == 0 {
		return nil
	}

	e := fault.New(fault.Invalid, "Some fields are not valid.")
	for _, path := range missing[:min(len(missing), maxProblems)] {
		e = e.Field(path, "This field is required.")
	}
	return e
}

// maxProblems is how many fields that are missing, or have nearly a known name,
// are named at once: a body of a megabyte can lack a quarter of a million.
const maxProblems = 100

// missingFields finds each place in value where t needs something and nothing,
// or null, stands. Values of another type are left to unmarshalling.
func missingFields(value any, t reflect.Type, path string) []string {
	if value == nil {
		if t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer {
			return nil
		}
		return []string{path}
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}

	var all []string
	look := func(name string, item any, of reflect.Type) {
		all = append(all, missingFields(item, of, strings.TrimPrefix(path+"."+name, "."))...)
	}
	list, _ := value.([]any)
	object, isObject := value.(map[string]any)
	switch {
	case t.Kind() == reflect.Slice:
		for i, item := range list {
			look(strconv.Itoa(i), item, t.Elem())
		}
	case t.Kind() == reflect.Map:
		for _, name := range slices.Sorted(maps.Keys(object)) {
			look(name, object[name], t.Elem())
		}
	case t.Kind() == reflect.Struct && isObject:
		for i := range t.NumField() {
			name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if item := object[name]; item != nil || options != "omitempty" {
				look(name, item, t.Field(i).Type)
			}
		}
	}
	return all
}

// dotted writes a JSON pointer as a path: inputs.prompt, items.0.
func dotted(p jsontext.Pointer) string {
	var parts []string
	for t := range p.Tokens() {
		parts = append(parts, t)
	}
	return strings.Join(parts, ".")
}
