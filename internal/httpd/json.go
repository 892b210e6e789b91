package httpd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"atelier/internal/fault"
)

// ReadJSON reads a body that is JSON, or a part of one. What bounds it is an
// http.MaxBytesReader.
func ReadJSON(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(r)
	if err != nil {
		if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, fault.New(fault.PayloadTooLarge, "The body is too large.").With("limit_bytes", large.Limit)
		}
		return nil, NotWhole(err)
	}
	return body, nil
}

// NotWhole is for bodies whose sender stopped, or took too long.
func NotWhole(err error) error {
	return fault.New(fault.Invalid, "The body did not arrive whole.").Because(err)
}

// WellFormed walks the whole body once, and refuses what parsers disagree about:
// a name twice, broken UTF-8, NUL characters, and more depth than is allowed.
func WellFormed(body []byte, depth int) error {
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
