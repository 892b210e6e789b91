package rest

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

// JSONLimits limits the size and nesting depth of a JSON request body.
type JSONLimits struct {
	Bytes int64
	Depth int
}

// Decode reads a JSON request body. It refuses duplicate names, invalid UTF-8
// and NUL characters, which parsers treat differently, and bodies that are too
// large or nested too deeply. Names are case-sensitive; unknown names are
// ignored.
func Decode[T any](w http.ResponseWriter, r *http.Request, limits JSONLimits) (T, error) {
	var value T
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return value, fault.New(fault.UnsupportedMediaType, "Send the body as application/json.")
	}
	body, err := httpd.ReadBody(http.MaxBytesReader(w, r.Body, limits.Bytes))
	if err != nil {
		return value, err
	}

	if err := httpd.CheckJSON(body, limits.Depth); err != nil {
		return value, err
	}
	if err := checkShape(body, reflect.TypeFor[T]()); err != nil {
		return value, err
	}

	if err := json.Unmarshal(body, &value, wholeNumbers); err != nil {
		path := "body"
		if s, ok := errors.AsType[*json.SemanticError](err); ok && s.JSONPointer != "" {
			path = dottedPath(s.JSONPointer)
		}
		return value, InvalidBody().Field(path, "Has the wrong type.").Because(err)
	}
	return value, nil
}

// InvalidBody returns the error for an invalid request body. The caller adds
// the invalid fields.
func InvalidBody() *fault.Error { return fault.New(fault.Invalid, "The request body is invalid.") }

// InvalidFields returns the error for a request with invalid fields, which the
// caller adds.
func InvalidFields() *fault.Error { return fault.New(fault.Invalid, "Some fields are not valid.") }

// RequiredField returns the error for a request body that lacks a required
// field.
func RequiredField(path string) error { return InvalidFields().Field(path, "This field is required.") }

// wholeNumbers decodes integers in every notation that JSON Schema accepts: 2,
// 2.0 and 2e0 are the same number.
var wholeNumbers = json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, to *int64) error {
	if d.PeekKind() != '0' {
		return json.SkipFunc
	}
	value, err := d.ReadValue()
	if err != nil {
		return err
	}

	switch n := ParseNumber(string(value)).(type) {
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

// maxExact is 2^53. A float64 represents all integers up to this number
// exactly.
const maxExact = 1 << 53

// checkShape returns an error if the body is not an object, or lacks required
// fields at any depth. Without this check, unmarshalling would set a missing
// or null field to zero. A field is required unless its JSON tag has
// omitempty.
func checkShape(body []byte, t reflect.Type) error {
	if t == reflect.TypeFor[jsontext.Value]() {
		return nil // checked by the handler
	}
	if jsontext.Value(body).Kind() != '{' {
		return InvalidBody().Field("body", "Must be an object.")
	}

	missing := missingFields(ReadValue(jsontext.NewDecoder(bytes.NewReader(body))), t, "")
	if len(missing) == 0 {
		return nil
	}

	e := InvalidFields()
	for _, path := range missing[:min(len(missing), MaxProblems)] {
		e = e.Field(path, "This field is required.")
	}
	return e
}

// MaxProblems is the maximum number of fields that one error names. It is
// limited because a body of one megabyte can lack a quarter of a million
// fields.
const MaxProblems = 100

// missingFields returns the paths of the required fields of t that value lacks
// or sets to null. It ignores values of a wrong type, which unmarshalling
// reports.
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
	visit := func(name string, item any, of reflect.Type) {
		all = append(all, missingFields(item, of, strings.TrimPrefix(path+"."+name, "."))...)
	}
	list, _ := value.([]any)
	object, isObject := value.(map[string]any)
	switch {
	case t.Kind() == reflect.Slice:
		for i, item := range list {
			visit(strconv.Itoa(i), item, t.Elem())
		}
	case t.Kind() == reflect.Map:
		for _, name := range slices.Sorted(maps.Keys(object)) {
			visit(name, object[name], t.Elem())
		}
	case t.Kind() == reflect.Struct && isObject:
		for i := range t.NumField() {
			name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if item := object[name]; item != nil || options != "omitempty" {
				visit(name, item, t.Field(i).Type)
			}
		}
	}
	return all
}

// dottedPath formats a JSON pointer as a path such as inputs.prompt or items.0.
func dottedPath(p jsontext.Pointer) string {
	var parts []string
	for t := range p.Tokens() {
		parts = append(parts, t)
	}
	return strings.Join(parts, ".")
}
