package backend

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"atelier/internal/base/netguard"
	"atelier/internal/engine"
)

// maxRedirects is the maximum number of redirects that are followed when a
// file is fetched.
const maxRedirects = 3

// OpenFile opens a file that a response of the server refers to: by a data:
// URI, by an absolute or relative URL of the server, or by a public URL of
// another host. The caller closes the reader.
func (c *Client) OpenFile(ctx context.Context, ref string) (io.ReadCloser, error) {
	return c.openFile(ctx, ref, true)
}

// openFile opens a file. If own is false, no credentials are sent, not even to
// the server itself.
func (c *Client) openFile(ctx context.Context, ref string, own bool) (io.ReadCloser, error) {
	if strings.HasPrefix(ref, "data:") {
		r, err := DataReader(ref)
		return io.NopCloser(r), err
	}
	at, err := c.base.Parse(ref)
	if err != nil {
		return nil, errAddress
	}
	for range maxRedirects + 1 {
		own = own && isSameServer(at, c.base) // after a redirect to another host, no credentials are sent, even if that host redirects back
		res, err := c.fetchFile(ctx, at, own)
		if s, ok := errors.AsType[*redirectError](err); ok {
			if at, err = at.Parse(s.location); err != nil {
				return nil, errAddress
			}
			continue
		}
		switch {
		case own && err == nil:
			return res.Body, nil
		case err == nil:
			return remoteFile{ctx, res.Body}, nil
		case own:
			return nil, err
		}
		return nil, remoteFailure(ctx, err)
	}
	return nil, fmt.Errorf("%w: too many redirects", errBadResponse)
}

// remoteFile is the content of a file on a host other than the model server.
type remoteFile struct {
	ctx context.Context
	io.ReadCloser
}

func (s remoteFile) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = remoteFailure(s.ctx, err)
	}
	return n, err
}

// redirectError is the error for a redirect response. location is the new URL.
type redirectError struct{ location string }

func (*redirectError) Error() string { return "moved" }

func (c *Client) fetchFile(ctx context.Context, at *url.URL, own bool) (*http.Response, error) {
	if at.Scheme != "http" && at.Scheme != "https" || at.User != nil {
		return nil, fmt.Errorf("%w: the URL of a file must be http:// or https://", netguard.ErrBlocked)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, errAddress
	}
	to := c.remoteTransport
	if own {
		to = c.ownTransport
		req.Header = c.header.Clone()
		if req.Header == nil {
			req.Header = http.Header{}
		}
	}
	res, err := to.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if to := res.Header.Get("Location"); res.StatusCode/100 == 3 && to != "" {
		res.Body.Close()
		return nil, &redirectError{to}
	}
	return checkStatus(res)
}

// DataReader returns a reader of a data: URI's content (RFC 2397).
func DataReader(uri string) (io.Reader, error) {
	rest, ok := strings.CutPrefix(uri, "data:")
	head, body, comma := strings.Cut(rest, ",")
	if !ok || !comma {
		return nil, fmt.Errorf("%w: not a data: URI", errBadResponse)
	}
	if strings.HasSuffix(strings.ToLower(head), ";base64") {
		return Base64Reader(body), nil
	}
	text, err := url.PathUnescape(body)
	if err != nil {
		return nil, errAddress
	}
	return strings.NewReader(text), nil
}

// Base64Reader returns a reader that decodes base64, with or without padding.
// If the base64 is invalid, Read returns the error for an invalid response.
func Base64Reader(text string) io.Reader {
	return base64Reader{base64.NewDecoder(base64.RawStdEncoding, strings.NewReader(strings.TrimRight(text, "=\r\n ")))}
}

type base64Reader struct{ r io.Reader }

func (d base64Reader) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	if _, ok := errors.AsType[base64.CorruptInputError](err); ok || errors.Is(err, io.ErrUnexpectedEOF) {
		err = engine.Fail(engine.Invalid, messageBadResponse).WithCause(err)
	}
	return n, err
}

// DataURI returns a file of a job as a data: URI. It fails if the file is
// larger than maxBytes.
func DataURI(ctx context.Context, f engine.File, maxBytes int64) (string, error) {
	if f.Size > maxBytes {
		return "", engine.Fail(engine.Failed, "A file is too large for this tool.")
	}
	r, err := f.Open(ctx)
	if err != nil {
		return "", err
	}
	defer r.Close()
	var b strings.Builder
	b.Grow(int(f.Size)*4/3 + 64)
	b.WriteString("data:" + f.MimeType + ";base64,")
	w := base64.NewEncoder(base64.StdEncoding, &b)
	if n, err := io.Copy(w, io.LimitReader(r, maxBytes+1)); err != nil {
		return "", err
	} else if n > maxBytes {
		return "", engine.Fail(engine.Failed, "A file is too large for this tool.")
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return b.String(), nil
}

// FormPart is one part of a multipart form: either a value or a file.
type FormPart struct {
	Name     string
	Value    string
	File     *engine.File
	FileName string // file name sent with the file
}

// MultipartForm returns the body of a multipart form, which is written while
// it is read, and its media type. The caller reads the body to its end or
// closes it.
func MultipartForm(ctx context.Context, parts []FormPart) (io.ReadCloser, string) {
	r, w := io.Pipe()
	form := multipart.NewWriter(w)
	go func() {
		err := writeParts(ctx, form, parts)
		if err == nil {
			err = form.Close()
		}
		w.CloseWithError(err)
	}()
	return r, form.FormDataContentType()
}

func writeParts(ctx context.Context, form *multipart.Writer, parts []FormPart) error {
	for _, p := range parts {
		if p.File == nil {
			if err := form.WriteField(p.Name, p.Value); err != nil {
				return err
			}
			continue
		}
		h := textproto.MIMEHeader{}
		h.Set("Content-Disposition", fmt.Sprintf(`form-data; name=%q; filename=%q`, p.Name, p.FileName))
		h.Set("Content-Type", p.File.MimeType)
		to, err := form.CreatePart(h)
		if err != nil {
			return err
		}
		if err := copyFile(ctx, to, *p.File); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(ctx context.Context, to io.Writer, f engine.File) error {
	r, err := f.Open(ctx)
	if err != nil {
		return inputError{err}
	}
	defer r.Close()
	_, err = io.Copy(to, inputReader{r})
	return err
}

// inputError is an error reading a job's input file while it is sent to the
// server. It is not a failure of the server.
type inputError struct{ error }

func (u inputError) Unwrap() error { return u.error }

// inputReader reads a job's input file while it is sent, and wraps read errors
// in inputError.
type inputReader struct{ io.ReadCloser }

func (o inputReader) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = inputError{err}
	}
	return n, err
}
