package fal

import (
	"encoding/json"
	"strings"
	"testing"

	"atelier/internal/engine/backend"
)

// FuzzReadStatus proves that the reason of a failure is in the words of the
// response, and that a body that is no JSON object gives none.
func FuzzReadStatus(f *testing.F) {
	for _, body := range []string{`{"detail": "no"}`, `{"detail": [{"msg": "no", "type": "content_policy_violation"}, {"msg": "why", "type": "x"}]}`, `{"detail": 7, "error_type": "internal_error"}`, `{"detail": [null]}`, `<html>`, `null`, `[]`, `{"detail": []}`} {
		f.Add([]byte(body), 422)
	}
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		var why failureReason
		why.readStatus(&backend.Status{Code: status, Body: body})
		if !json.Valid(body) && why != (failureReason{}) {
			t.Errorf("%q = %+v", body, why)
		}
		if len(why.Words)+len(why.Type) > 4*len(body) { // a broken character becomes one of three bytes, and "; " stands between messages
			t.Errorf("%d bytes = %+v", len(body), why)
		}
		if strings.Contains(string(body), policyViolation) && json.Valid(body) && why.Type == policyViolation && !why.isRequestEnd(status) {
			t.Errorf("%q with status %d does not end the request", body, status)
		}
	})
}

// FuzzSchemaNames proves that the schemas of an endpoint are named in its
// document.
func FuzzSchemaNames(f *testing.F) {
	for _, doc := range []string{
		`{"paths": {"/a/b": {"post": {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/In"}}}}}}}}`,
		`{"components": {"schemas": {"BInput": {}, "AInput": 7, "Output": null}}}`, `{}`, `null`, `[`, `{"paths": []}`,
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		in, out := schemaNames(doc, "a/b")
		var decoded any
		if json.Unmarshal(doc, &decoded) != nil && in+out != "" {
			t.Errorf("%q has %q and %q", doc, in, out)
		}
		if len(in)+len(out) > 6*len(doc) {
			t.Errorf("%q has %q and %q", doc, in, out)
		}
	})
}
