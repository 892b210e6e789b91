package api

import (
	"net/http"
	"slices"
	"strings"

	"atelier/internal/web/access"
)

// Headers of CORS (https://fetch.spec.whatwg.org/#http-cors-protocol) that all
// answers share.
var (
	// corsRequestHeaders are those that pages may send beside the safelisted ones.
	corsRequestHeaders = strings.Join([]string{
		"Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match", "Last-Event-ID", "Range", "X-Device-Id", "traceparent", "tracestate",
	}, ", ")
	// corsExposed are the headers of answers that pages may read.
	corsExposed = strings.Join([]string{
		"Accept-Ranges", "Allow", "Content-Disposition", "Content-Range", "ETag", "Idempotent-Replayed", "Location", "RateLimit", "RateLimit-Policy",
		"Retry-After", "WWW-Authenticate", "X-Trace-Id",
	}, ", ")
)

const (
	// corsMaxAge is how long browsers remember the answer to a preflight, in
	// seconds. Chromium takes no more.
	corsMaxAge = "7200"
	allMethods = "DELETE, GET, HEAD, PATCH, POST, PUT"
)

// cors decides for every answer, errors included, whether a page of another
// origin may read it. There is no Access-Control-Allow-Credentials: browsers hand
// a page nothing that was asked for with cookies.
func (s *Server) cors(next http.Handler) http.Handler {
	if len(s.Origins) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["Vary"] = []string{"Origin"}
		if origin := r.Header["Origin"]; len(origin) == 1 && slices.Contains(s.Origins, origin[0]) {
			h.Set("Access-Control-Allow-Origin", origin[0])
			h.Set("Access-Control-Expose-Headers", corsExposed)
		}
		next.ServeHTTP(w, r)
	})
}

// isPreflight reports whether a browser asks what a page of an allowed origin may
// send.
func isPreflight(w http.ResponseWriter, r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" && w.Header().Get("Access-Control-Allow-Origin") != ""
}

// preflight answers what may be sent to a path. Unknown paths take everything, so
// that the page can read that there is nothing.
func (s *Server) preflight(path, methods string) http.Handler {
	return s.serve(route{path: path, rule: access.Open, do: func(w http.ResponseWriter, r *http.Request) error {
		h := w.Header()
		h.Set("Access-Control-Allow-Methods", methods)
		h.Set("Access-Control-Allow-Headers", corsRequestHeaders)
		h.Set("Access-Control-Max-Age", corsMaxAge)
		h.Del("Access-Control-Expose-Headers")
		return done(w)
	}})
}

// addVary says that an answer depends on these headers of its request, besides
// those that were named before.
func addVary(h http.Header, headers []string) {
	if len(h["Vary"]) == 0 {
		h["Vary"] = headers
		return
	}
	h["Vary"] = slices.Concat(h["Vary"], headers)
}
