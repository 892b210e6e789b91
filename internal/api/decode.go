package api

import (
	"errors"
	"mime"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"atelier/internal/fault"
	"atelier/internal/httpd"
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
	if err := json.Unmarshal(body, &v); err != nil {
		path, message := "body", "Has the wrong type."
		if s, ok := errors.AsType[*json.SemanticError](err); ok && s.JSONPointer != "" {
			path = dotted(s.JSONPointer)
		}
		return v, fault.New(fault.Invalid, "The body is not as it should be.").Field(path, message).Because(err)
	}
	return v, nil
}

// dotted writes a JSON pointer as a path: inputs.prompt, items.0.
func dotted(p jsontext.Pointer) string {
	var parts []string
	for t := range p.Tokens() {
		parts = append(parts, t)
	}
	return strings.Join(parts, ".")
}
