// Package rest holds the parts that all resources of /api/v2 share: routes,
// the authenticated call, query parameters, pages of lists, strict JSON bodies,
// responses, the error envelope and event streams.
package rest

import (
	"net/http"
	"strings"

	"atelier/internal/web/access"
)

// HandlerFunc answers a request, or returns an error that becomes the error
// envelope.
type HandlerFunc func(w http.ResponseWriter, r *http.Request) error

// Route is one operation of the API.
type Route struct {
	Method string
	Path   string
	// Rule decides which callers may use the operation.
	Rule   access.Rule
	Handle HandlerFunc
}

// NewRoute returns the route of a pattern such as "GET /api/v2/tools/{tool_id}".
func NewRoute(pattern string, rule access.Rule, handle HandlerFunc) Route {
	method, path, _ := strings.Cut(pattern, " ")
	return Route{Method: method, Path: path, Rule: rule, Handle: handle}
}
