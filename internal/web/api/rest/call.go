package rest

import (
	"context"
	"net/http"

	"atelier/internal/account/directory"
	"atelier/internal/account/identity"
	"atelier/internal/catalog/catalog"
	"atelier/internal/file/library"
	"atelier/internal/people/company"
	"atelier/internal/web/access"
	"atelier/internal/web/httpd"
)

// Call is an authenticated and authorized request.
type Call struct {
	Caller  access.Caller
	Account access.Account
	Params  *Params

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

// AddressOf returns the client's address.
func AddressOf(r *http.Request) string { return httpd.RecordOf(r.Context()).Addr.String() }

// VisitorOf returns the client of a request, who need not be authenticated.
func VisitorOf(r *http.Request) identity.Visitor {
	return identity.Visitor{Agent: r.UserAgent(), Address: AddressOf(r)}
}

// ActorOf returns the caller as package identity knows them.
func ActorOf(r *http.Request) identity.Actor {
	return identity.Actor{PersonID: CallOf(r).Caller.PersonID, Address: AddressOf(r)}
}

// ManagerOf returns the caller as package directory knows them. Every caller of
// the API acts through a plugin.
func ManagerOf(r *http.Request) directory.Actor {
	c := CallOf(r).Caller
	return directory.Actor{PersonID: c.PersonID, Address: AddressOf(r), ByPlugin: true, PluginKind: c.PluginKind}
}

// ViewerOf returns the caller as package library knows them.
func ViewerOf(c *Call) library.Viewer {
	v := library.Viewer{PersonID: c.Caller.PersonID, Manager: map[string]bool{}}
	first := c.Account
	for _, a := range append(first.Also, first) {
		v.AccountIDs = append(v.AccountIDs, a.ID)
		v.Manager[a.ID] = a.May(company.ManageTeam)
	}
	return v
}

// AudienceOf returns the audience that the tools of an account are shown to.
func AudienceOf(a access.Account) catalog.Audience {
	return catalog.Audience{
		CompanyID: a.CompanyID,
		TeamID:    a.TeamID,
		Role:      a.Role.Name,
		Allowed:   catalog.IDs(a.Role.ToolsAllowed),
		Blocked:   catalog.IDs(a.Role.ToolsBlocked),
	}
}

// LibraryPlace returns the end of the previous page of a list of package library.
func LibraryPlace(p Page) (*library.Place, error) {
	if p.After == nil {
		return nil, nil
	}
	at, err := p.AfterTime()
	return &library.Place{Created: at, ID: p.After[1]}, err
}
