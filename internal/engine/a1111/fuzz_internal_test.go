package a1111

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzParseError proves that the words of an error response are one line of that
// response, without the traceback, and that a body that is no JSON says nothing.
func FuzzParseError(f *testing.F) {
	for _, body := range []string{`{"error": "OutOfMemoryError", "detail": "", "errors": "CUDA\nTraceback"}`, `{"detail": [{"msg": "no", "loc": ["a"]}]}`, `{"detail": "Not Found"}`, `<html>`, `null`, `{"errors": 5}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		kind, words := parseError(body)
		if !json.Valid(body) && kind+words != "" {
			t.Errorf("%q = %q, %q", body, kind, words)
		}
		if strings.Contains(words, "\n") || strings.HasPrefix(words, " ") {
			t.Errorf("%q = %q", body, words)
		}
	})
}
