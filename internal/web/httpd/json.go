package httpd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"atelier/internal/base/fault"
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

// NotWhole is the fault for a body that could not be read to its end: its sender
// stopped or was too slow, or its chunks are malformed. An error that is such a
// fault already stays as it is.
func NotWhole(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	_, broken := errors.AsType[net.Error](err) // a deadline, or a connection that was reset
	if broken || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.New(fault.RequestTimeout, "The body did not arrive whole, or not fast enough. Send it again.").Because(err)
	}
	return fault.New(fault.Invalid, "The body can't be read.").Field("body", "Its chunks are malformed.").Because(err)
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
