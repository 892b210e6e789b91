package generations

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"atelier/internal/base/fault"
	"atelier/internal/web/httpd"
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
		if httpd.CheckJSON(body, 64) != nil {
			return
		}
		d, err := parseDraft(body)
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
			e, err := parseDraft(again)
			if err != nil {
				t.Fatalf("%q is good and %q is not: %v", body, again, err)
			}
			one, _ := computeFingerprint("x", body, nil)
			two, _ := computeFingerprint("x", again, nil)
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

// TestNearMisses refuses names that were most likely meant to be known ones, and
// ignores other unknown names.
func TestNearMisses(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]string{
		"numResults": "num_results", "numresults": "num_results", "NUM-RESULTS": "num_results", "num_result": "num_results", "input": "inputs", "Inputs": "inputs",
		"toolId": "tool_id", "webhookUrl": "webhook_url", "meta_data": "metadata", "tool_field_hash": "tool_fields_hash", "team_id": "query", "teamId": "query", "TEAM-ID": "query",
		"client": "", "seed": "", "user": "", "": "", "x": "", "num": "", "webhook": "",
	} {
		body, err := json.Marshal(map[string]any{"tool_id": "a", "tool_fields_hash": "b", name: 1})
		if err != nil {
			t.Fatal(err)
		}
		_, err = parseDraft(body)
		if known == "" {
			if err != nil {
				t.Errorf("%q is refused: %v", name, err)
			}
			continue
		}
		refused, _ := errors.AsType[*fault.Error](err)
		if refused == nil || len(refused.Fields) != 1 || refused.Fields[0].Path != name || !strings.Contains(refused.Fields[0].Message, known) {
			t.Errorf("%q gives %+v, want an error that names %s", name, refused, known)
		}
	}
}
