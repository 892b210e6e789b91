package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"atelier/internal/fault"
)

// decode reads a request's JSON body. It is strict where parsers disagree:
// a name twice, a name in another case, broken UTF-8, NUL characters, depth
// and size all have one reading here. Unknown names are ignored.
func decode[T any](w http.ResponseWriter, r *http.Request, l Limits) (v T, err error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return v, fault.New(fault.UnsupportedMediaType, "Send the body as application/json.")
	}
	body, err := readJSON(http.MaxBytesReader(w, r.Body, l.JSONBytes), l)
	if err != nil {
		return v, err
	}
	if err := wellFormed(body, l.JSONDepth); err != nil {
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

// readJSON reads a body that is JSON, or a part of one.
func readJSON(r io.Reader, l Limits) ([]byte, error) {
	body, err := io.ReadAll(r)
	if err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return nil, fault.New(fault.PayloadTooLarge, "The body is too large.").With("limit_bytes", l.JSONBytes)
		}
		return nil, notWhole(err)
	}
	return body, nil
}

// notWhole is for bodies whose sender stopped, or took too long.
func notWhole(err error) error {
	return fault.New(fault.Invalid, "The body did not arrive whole.").Because(err)
}

// wellFormed walks the whole body once.
func wellFormed(body []byte, depth int) error {
	refuse := func(message string, cause error) error {
		return fault.New(fault.Invalid, "The body is not JSON that can be read.").Field("body", message).Because(cause)
	}
	d := jsontext.NewDecoder(bytes.NewReader(body))
	for {
		token, err := d.ReadToken()
		if errors.Is(err, io.EOF) {
			if d.InputOffset() == 0 {
				return refuse("The body is empty.", nil)
			}
			return nil
		}
		if err != nil {
			message := "Not valid JSON."
			if errors.Is(err, jsontext.ErrDuplicateName) {
				message = "A name stands twice in one object."
			}
			return refuse(message, err)
		}
		if d.StackDepth() > depth {
			return refuse(fmt.Sprintf("Nested more than %d deep.", depth), nil)
		}
		if token.Kind() == '"' && strings.ContainsRune(token.String(), 0) {
			return refuse("Text must not hold a NUL character.", nil)
		}
		if d.StackDepth() == 0 {
			if rest := bytes.TrimSpace(body[d.InputOffset():]); len(rest) > 0 {
				return refuse("There is more after the end.", nil)
			}
		}
	}
}

// dotted writes a JSON pointer as a path: inputs.prompt, items.0.
func dotted(p jsontext.Pointer) string {
	var parts []string
	for t := range p.Tokens() {
		parts = append(parts, t)
	}
	return strings.Join(parts, ".")
}
