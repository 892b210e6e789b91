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
	Method string
	Path   string
	// Rule determines which callers may use the operation.
	Rule   access.Rule
	Handle HandlerFunc
}

// NewRoute returns a route for a pattern such as "GET
// /api/v2/tools/{tool_id}".
func NewRoute(pattern string, rule access.Rule, handle HandlerFunc) Route {
	method, path, _ := strings.Cut(pattern, " ")
	return Route{Method: method, Path: path, Rule: rule, Handle: handle}
}
