package rest

import (
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// FuzzReadValue proves that values are read as encoding/json reads them, if it
// reads them at all, and that numbers stay as exact as they were written.
func FuzzReadValue(f *testing.F) {
	for _, text := range []string{`{}`, `[]`, `null`, `true`, `"a\u0000\ud83d\ude00"`, `0`, `-0`, `1e400`, `9223372036854775807`, `9223372036854775808`, `0.1`, `{"a":[1,{"b":null}],"":2}`, `[[[]]]`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !jsontext.Value(text).IsValid() {
			return
		}
		got := ReadValue(jsontext.NewDecoder(strings.NewReader(text)))
		var want any
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&want); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if want = convertNumbers(want); !reflect.DeepEqual(got, want) {
			t.Errorf("%q = %#v, want %#v", text, got, want)
		}
	})
}

// convertNumbers turns the numbers in a value into int64, if they are written as
// integers that fit, and otherwise into float64.
func convertNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		n, err := strconv.ParseFloat(v.String(), 64)
		if err != nil && !math.IsInf(n, 0) {
			panic(err)
		}
		return n
	case []any:
		for i := range v {
			v[i] = convertNumbers(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = convertNumbers(v[name])
		}
	}
	return v
}

// FuzzParams proves that query parameters are within their bounds or reported,
// and that times can be stored and are written and read without a change.
func FuzzParams(f *testing.F) {
	for _, query := range []string{"limit=5", "limit=05", "limit=101", "limit=-1", "limit=", "limit=5&limit=6", "at=2026-11-15T09:30:00Z", "at=2026-11-15t09:30:00.123456789%2b24:00", "at=0000-01-01T00:00:00Z", "at=9999-12-31T23:59:60Z", "ok=true", "ok=TRUE", "id=PagW53lsaa2KiGgg5wR4", "%zz", "a;b"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		p := ParamsOf(&http.Request{URL: &url.URL{RawQuery: query}})
		if n := p.ReadLimit(20, 100); n < 1 || n > 100 {
			t.Errorf("limit = %d", n)
		}
		at := p.ReadTime("at")
		if text := p.ReadText("at"); p.Err() == nil && (text == "") != at.IsZero() {
			t.Errorf("%q = %v", text, at)
		}
		if !at.IsZero() {
			if at.Before(earliest) || at.After(latest) {
				t.Errorf("%q = %v, which cannot be stored", query, at)
			}
			again, err := parseTime(at.Format(time.RFC3339Nano))
			if err != nil || !again.Equal(at) {
				t.Errorf("%v is read as %v, %v", at, again, err)
			}
			micros, err := ParseMicros(Micros(at))
			if err != nil || !micros.Equal(at.Truncate(time.Microsecond)) {
				t.Errorf("%v in microseconds = %v, %v", at, micros, err)
			}
		}
		if ok := p.ReadBool("ok"); ok != nil && p.Err() == nil && strconv.FormatBool(*ok) != p.Values.Get("ok") {
			t.Errorf("%q = %v", query, *ok)
		}
	})
}
