package rest

import (
	"context"
	"net/http"

	"atelier/internal/file/library"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
	"atelier/internal/web/access"
	"atelier/internal/web/httpd"
)

// Call is an authenticated and authorized API request.
type Call struct {
	Principal principal.Principal
	Params    *Params

	// Reauthorize authorizes the request again. Long-lived responses call it
	// periodically. Handlers that change something do not need it, because
	// every write transaction authorizes the request again
	// (access.Gate.Guard).
	Reauthorize func(context.Context) error

	// Authorize authorizes the request under another rule, for interfaces whose
	// requests name their operation in the body. The transactions of the
	// returned context check that rule.
	Authorize func(ctx context.Context, rule access.Rule) (context.Context, *Call, error)
}

type callKey struct{}

// WithCall returns a copy of the request that carries c.
func WithCall(r *http.Request, c *Call) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callKey{}, c))
}

// CallOf returns the Call of a request. It panics on open routes, whose
// requests have no Call.
func CallOf(r *http.Request) *Call { return r.Context().Value(callKey{}).(*Call) }

// PrincipalOf returns the authenticated caller of a request. It panics on open
// routes, whose callers are not authenticated.
func PrincipalOf(r *http.Request) principal.Principal { return CallOf(r).Principal }

// ClientOf returns the IP address and the user agent of a request. It works on
// open routes too.
func ClientOf(r *http.Request) session.Client {
	return session.Client{UserAgent: r.UserAgent(), Address: httpd.RecordOf(r.Context()).Addr.String()}
}

// LibraryCursor returns the cursor of the last item of the previous page, for
// lists of package library. It returns nil for the first page.
func LibraryCursor(p Page) (*library.Cursor, error) {
	if p.After == nil {
		return nil, nil
	}
	at, err := p.AfterTime()
	return &library.Cursor{Created: at, ID: p.After[1]}, err
}
