package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Options are the settings of a Client. URL is required, and one of Token and
// Store for all calls that need a sign-in.
type Options struct {
	// URL is the base URL of the service, for example https://atelier.example.
	URL string
	// Token is a personal or company access token (atl_p_… or atl_c_…).
	Token string
	// Store has the tokens of a device sign-in. The client refreshes them when
	// they expire and saves what the service returns. It is ignored if Token is
	// set.
	Store TokenStore
	// TeamID is the team whose account the calls act for; "" means the
	// person's own account.
	TeamID string
	// Retry sets how often and how long requests are repeated.
	Retry RetryPolicy
	// HTTP sends the requests; nil means a client of this package's own, which
	// limits the time to connect and to wait for an answer.
	HTTP *http.Client
	// UserAgent names the program in the service's logs; "" sends the package's
	// own name.
	UserAgent string
}

// Client calls one Atelier service with one credential. Its embedded Calls have
// the calls of the API in groups, for example c.Tools.List. It is safe for
// concurrent use.
type Client struct {
	Calls

	base      string // base URL without a slash at the end
	token     string
	tokens    *tokenSource // nil without a Store
	teamID    string
	retry     RetryPolicy
	http      *http.Client
	userAgent string
	// ownTransport is the transport of the caller's HTTP client, or nil.
	ownTransport http.RoundTripper
}

// New returns a client. It sends nothing: a wrong token is found by the first
// call.
func New(o Options) (*Client, error) {
	base, err := url.Parse(strings.TrimRight(o.URL, "/"))
	if err != nil {
		return nil, fmt.Errorf("the URL of the service is invalid: %w", err)
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("the URL of the service must begin with http:// or https://, not %q", o.URL)
	}
	if base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("the URL of the service must have no query and no fragment: %q", o.URL)
	}
	if strings.ContainsAny(o.Token, " \t\r\n") {
		return nil, errors.New("the access token contains white space")
	}

	c := &Client{
		base:      base.String(),
		token:     o.Token,
		teamID:    o.TeamID,
		retry:     o.Retry.withDefaults(),
		http:      o.HTTP,
		userAgent: o.UserAgent,
	}
	if c.http == nil {
		c.http = newHTTPClient()
	} else {
		c.ownTransport = c.http.Transport
	}
	if c.userAgent == "" {
		c.userAgent = "atelier-go-client"
	}
	if o.Token == "" && o.Store != nil {
		c.tokens = &tokenSource{client: c, store: o.Store}
	}
	c.Calls = newCalls(c)
	return c, nil
}

// newHTTPClient returns an HTTP client whose waits end: a service that is gone
// must not hold a call for ever. Bodies have no limit of time, because files
// are large and event streams are long.
func newHTTPClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = time.Minute
	transport.MaxIdleConnsPerHost = 16
	return &http.Client{Transport: transport}
}

// ForTeam returns a client that shares everything with c but acts for another
// team; "" means the person's own account.
func (c *Client) ForTeam(teamID string) *Client {
	other := *c
	other.teamID = teamID
	other.Calls = newCalls(&other)
	return &other
}

// TeamID returns the id of the team that the client acts for; "" for the
// person's own account.
func (c *Client) TeamID() string { return c.teamID }

// URL returns the base URL of the service.
func (c *Client) URL() string { return c.base }
