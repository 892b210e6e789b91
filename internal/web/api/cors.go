package api

import (
	"net/http"
	"slices"
	"strings"

	"atelier/internal/web/api/rest"
	"atelier/internal/web/httpd"
)

// Headers of CORS (https://fetch.spec.whatwg.org/#http-cors-protocol) that are
// the same in all responses.
var (
	// corsRequestHeaders lists the request headers that pages may send in
	// addition to the CORS-safelisted ones.
	corsRequestHeaders = strings.Join([]string{
		"Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match", "Last-Event-ID",
		"Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "Mcp-Session-Id",
		"OpenAI-Organization", "OpenAI-Project", "Range", "Tus-Resumable", "Upload-Checksum", "Upload-Length", "Upload-Metadata", "Upload-Offset",
		"X-Atelier-Keep-Run", "X-Device-Id", "X-Stainless-Arch", "X-Stainless-Lang", "X-Stainless-OS", "X-Stainless-Package-Version",
		"X-Stainless-Retry-Count", "X-Stainless-Runtime", "X-Stainless-Runtime-Version", "X-Stainless-Timeout", "traceparent", "tracestate",
	}, ", ")
	// corsExposed lists the response headers that pages may read.
	corsExposed = strings.Join([]string{
		"Accept-Ranges", "Allow", "Content-Disposition", "Content-Range", "ETag", "Idempotent-Replayed", "Location", "Mcp-Session-Id", "RateLimit", "RateLimit-Policy",
		"Retry-After", "Tus-Checksum-Algorithm", "Tus-Extension", "Tus-Max-Size", "Tus-Resumable", "Tus-Version", "Upload-Expires", "Upload-Id",
		"Upload-Length", "Upload-Metadata", "Upload-Offset", "WWW-Authenticate", "X-Request-Id", "X-Should-Retry", "X-Trace-Id",
	}, ", ")
)

const (
	// corsMaxAge is the time in seconds for which browsers cache the response
	// to a preflight request. It is Chromium's maximum.
	corsMaxAge = "7200"
	allMethods = "DELETE, GET, HEAD, PATCH, POST, PUT"
)

// allowOrigins allows pages of the configured origins to read every response,
// including errors. It does not send
// Access-Control-Allow-Credentials, so browsers do not let pages read responses
// to requests with cookies.
func (s *server) allowOrigins(next http.Handler) http.Handler {
	if len(s.origins) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header["Vary"] = []string{"Origin"}
		if origin := r.Header["Origin"]; len(origin) == 1 && slices.Contains(s.origins, origin[0]) {
			header.Set("Access-Control-Allow-Origin", origin[0])
			header.Set("Access-Control-Expose-Headers", corsExposed)
		}
		next.ServeHTTP(w, r)
	})
}

// isPreflight reports whether a request is the CORS preflight request of a
// page of an allowed origin.
func isPreflight(w http.ResponseWriter, r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" && w.Header().Get("Access-Control-Allow-Origin") != ""
}

// servePreflight returns the handler of CORS preflight requests for a path.
// Unknown paths allow all methods, so that the page can read the 404.
func (s *server) servePreflight(path, methods string) http.Handler {
	return s.serveOpen(path, nil, func(w http.ResponseWriter, r *http.Request) error {
		header := w.Header()
		header.Set("Access-Control-Allow-Methods", methods)
		header.Set("Access-Control-Allow-Headers", corsRequestHeaders)
		header.Set("Access-Control-Max-Age", corsMaxAge)
		header.Del("Access-Control-Expose-Headers")
		return rest.NoContent(w)
	})
}

// otherOrigin returns the origin of the app's pages if files have another one,
// and "" if both are the same or a URL is invalid.
func otherOrigin(appURL, mediaURL string) string {
	app := httpd.Origin(appURL)
	if app == httpd.Origin(mediaURL) {
		return ""
	}
	return app
}
