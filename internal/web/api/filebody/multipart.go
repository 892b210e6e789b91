package filebody

import (
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"

	"atelier/internal/base/fault"
)

// maxParts is the maximum number of parts of a multipart request, including
// unknown parts.
const maxParts = 64

// maxPartHeader is the maximum number of bytes before the content of a part:
// its headers, and the bytes between the parts.
const maxPartHeader = 64 << 10

// multipartBody reads a multipart body. It limits the bytes between the
// contents of parts, because multipart.Reader buffers them.
type multipartBody struct {
	io.ReadCloser
	left int64 // bytes that may still be read; negative means no limit
	err  error // error reading the body itself, which multipart.Reader may replace with another
}

func (b *multipartBody) Read(p []byte) (n int, err error) {
	switch {
	case b.left < 0:
		n, err = b.ReadCloser.Read(p)
	case b.left == 0:
		err = fault.New(fault.Invalid, "The headers of a part are too long.").Field("body", "A part has headers that are too long.")
	default:
		n, err = b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
		b.left -= int64(n)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

// nextPart returns the next part. The previous part must have been read
// completely.
func (b *multipartBody) nextPart(parts *multipart.Reader) (*multipart.Part, error) {
	b.left = maxPartHeader
	part, err := parts.NextRawPart()
	b.left = -1
	return part, err
}

// EachPart calls read with each part of a multipart request, and then reads
// the rest of the body. read must read its part completely.
func EachPart(r *http.Request, read func(*multipart.Part) error) error {
	body := &multipartBody{ReadCloser: r.Body}
	r.Body = body
	err := body.readParts(r, read)
	if body.err != nil {
		return body.err
	}
	return err
}

func (b *multipartBody) readParts(r *http.Request, read func(*multipart.Part) error) error {
	parts, err := r.MultipartReader()
	if err != nil {
		return invalidMultipart("The boundary is missing.", err)
	}

	for range maxParts {
		part, err := b.nextPart(parts)
		if errors.Is(err, io.EOF) {
			return Discard(b)
		}
		if err != nil {
			return partError(err)
		}
		if err := read(part); err != nil {
			return err
		}
	}

	switch _, err := b.nextPart(parts); {
	case errors.Is(err, io.EOF):
		return Discard(b)
	case err != nil:
		return partError(err)
	}
	return fault.New(fault.Invalid, "The request has too many parts.").Field("body", "There are too many parts.")
}

// Discard reads and ignores a part whose content is not used.
func Discard(r io.Reader) error {
	if _, err := io.Copy(io.Discard, r); err != nil {
		return partError(err)
	}
	return nil
}

// partError converts an error that occurred reading a multipart body to a
// *fault.Error. Errors of the body itself already have that type; all others
// mean that the parts are malformed.
func partError(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	problem := "The body ends before the last boundary."
	if _, malformed := errors.AsType[textproto.ProtocolError](err); malformed {
		problem = "The headers of a part are malformed."
	}
	return invalidMultipart(problem, err)
}

func invalidMultipart(problem string, cause error) error {
	return fault.New(fault.Invalid, "The request is not a valid multipart request.").Field("body", problem).Because(cause)
}

// errorReader records the error that occurred reading the request, so that an
// interrupted upload is not reported as an error of the file store.
type errorReader struct {
	io.Reader
	err error
}

func (e *errorReader) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		e.err = err
	}
	return n, err
}
