// Package oauthclient keeps the apps of third parties that sign people in with
// the authorization code flow of OAuth 2.1. Anyone can register an app (RFC
// 7591), so its name proves nothing: what identifies an app to a person is the
// address to which they are sent back. Apps have no secrets.
package oauthclient

import (
	"context"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sanitize"
	"atelier/internal/base/sqldb"
)

// Client is a registered app.
type Client struct {
	ID           string
	Name         string // as the app calls itself
	URI          string // of its web site, or ""
	RedirectURIs []string
	Created      time.Time
}

// Registration describes an app that wants to be registered.
type Registration struct {
	Name         string
	URI          string
	RedirectURIs []string
	Network      string // from which the request came
}

const (
	maxName      = 100
	maxURI       = 1000
	maxRedirects = 10
	// maxUnused is the number of apps of one network that nobody has allowed
	// yet. When another one is registered, the oldest is deleted.
	maxUnused = 100
	// keepUnused is how long an app is kept that nobody has allowed.
	keepUnused = 7 * 24 * time.Hour
)

// ErrUnknown is returned for ids that no app has.
var ErrUnknown = fault.New(fault.NotFound, "This app is not registered here. It may have been deleted because nobody used it. Connect it again in the app.")

// Register registers an app.
func Register(ctx context.Context, tx *sqldb.Tx, r Registration) (Client, error) {
	c := Client{
		ID:           ids.New(),
		Name:         sanitize.Line(r.Name, maxName),
		URI:          r.URI,
		RedirectURIs: r.RedirectURIs,
		Created:      tx.Now,
	}
	if c.Name == "" {
		c.Name = "Unnamed app"
	}
	if u, err := url.Parse(c.URI); c.URI != "" && (err != nil || u.Scheme != "https" || u.Host == "" || len(c.URI) > maxURI) {
		return Client{}, fault.New(fault.Invalid, "client_uri must be an https address.").On("client_uri")
	}
	if len(c.RedirectURIs) == 0 || len(c.RedirectURIs) > maxRedirects {
		return Client{}, fault.New(fault.Invalid, "redirect_uris must have 1 to 10 addresses.").On("redirect_uris")
	}
	for _, address := range c.RedirectURIs {
		if problem := redirectProblem(address); problem != "" {
			return Client{}, fault.New(fault.Invalid, "redirect_uris: "+problem).On("redirect_uris")
		}
	}
	if err := insertClient(ctx, tx, c, r.Network); err != nil {
		return Client{}, err
	}
	return c, deleteOldest(ctx, tx, r.Network, maxUnused)
}

// forbiddenSchemes are schemes that a browser handles itself.
var forbiddenSchemes = []string{"about", "blob", "data", "file", "filesystem", "ftp", "javascript", "vbscript", "view-source", "ws", "wss"}

// redirectProblem says why people must not be sent to an address, or returns "":
// https addresses are allowed, http addresses of the person's own machine, and
// schemes of apps (RFC 8252).
func redirectProblem(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil || len(address) > maxURI || !u.IsAbs() || sanitize.Line(address, maxURI) != address:
		return "This is not an address."
	case u.Fragment != "" || strings.Contains(address, "#") || u.User != nil:
		return "An address must have no fragment and no user name."
	case u.Scheme == "https" && u.Host != "":
		return ""
	case u.Scheme == "http" && isLoopback(u.Hostname()):
		return ""
	case u.Scheme == "http" || u.Scheme == "https":
		return "An http address must be of this machine, such as http://127.0.0.1/callback. Others need https."
	case slices.Contains(forbiddenSchemes, u.Scheme):
		return "The scheme " + u.Scheme + " is not allowed."
	}
	return ""
}

func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// Allows reports whether people may be sent to an address. It must be one that
// the app has registered; the port of an address of the person's own machine may
// differ (RFC 8252 section 7.3).
func (c Client) Allows(address string) bool {
	return slices.ContainsFunc(c.RedirectURIs, func(registered string) bool {
		if registered == address {
			return true
		}
		want, err := url.Parse(registered)
		if err != nil || want.Scheme != "http" || redirectProblem(address) != "" {
			return false
		}
		got, err := url.Parse(address)
		if err != nil || got.Hostname() != want.Hostname() {
			return false
		}
		got.Host = want.Host
		return got.String() == want.String()
	})
}

// DeleteUnused deletes apps that nobody has allowed for a long time. It returns
// their number.
func DeleteUnused(ctx context.Context, tx *sqldb.Tx) (int64, error) {
	return deleteUnused(ctx, tx, tx.Now.Add(-keepUnused))
}
