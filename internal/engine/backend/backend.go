// Package backend is the HTTP client of engines that use a model server: calls with limits,
// uniform failures, and files that a server names by URL.
//
// The operator chooses the server, so it may be at any address. URLs in its responses are not
// chosen by the operator: they are fetched from the server itself with its credentials, or from the
// public internet without credentials.
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
	// MaxResponse limits a response with embedded files, which must be in memory as a whole.
	MaxResponse = 128 << 20
	// maxPlainResponse limits a response without files. Decoded, it can be many times as large.
	maxPlainResponse = 16 << 20
	maxHeaderBytes   = 64 << 10
)

// Options are the address of a server and the credentials for it.
type Options struct {
	// URL is the base of all paths.
	URL string
	// Header is sent with every call to the server, and to no other host.
	Header http.Header
	// Timeout limits calls that do not do the work themselves. Default: 30 s.
	Timeout time.Duration
	// Guard checks addresses of other hosts (SSRF guard).
	Guard *netguard.Guard
}

// Client calls one server. It is safe for concurrent use.
type Client struct {
	base    *url.URL
	header  http.Header
	timeout time.Duration
	// These are transports and not clients, because an http.Client would follow redirects and put
	// whole URLs into its errors.
	ownTransport    *http.Transport // for calls of the server itself
	remoteTransport *http.Transport // for files on other hosts that the server names
}

// New returns a client. It does not contact the server.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the address must be an http:// or https:// URL without user and query") // the URL may contain a password
	}
	u.Path = strings.TrimRight(u.Path, "/")
	c := &Client{base: u, header: o.Header, timeout: cmp.Or(o.Timeout, 30*time.Second)}
	c.ownTransport = &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
	c.remoteTransport = &http.Transport{
		Proxy:                  nil, // with a proxy, the guard would check the proxy's address
		DialContext:            cmp.Or(o.Guard, netguard.New(nil)).Dialer(10 * time.Second).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableKeepAlives:      true,
		ResponseHeaderTimeout:  c.timeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.ownTransport.CloseIdleConnections() }

// BaseURL returns the server's address.
func (c *Client) BaseURL() *url.URL { u := *c.base; return &u }

// HTTPClient returns a client of the server itself, for protocols that begin with HTTP, and the
// headers with the credentials.
func (c *Client) HTTPClient() (*http.Client, http.Header) {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{CheckRedirect: stay, Transport: c.ownTransport}, c.header.Clone()
}

// Status is a response other than 2xx.
type Status struct {
	Code int
	Body []byte // the first bytes of the response
}

func (s *Status) Error() string {
	return fmt.Sprintf("status %d", s.Code) // the body may repeat the prompt or the key
}

// WithTimeout returns ctx with the time limit for calls that do not do the work themselves.
func (c *Client) WithTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.timeout)
}

// Request is a call of the server.
type Request struct {
	Method string // "": GET
	Path   string // relative to the base URL, with its query; or a whole URL of the server
	Header [][2]string
	Body   io.Reader // nil: none
	Type   string    // media type of the body
}

// Do calls the server. A response other than 2xx is a *Status error. The caller closes the body.
func (c *Client) Do(ctx context.Context, r Request) (*http.Response, error) {
	at := r.Path
	if !strings.HasPrefix(at, "http://") && !strings.HasPrefix(at, "https://") {
		at = c.base.String() + "/" + strings.TrimLeft(at, "/")
	}
	req, err := http.NewRequestWithContext(ctx, cmp.Or(r.Method, http.MethodGet), at, r.Body)
	if err != nil {
		err = errAddress
	} else if !isSameServer(req.URL, c.base) || req.URL.User != nil { // the server's credentials are never sent to another host
		err = fmt.Errorf("%w: the URL is of another server", netguard.ErrBlocked)
	}
	if err != nil {
		if body, ok := r.Body.(io.Closer); ok {
			body.Close() // as sending the request would have done
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
	res, err := c.ownTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	return checkStatus(res)
}

// checkStatus turns a response other than 2xx into a *Status.
func checkStatus(res *http.Response) (*http.Response, error) {
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	defer res.Body.Close()
	s := &Status{Code: res.StatusCode}
	s.Body, _ = io.ReadAll(io.LimitReader(res.Body, 64<<10)) // a partial body is enough
	return nil, s
}

// CallJSON sends in, unless it is nil, and decodes the response into out, unless that is nil. ctx
// limits the call: calls that do not do the work use WithTimeout.
func (c *Client) CallJSON(ctx context.Context, method, path string, in, out any) error {
	return c.CallJSONLimit(ctx, maxPlainResponse, method, path, in, out)
}

// CallJSONLimit is CallJSON for responses of at most maxBytes bytes: MaxResponse for responses
// with embedded files.
func (c *Client) CallJSONLimit(ctx context.Context, maxBytes int64, method, path string, in, out any) error {
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
	return DecodeJSONLimit(res.Body, maxBytes, out)
}

// DecodeJSON decodes the JSON of a response without files into out; nil discards it. Numbers keep
// their notation if out does not determine their type.
func DecodeJSON(r io.Reader, out any) error { return DecodeJSONLimit(r, maxPlainResponse, out) }

// DecodeJSONLimit is DecodeJSON for responses of at most maxBytes bytes.
func DecodeJSONLimit(r io.Reader, maxBytes int64, out any) error {
	if out == nil {
		_, err := io.Copy(io.Discard, io.LimitReader(r, maxBytes+1))
		return err
	}
	return StreamJSON(r, maxBytes, func(d *json.Decoder) error { return d.Decode(out) })
}

// StreamJSON is DecodeJSONLimit for responses that are read piece by piece, so that a response is
// never in memory as a whole.
func StreamJSON(r io.Reader, maxBytes int64, read func(*json.Decoder) error) error {
	from := &errorRecorder{r: r}
	whole := &io.LimitedReader{R: from, N: maxBytes + 1}
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
	return fmt.Errorf("%w: %.200s", errBadResponse, err.Error()) // the error may repeat the response
}

// errorRecorder remembers the reader's error.
type errorRecorder struct {
	r   io.Reader
	err error
}

func (m *errorRecorder) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		m.err = err
	}
	return n, err
}

var (
	errTooLarge    = errors.New("the response is too large")
	errBadResponse = errors.New("the response is invalid")
	errAddress     = fmt.Errorf("%w: invalid URL", errBadResponse) // without the URL, which may contain a secret
)

// isSameServer reports whether two URLs belong to the same server.
func isSameServer(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}
