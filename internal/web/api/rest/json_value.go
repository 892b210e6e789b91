package rest

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ReadValue reads a JSON value as a string, bool, nil, int64, float64, []any
// or map[string]any. It panics if the JSON is not well-formed.
func ReadValue(d *jsontext.Decoder) any {
	token, err := d.ReadToken()
	if err != nil {
		panic(err) // cannot happen, because the caller has checked the syntax
	}

	switch token.Kind() {
	case '{':
		object := map[string]any{}
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				panic(err)
			}
			key := name.String()
			object[key] = ReadValue(d)
		}
		_, _ = d.ReadToken()
		return object
	case '[':
		list := []any{}
		for d.PeekKind() != ']' {
			list = append(list, ReadValue(d))
		}
		_, _ = d.ReadToken()
		return list
	case '"':
		return token.String()
	case '0':
		return ParseNumber(token.String())
	case 't', 'f':
		return token.Bool()
	}
	return nil
}

// ParseNumber parses a JSON number: as int64 if it is written as an integer
// and fits, otherwise as float64. A number beyond the range of float64 becomes
// infinite, which no field accepts.
func ParseNumber(text string) any {
	if !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	}
	f, _ := strconv.ParseFloat(text, 64)
	return f
}
