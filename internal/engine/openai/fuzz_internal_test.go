package openai

import (
	"encoding/json"
	"testing"
)

// FuzzParseError proves that the words of an error response are words of that
// response, and that a body that is no JSON says nothing.
func FuzzParseError(f *testing.F) {
	for _, body := range []string{`{"error": {"message": "no", "type": "t", "code": "c"}}`, `{"error": "no"}`, `{"detail": [{"msg": "no"}]}`, `{"message": "no", "error": {"code": 5}}`, `<html>`, `null`, `{"error": null, "detail": {"message": "x"}}`, `[]`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got := parseError(body)
		if !json.Valid(body) && got != (serverError{}) {
			t.Errorf("%q = %+v", body, got)
		}
		if len(got.Message)+len(got.Code) > 3*len(body) { // a broken character becomes one of three bytes
			t.Errorf("%d bytes = %+v", len(body), got)
		}
	})
}
