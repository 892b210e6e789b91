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

// maxHops is how often a file's address may lead to another.
const maxHops = 3

// Open reads a file that the server named: a data: URI, an address of the
// server, absolute or not, or a public one. The reader has to be closed.
func (c *Client) Open(ctx context.Context, ref string) (io.ReadCloser, error) {
	if strings.HasPrefix(ref, "data:") {
		r, err := DataReader(ref)
		return io.NopCloser(r), err
	}
	at, err := c.base.Parse(ref)
	if err != nil {
		return nil, errAddress
	}
	own := true
	for range maxHops + 1 {
		own = own && same(at, c.base) // nobody else sends us back with credentials
		res, err := c.get(ctx, at, own)
		if s, ok := errors.AsType[*moved](err); ok {
			if at, err = at.Parse(s.to); err != nil {
				return nil, errAddress
			}
			continue
		}
		switch {
		case own && err == nil:
			return res.Body, nil
		case err == nil:
			return strange{ctx, res.Body}, nil
		case own:
			return nil, err
		}
		return nil, stranger(ctx, err)
	}
	return nil, fmt.Errorf("%w: too many redirects", errGarbage)
}

// strange is a file of another host than the server.
type strange struct {
	ctx context.Context
	io.ReadCloser
}

func (s strange) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = stranger(s.ctx, err)
	}
	return n, err
}

// moved is an answer that leads elsewhere.
type moved struct{ to string }

func (*moved) Error() string { return "moved" }

func (c *Client) get(ctx context.Context, at *url.URL, own bool) (*http.Response, error) {
	if at.Scheme != "http" && at.Scheme != "https" || at.User != nil {
		return nil, fmt.Errorf("%w: a file's address that is no web address", netguard.ErrBlocked)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, errAddress
	}
	to := c.elsewhere
	if own {
		to = c.own
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
		return nil, &moved{to}
	}
	return good(res)
}

// DataReader reads what a data: URI holds (RFC 2397).
func DataReader(uri string) (io.Reader, error) {
	rest, ok := strings.CutPrefix(uri, "data:")
	head, body, comma := strings.Cut(rest, ",")
	if !ok || !comma {
		return nil, fmt.Errorf("%w: no data: URI", errGarbage)
	}
	if strings.HasSuffix(strings.ToLower(head), ";base64") {
		return Base64(body), nil
	}
	text, err := url.PathUnescape(body)
	if err != nil {
		return nil, errAddress
	}
	return strings.NewReader(text), nil
}

// Base64 reads what base64 text holds, with padding or without. What is no
// base64 fails when it is read, as the server's mistake.
func Base64(text string) io.Reader {
	return decoder{base64.NewDecoder(base64.RawStdEncoding, strings.NewReader(strings.TrimRight(text, "=\r\n ")))}
}

type decoder struct{ r io.Reader }

func (d decoder) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	if _, ok := errors.AsType[base64.CorruptInputError](err); ok || errors.Is(err, io.ErrUnexpectedEOF) {
		err = engine.Fail(engine.Invalid, garbled).Because(err)
	}
	return n, err
}

// DataURI gives a media input as a data: URI. most bounds the file.
func DataURI(ctx context.Context, f engine.File, most int64) (string, error) {
	if f.Size > most {
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
	if n, err := io.Copy(w, io.LimitReader(r, most+1)); err != nil {
		return "", err
	} else if n > most {
		return "", engine.Fail(engine.Failed, "A file is too large for this tool.")
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return b.String(), nil
}

// Part is a piece of a multipart form: a value, or a file under a name.
type Part struct {
	Name  string
	Value string
	File  *engine.File
	As    string // the file's name
}

// Form gives a multipart body that flows while it is sent, and its type. It has
// to be read to its end or closed.
func Form(ctx context.Context, parts []Part) (io.ReadCloser, string) {
	r, w := io.Pipe()
	form := multipart.NewWriter(w)
	go func() {
		err := write(ctx, form, parts)
		if err == nil {
			err = form.Close()
		}
		w.CloseWithError(err)
	}()
	return r, form.FormDataContentType()
}

func write(ctx context.Context, form *multipart.Writer, parts []Part) error {
	for _, p := range parts {
		if p.File == nil {
			if err := form.WriteField(p.Name, p.Value); err != nil {
				return err
			}
			continue
		}
		h := textproto.MIMEHeader{}
		h.Set("Content-Disposition", fmt.Sprintf(`form-data; name=%q; filename=%q`, p.Name, p.As))
		h.Set("Content-Type", p.File.MimeType)
		to, err := form.CreatePart(h)
		if err != nil {
			return err
		}
		if err := send(ctx, to, *p.File); err != nil {
			return err
		}
	}
	return nil
}

func send(ctx context.Context, to io.Writer, f engine.File) error {
	r, err := f.Open(ctx)
	if err != nil {
		return unread{err}
	}
	defer r.Close()
	_, err = io.Copy(to, ours{r})
	return err
}

// unread is why one of our files could not be sent: it is no failure of the
// server that it was for.
type unread struct{ error }

func (u unread) Unwrap() error { return u.error }

// ours is one of our files while it is sent.
type ours struct{ io.ReadCloser }

func (o ours) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = unread{err}
	}
	return n, err
}
