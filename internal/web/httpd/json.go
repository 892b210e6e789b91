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

// ReadBody reads a request body, or a part of a multipart body. r must limit the
// size, as http.MaxBytesReader does.
func ReadBody(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(r)
	if err != nil {
		if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, fault.New(fault.PayloadTooLarge, "The request body is too large.").With("limit_bytes", large.Limit)
		}
		return nil, IncompleteBody(err)
	}
	return body, nil
}

// IncompleteBody returns the error for a request body that could not be read
// to its end: the client disconnected or was too slow, or the chunked encoding
// is malformed. An err that already is a *fault.Error is returned unchanged.
func IncompleteBody(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	_, broken := errors.AsType[net.Error](err) // a deadline, or a connection reset
	if broken || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.New(fault.RequestTimeout, "The request body was incomplete or arrived too slowly. Send the request again.").Because(err)
	}
	return fault.New(fault.Invalid, "The request body cannot be read.").Field("body", "The chunked encoding is malformed.").Because(err)
}

// CheckJSON returns an error unless body is one JSON value that all parsers
// interpret in the same way: no duplicate names in an object, valid UTF-8, no
// NUL characters, and at most depth levels of nesting.
func CheckJSON(body []byte, depth int) error {
	refuse := func(message string, cause error) error {
		return fault.New(fault.Invalid, "The request body is not valid JSON.").Field("body", message).Because(cause)
	}
	d := jsontext.NewDecoder(bytes.NewReader(body))
	for {
		token, err := d.ReadToken()
		if errors.Is(err, io.EOF) {
			if d.InputOffset() == 0 {
				return refuse("The request body is empty.", nil)
			}
			return nil
		}
		if err != nil {
			message := "Not valid JSON."
			if errors.Is(err, jsontext.ErrDuplicateName) {
				message = "An object has the same name twice."
			}
			return refuse(message, err)
		}
		if d.StackDepth() > depth {
			return refuse(fmt.Sprintf("Nested more than %d deep.", depth), nil)
		}
		if token.Kind() == '"' && strings.ContainsRune(token.String(), 0) {
			return refuse("A string contains a NUL character.", nil)
		}
		if d.StackDepth() == 0 {
			if rest := bytes.TrimSpace(body[d.InputOffset():]); len(rest) > 0 {
				return refuse("There is unexpected data after the JSON value.", nil)
			}
		}
	}
}
