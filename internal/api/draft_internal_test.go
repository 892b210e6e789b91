package api

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"atelier/internal/httpd"
)

// FuzzDraft reads whatever is well-formed. What was read says the same when it
// is written down and read again, and equal requests have one fingerprint.
func FuzzDraft(f *testing.F) {
	for _, text := range []string{
		`{}`, `[]`, `{"tool_id":"a","tool_fields_hash":"b"}`, `{"tool_id":"a","tool_fields_hash":"b","inputs":{"x":[1,2.5,"\ud83c\udfa8",{"y":null}]}}`,
		`{"metadata":{"n":12345678901234567890.10},"num_results":1e400}`, `{"num_results":-0.0,"plugin":"\u0041"}`, `{"tool_id":1,"metadata":[]}`,
		"{\"tool_id\":\"a\",\"tool_fields_hash\":\"b\",\"metadata\":{\"\u2028<&>\":\"\\/\"}}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if httpd.WellFormed(body, 64) != nil {
			return
		}
		d, err := draftOf(body)
		if err != nil {
			return
		}
		if d.Metadata != "" && (jsontext.Value(d.Metadata).Kind() != '{' || !json.Valid([]byte(d.Metadata))) {
			t.Fatalf("metadata is %q", d.Metadata)
		}
		for _, opts := range [][]jsontext.Options{
			{jsontext.WithIndent("  ")}, {jsontext.EscapeForHTML(true), jsontext.EscapeForJS(true)}, {jsontext.ReorderRawObjects(true)}, {jsontext.SpaceAfterComma(true)},
		} {
			again, err := jsontext.AppendFormat(nil, body, opts...)
			if err != nil {
				t.Fatalf("%q is well-formed and not: %v", body, err)
			}
			e, err := draftOf(again)
			if err != nil {
				t.Fatalf("%q is good and %q is not: %v", body, again, err)
			}
			one, _ := (&form{payload: body}).fingerprint("x")
			two, _ := (&form{payload: again}).fingerprint("x")
			if one != two || one == "" {
				t.Fatalf("%q and %q have two fingerprints", body, again)
			}
			if e.Metadata != "" { // the order of names is kept, and differs here
				if !bytes.Equal(canonical(t, e.Metadata), canonical(t, d.Metadata)) {
					t.Fatalf("metadata is %q, then %q", d.Metadata, e.Metadata)
				}
				e.Metadata = d.Metadata
			}
			if !reflect.DeepEqual(d, e) {
				t.Fatalf("%q is read as %+v, then as %+v", body, d, e)
			}
		}
	})
}

func canonical(t *testing.T, text string) []byte {
	t.Helper()
	b, err := jsontext.AppendFormat(nil, []byte(text), jsontext.ReorderRawObjects(true))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
