package client

import (
	"errors"
	"net/http"
	"net/url"
)

// Transport returns a transport for http.Client that sends the credential of c
// with each request, for interfaces of the service that this package does not
// call, such as /mcp. An ID token that the service refuses is refreshed, and the
// request is sent once more if its body can be read again. Requests to other
// services fail, so that the credential stays here.
func (c *Client) Transport() http.RoundTripper { return transport{c} }

type transport struct{ client *Client }

// ErrOtherService means that a request with a credential was about to be sent to
// another service.
var ErrOtherService = errors.New("the request is for another service than the client")

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base, err := url.Parse(t.client.base)
	if err != nil {
		return nil, err
	}
	if r.URL.Scheme != base.Scheme || r.URL.Host != base.Host {
		closeBody(r)
		return nil, ErrOtherService
	}
	if t.client.tokens == nil {
		return t.send(r, t.client.token)
	}
	token, err := t.client.tokens.idToken(r.Context())
	if err != nil {
		closeBody(r)
		return nil, err
	}
	res, err := t.send(r, token)
	if err != nil || res.StatusCode != http.StatusUnauthorized || r.Body != nil && r.GetBody == nil {
		return res, err
	}
	if token, err = t.client.tokens.replace(r.Context(), token); err != nil {
		return nil, errors.Join(err, res.Body.Close())
	}
	if err := res.Body.Close(); err != nil {
		return nil, err
	}
	if r.GetBody != nil {
		r = r.Clone(r.Context())
		if r.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return t.send(r, token)
}

func (t transport) send(r *http.Request, token string) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", t.client.userAgent)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	next := http.DefaultTransport // waits for a response as long as it takes
	if own := t.client.ownTransport; own != nil {
		next = own
	}
	return next.RoundTrip(r)
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close() // nothing was sent
	}
}
