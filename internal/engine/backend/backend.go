// Package backend is the HTTP client of engines that use a model server. It
// limits requests in size and time, converts their errors to failures of runs,
// and fetches files whose URLs are in a server's responses.
//
// The operator chooses the server, so it may have any address, even a private
// one. URLs in the server's responses are not chosen by the operator: they are
// fetched from the server itself with its credentials, or from the public
// internet without credentials.
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
	// MaxResponse is the maximum size, in bytes, of a response with embedded
	// files, which must fit in memory as a whole.
	MaxResponse = 128 << 20
	// maxPlainResponse is the maximum size, in bytes, of a response without
	// files. It is smaller because decoded JSON can need many times as much
	// memory.
	maxPlainResponse = 16 << 20
	maxHeaderBytes   = 64 << 10
)

// Options are the URL of a model server, its credentials and its limits.
type Options struct {
	// URL is the server's base URL. Paths of requests are appended to it.
	URL string
	// Header is sent with every request to the server, and to no other host.
	// It usually contains the credentials.
	Header http.Header
	// Timeout limits short requests, such as queries: those that do not wait
	// for the model to finish. Default: 30 s.
	Timeout time.Duration
	// Guard checks the IP addresses of other hosts, as protection against
	// server-side request forgery (SSRF).
	Guard *netguard.Guard
}

// Client sends requests to one model server. It is safe for concurrent use.
type Client struct {
	base    *url.URL
	header  http.Header
	timeout time.Duration
	// Both fields are transports instead of clients, because an http.Client
	// would follow redirects and put whole URLs into its errors.
	ownTransport    *http.Transport // for requests to the model server itself
	remoteTransport *http.Transport // for files on other hosts whose URLs the server sent
}

// New returns a client for the server at o.URL. It does not contact the
// server.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the address must be an http:// or https:// URL without user name and query") // the error does not repeat the URL, which may contain a password
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
		Proxy:                  nil, // with a proxy, the guard would check the proxy's IP address instead of the host's
		DialContext:            cmp.Or(o.Guard, netguard.New(nil)).Dialer(10 * time.Second).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableKeepAlives:      true,
		ResponseHeaderTimeout:  c.timeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
	return c, nil
}

// Close closes idle connections to the server.
func (c *Client) Close() { c.ownTransport.CloseIdleConnections() }

// BaseURL returns a copy of the server's base URL.
func (c *Client) BaseURL() *url.URL { u := *c.base; return &u }

// HTTPClient returns an http.Client for the model server, and the headers with
// the credentials. It serves protocols that begin with an HTTP request, such
// as WebSocket.
func (c *Client) HTTPClient() (*http.Client, http.Header) {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{CheckRedirect: stay, Transport: c.ownTransport}, c.header.Clone()
}

// Status is the error for a response with a status other than 2xx.
type Status struct {
	Code int
	Body []byte // the first 64 KiB of the response's body
}

func (s *Status) Error() string {
	return fmt.Sprintf("status %d", s.Code) // without the body, which may repeat the prompt or the API key
}

// WithTimeout returns ctx with the time limit of short requests: those that do
// not wait for the model to finish.
func (c *Client) WithTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.timeout)
}

// Request is an HTTP request to the model server.
type Request struct {
	Method string // HTTP method; default: GET
	Path   string // relative to the base URL, with the query; or an absolute URL of the server
	Header [][2]string
	Body   io.Reader // nil if the request has no body
	Type   string    // media type of the body
}

// Do sends a request to the server. If the response's status is not 2xx, it
// returns a *Status error. The caller closes the response's body.
func (c *Client) Do(ctx context.Context, r Request) (*http.Response, error) {
	at := r.Path
	if !strings.HasPrefix(at, "http://") && !strings.HasPrefix(at, "https://") {
		at = c.base.String() + "/" + strings.TrimLeft(at, "/")
	}
	req, err := http.NewRequestWithContext(ctx, cmp.Or(r.Method, http.MethodGet), at, r.Body)
	if err != nil {
		err = errAddress
	} else if !isSameServer(req.URL, c.base) || req.URL.User != nil { // the server's credentials are never sent to another host
		err = fmt.Errorf("%w: the URL points to another server", netguard.ErrBlocked)
	}
	if err != nil {
		if body, ok := r.Body.(io.Closer); ok {
			body.Close() // Do closes the request's body even if it fails, as http.Client does
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

// checkStatus returns the response if its status is 2xx. Otherwise it closes
// the body and returns a *Status error.
func checkStatus(res *http.Response) (*http.Response, error) {
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	defer res.Body.Close()
	s := &Status{Code: res.StatusCode}
	s.Body, _ = io.ReadAll(io.LimitReader(res.Body, 64<<10)) // a read error is ignored, because a partial body is enough
	return nil, s
}

// CallJSON sends a request with in as its JSON body and decodes the JSON
// response into out. If in is nil, there is no body; if out is nil, the
// response is discarded. Requests that do not wait for the model to finish need
// a ctx from WithTimeout.
func (c *Client) CallJSON(ctx context.Context, method, path string, in, out any) error {
	return c.CallJSONLimit(ctx, maxPlainResponse, method, path, in, out)
}

// CallJSONLimit is like CallJSON, but accepts responses of up to maxBytes
// bytes. For responses with embedded files maxBytes is MaxResponse.
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

// DecodeJSON decodes the JSON of a response without files into out. If out is
// nil, it discards the response. Numbers become a json.Number where out does
// not determine their type.
func DecodeJSON(r io.Reader, out any) error { return DecodeJSONLimit(r, maxPlainResponse, out) }

// DecodeJSONLimit is like DecodeJSON, but accepts responses of up to maxBytes
// bytes.
func DecodeJSONLimit(r io.Reader, maxBytes int64, out any) error {
	if out == nil {
		_, err := io.Copy(io.Discard, io.LimitReader(r, maxBytes+1))
		return err
	}
	return StreamJSON(r, maxBytes, func(d *json.Decoder) error { return d.Decode(out) })
}

// StreamJSON calls read with a JSON decoder of a response of up to maxBytes
// bytes. It is for responses that are decoded value by value, so that they are
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
	return fmt.Errorf("%w: %.200s", errBadResponse, err.Error()) // shortened, because the error may repeat the response
}

// errorRecorder is a reader that remembers the first error, other than io.EOF,
// of the reader it wraps.
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
	errAddress     = fmt.Errorf("%w: invalid URL", errBadResponse) // without the URL, which may contain a password
)

// isSameServer reports whether two URLs have the same scheme, host and port.
func isSameServer(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}
