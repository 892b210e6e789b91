package rest

import (
	"context"
	"net/http"

	"atelier/internal/file/library"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
	"atelier/internal/web/httpd"
)

// Call is an authenticated and authorized request.
type Call struct {
	Principal principal.Principal
	Params    *Params

	// Reauthorize repeats the authorization. Long-lived responses call it between
	// their parts. Changes do not need it: the transaction that makes a change
	// authorizes the request again (access.Gate.Guard).
	Reauthorize func(context.Context) error
}

type callKey struct{}

// WithCall returns the request with its call.
func WithCall(r *http.Request, c *Call) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callKey{}, c))
}

// CallOf returns the call of a request. Open routes have none: CallOf panics there.
func CallOf(r *http.Request) *Call { return r.Context().Value(callKey{}).(*Call) }

// PrincipalOf returns the caller of a request. Open routes have none: PrincipalOf
// panics there.
func PrincipalOf(r *http.Request) principal.Principal { return CallOf(r).Principal }

// ClientOf returns the address and the user agent of a request. Open routes have
// it too.
func ClientOf(r *http.Request) session.Client {
	return session.Client{UserAgent: r.UserAgent(), Address: httpd.RecordOf(r.Context()).Addr.String()}
}

// ViewerOf returns the caller as a viewer of package library.
func ViewerOf(p principal.Principal) library.Viewer {
	v := library.Viewer{PersonID: p.PersonID, Manager: map[string]bool{}}
	for _, account := range p.Accounts() {
		v.AccountIDs = append(v.AccountIDs, account.AccountID)
		v.Manager[account.AccountID] = account.May(company.ManageTeam)
	}
	return v
}

// LibraryPlace returns the end of the previous page of a list of package library.
func LibraryPlace(p Page) (*library.Cursor, error) {
	if p.After == nil {
		return nil, nil
	}
	at, err := p.AfterTime()
	return &library.Cursor{Created: at, ID: p.After[1]}, err
}
