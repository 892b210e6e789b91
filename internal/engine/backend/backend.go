// Package backend is what engines share that work with a model server over
// HTTP: calls with limits, failures that mean the same everywhere, and files
// that a server only tells the address of.
//
// The server is the operator's choice and is reached wherever it is. Addresses
// that it answers with are somebody else's choice: they are fetched from the
// server itself, with its credentials, or from the public internet, without.
package backend

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"atelier/internal/base/netguard"
)

const (
	// MaxAnswer bounds what is read of an answer with files in it, which has to
	// be in memory whole.
	MaxAnswer = 128 << 20
	// maxPlain bounds an answer without files: what is decoded of it can be many
	// times as large as it came.
	maxPlain  = 16 << 20
	maxHeader = 64 << 10
)

// Options are where a server is and how it knows us.
type Options struct {
	// URL is where its paths begin.
	URL string
	// Header is sent with every call to it, and to no other.
	Header http.Header
	// Timeout bounds calls that do not do the work themselves: 30 s.
	Timeout time.Duration
	// Border lets addresses elsewhere pass.
	Border *netguard.Border
}

// Client calls one server. It is safe for concurrent use.
type Client struct {
	base    *url.URL
	header  http.Header
	timeout time.Duration
	// Transports, as a http.Client would follow redirects, and writes whole
	// addresses into its errors.
	own       *http.Transport // to the server
	elsewhere *http.Transport // to what it names
}

// New makes a client without talking to the server.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the address is no http:// or https:// URL without a user and a query") // the text may hold a password
	}
	u.Path = strings.TrimRight(u.Path, "/")
	c := &Client{base: u, header: o.Header, timeout: cmp.Or(o.Timeout, 30*time.Second)}
	c.own = &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
	}
	c.elsewhere = &http.Transport{
		Proxy:                  nil, // the border would look at the proxy's address
		DialContext:            cmp.Or(o.Border, netguard.New(nil)).Dialer(10 * time.Second).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableKeepAlives:      true,
		ResponseHeaderTimeout:  c.timeout,
		MaxResponseHeaderBytes: maxHeader,
	}
	return c, nil
}

// Close lets go of idle connections.
func (c *Client) Close() { c.own.CloseIdleConnections() }

// Base gives the server's address.
func (c *Client) Base() *url.URL { u := *c.base; return &u }

// HTTP gives the client to the server itself, for protocols that begin with
// HTTP, and the headers that the server knows us by.
func (c *Client) HTTP() (*http.Client, http.Header) {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{CheckRedirect: stay, Transport: c.own}, c.header.Clone()
}

// Status is an answer other than 2xx.
type Status struct {
	Code int
	Body []byte // the beginning of it
}

func (s *Status) Error() string {
	return fmt.Sprintf("status %d", s.Code) // the body may repeat the prompt, or the key
}

// Short is ctx with the time that a call may take which does not do the work.
func (c *Client) Short(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.timeout)
}

// Request is a call.
type Request struct {
	Method string // GET where it is empty
	Path   string // below the server's address, with its query; or a whole URL of the server
	Header [][2]string
	Body   io.Reader // nil: none
	Type   string    // of the body
}

// Do calls the server. An answer other than 2xx is a *Status. The body has to
// be closed.
func (c *Client) Do(ctx context.Context, r Request) (*http.Response, error) {
	at := r.Path
	if !strings.HasPrefix(at, "http://") && !strings.HasPrefix(at, "https://") {
		at = c.base.String() + "/" + strings.TrimLeft(at, "/")
	}
	req, err := http.NewRequestWithContext(ctx, cmp.Or(r.Method, http.MethodGet), at, r.Body)
	if err != nil {
		err = errAddress
	} else if !same(req.URL, c.base) || req.URL.User != nil { // with the server's credentials, nothing goes elsewhere
		err = fmt.Errorf("%w: another server", netguard.ErrBlocked)
	}
	if err != nil {
		if body, ok := r.Body.(io.Closer); ok {
			body.Close() // as sending it would have done
		}
		return nil, err
	}
	for name, values := range c.header {
		req.Header[name] = values
	}
	if r.Type != "" {
		req.Header.Set("Content-Type", r.Type)
	}
	for _, h := range r.Header {
		req.Header.Set(h[0], h[1])
	}
	res, err := c.own.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	return good(res)
}

// good turns an answer other than 2xx into a *Status.
func good(res *http.Response) (*http.Response, error) {
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	defer res.Body.Close()
	s := &Status{Code: res.StatusCode}
	s.Body, _ = io.ReadAll(io.LimitReader(res.Body, 64<<10)) // what came tells enough
	return nil, s
}

// JSON sends in, unless it is nil, and decodes the answer into out, unless that
// is nil. ctx bounds it: calls that do not do the work want Short.
func (c *Client) JSON(ctx context.Context, method, path string, in, out any) error {
	return c.JSONUpTo(ctx, maxPlain, method, path, in, out)
}

// JSONUpTo is JSON for answers of at most so many bytes: MaxAnswer for those
// with files in them.
func (c *Client) JSONUpTo(ctx context.Context, most int64, method, path string, in, out any) error {
	r := Request{Method: method, Path: path}
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return err
		}
		r.Body = bytes.NewReader(body)
		r.Type = "application/json"
	}
	res, err := c.Do(ctx, r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return DecodeUpTo(res.Body, most, out)
}

// Decode reads the JSON of an answer without files into out, nil for none.
// Numbers stay as they are written where out leaves their type open.
func Decode(r io.Reader, out any) error { return DecodeUpTo(r, maxPlain, out) }

// DecodeUpTo is Decode for answers of at most so many bytes.
func DecodeUpTo(r io.Reader, most int64, out any) error {
	if out == nil {
		_, err := io.Copy(io.Discard, io.LimitReader(r, most+1))
		return err
	}
	return Walk(r, most, func(d *json.Decoder) error { return d.Decode(out) })
}

// Walk is DecodeUpTo for answers that are read piece by piece, so that never all
// of one is in memory.
func Walk(r io.Reader, most int64, read func(*json.Decoder) error) error {
	from := &marked{r: r}
	whole := &io.LimitedReader{R: from, N: most + 1}
	d := json.NewDecoder(whole)
	d.UseNumber()
	err := read(d)
	switch {
	case whole.N <= 0:
		return errTooLarge
	case from.err != nil:
		return from.err
	case errors.Is(err, io.ErrUnexpectedEOF), err == nil:
		return err
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: %.200s", errGarbage, err.Error()) // it may repeat the answer
}

// marked remembers why it could not be read.
type marked struct {
	r   io.Reader
	err error
}

func (m *marked) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		m.err = err
	}
	return n, err
}

var (
	errTooLarge = errors.New("the answer is too large")
	errGarbage  = errors.New("the answer is not understood")
	errAddress  = fmt.Errorf("%w: an address that is none", errGarbage) // and may hold a secret
)

// same tells whether two addresses are of one server.
func same(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}
