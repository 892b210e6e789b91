package httpd_test

import (
	"net/http/httptest"
	"net/url"
	"testing"

	"atelier/internal/web/httpd"
)

// TestRedirect sends requests for known and unknown hosts to HTTPS: where they
// go is never up to a stranger's Host header.
func TestRedirect(t *testing.T) {
	t.Parallel()
	h := httpd.RedirectToHTTPS(&url.URL{Scheme: "https", Host: "atelier.example:8443"}, &url.URL{Scheme: "https", Host: "files.example"})
	for _, c := range []struct {
		method, host, target string
		status               int
		location             string
	}{
		{"GET", "atelier.example", "/docs?a=b%20c", 308, "https://atelier.example:8443/docs?a=b%20c"},
		{"HEAD", "ATELIER.example:80", "/", 308, "https://atelier.example:8443/"},
		{"GET", "files.example:80", "/media/x", 308, "https://files.example/media/x"},
		{"GET", "evil.example", "/reset?token=t", 308, "https://atelier.example:8443/reset?token=t"},
		{"GET", "atelier.example", "//evil.example/x", 308, "https://atelier.example:8443//evil.example/x"},
		{"GET", "atelier.example", "http://evil.example/x", 308, "https://atelier.example:8443/x"},
		{"POST", "atelier.example", "/api/v2/generate", 403, ""},
		{"DELETE", "atelier.example", "/", 403, ""},
	} {
		r := httptest.NewRequest(c.method, c.target, nil)
		r.Host = c.host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Header().Get("Location"); w.Code != c.status || got != c.location {
			t.Errorf("%s %s%s = %d %q, want %d %q", c.method, c.host, c.target, w.Code, got, c.status, c.location)
		}
	}
}
