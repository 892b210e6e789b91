// Package rest contains the code that all resources of /api/v2 share: routes,
// the authenticated request, query parameters, pagination, strict JSON bodies,
// responses, the error format and event streams.
package rest

import (
	"net/http"
	"strings"

	"atelier/internal/web/access"
)

// HandlerFunc responds to a request, or returns an error, which is sent in the
// API's error format.
type HandlerFunc func(w http.ResponseWriter, r *http.Request) error

// Route is the handler of one operation of the API: a method and path.
type Route struct {
	// Method is the method of the requests. "" stands for all methods that the
	// path has no other route for.
	Method string
	Path   string
	// Rule determines which callers may use the operation.
	Rule   access.Rule
	Handle HandlerFunc
	// WriteError responds with an error. nil means the error format of /api/v2.
	WriteError func(w http.ResponseWriter, traceID string, err error)
	// TeamHeader is a header that names the team if the parameter team_id is
	// missing, or "".
	TeamHeader string
}

// NewRoute returns a route for a pattern such as "GET
// /api/v2/tools/{tool_id}".
func NewRoute(pattern string, rule access.Rule, handle HandlerFunc) Route {
	method, path, _ := strings.Cut(pattern, " ")
	return Route{Method: method, Path: path, Rule: rule, Handle: handle}
}
