package reference_test

import (
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"atelier/internal/web/httpd"
	"atelier/internal/web/reference"
)

// get calls a handler. headers are names and values in turn.
func get(h http.Handler, method, path string, headers ...string) *http.Response {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func newHandler(t *testing.T) http.Handler {
	t.Helper()
	h, err := reference.New()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// largeFiles are the page's files that are worth compressing.
var largeFiles = []string{"/docs/api/swagger-ui/swagger-ui.css", "/docs/api/swagger-ui/swagger-ui-bundle.js"}

func TestHeaders(t *testing.T) {
	t.Parallel()
	h := newHandler(t)
	for _, c := range []struct{ path, mediaType string }{
		{"/docs/api", "text/html; charset=utf-8"},
		{"/docs/api/style.css", "text/css; charset=utf-8"},
		{"/docs/api/page.js", "text/javascript; charset=utf-8"},
		{"/docs/api/swagger-ui/swagger-ui.css", "text/css; charset=utf-8"},
		{"/docs/api/swagger-ui/swagger-ui-bundle.js", "text/javascript; charset=utf-8"},
		{"/docs/api/swagger-ui/swagger-ui-bundle.js.LICENSE.txt", "text/plain; charset=utf-8"},
		{"/docs/api/swagger-ui/LICENSE", "text/plain; charset=utf-8"},
		{"/docs/api/swagger-ui/NOTICE", "text/plain; charset=utf-8"},
	} {
		r := get(h, "GET", c.path)
		for name, want := range map[string]string{
			"Content-Type":            c.mediaType,
			"Cache-Control":           "no-cache",
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
		} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s: %s = %q, want %q", c.path, name, got, want)
			}
		}
		if body(t, r) == "" {
			t.Errorf("%s is empty", c.path)
		}
	}
}

func TestNothingIsSentTwice(t *testing.T) {
	t.Parallel()
	h := newHandler(t)
	for _, path := range []string{"/docs/api", "/docs/api/style.css"} {
		tag := get(h, "GET", path).Header.Get("ETag")
		if tag == "" {
			t.Fatalf("%s has no ETag", path)
		}
		r := get(h, "GET", path, "If-None-Match", `"other", W/`+tag)
		if got := body(t, r); r.StatusCode != http.StatusNotModified || got != "" {
			t.Errorf("%s again = %d with %d bytes, want 304 with none", path, r.StatusCode, len(got))
		}
		if r := get(h, "GET", path, "If-None-Match", `"other"`); r.StatusCode != http.StatusOK {
			t.Errorf("%s with another tag = %d, want 200", path, r.StatusCode)
		}
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	h := newHandler(t)
	for _, c := range []struct {
		name, method, path string
		status             int
		header, value      string
	}{
		{"the page", "GET", "/docs/api", 200, "", ""},
		{"a slash too many", "GET", "/docs/api/", 308, "Location", "/docs/api"},
		{"an unknown page", "GET", "/docs/api/nothing", 404, "", ""},
		{"outside", "GET", "/", 404, "", ""},
		{"writing", "POST", "/docs/api", 405, "Allow", "GET, HEAD"},
		{"writing the style", "DELETE", "/docs/api/style.css", 405, "Allow", "GET, HEAD"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := get(h, c.method, c.path)
			if r.StatusCode != c.status {
				t.Errorf("status = %d, want %d", r.StatusCode, c.status)
			}
			if got := r.Header.Get(c.header); got != c.value {
				t.Errorf("%s = %q, want %q", c.header, got, c.value)
			}
		})
	}
}

func TestHeadHasNoBody(t *testing.T) {
	t.Parallel()
	h := newHandler(t)
	r, full := get(h, "HEAD", "/docs/api"), get(h, "GET", "/docs/api")
	if got := body(t, r); r.StatusCode != http.StatusOK || got != "" {
		t.Errorf("HEAD = %d with %d bytes, want 200 with none", r.StatusCode, len(got))
	}
	if got, want := r.Header.Get("Content-Length"), full.Header.Get("Content-Length"); got != want || got == "" {
		t.Errorf("Content-Length = %q, want %q as for GET", got, want)
	}
}

func TestRoutesAreCountedByName(t *testing.T) {
	t.Parallel()
	metrics := prometheus.NewRegistry()
	server := httpd.New(newHandler(t), httpd.Options{
		Log: slog.New(slog.DiscardHandler), Metrics: metrics, Health: &httpd.Health{}, Now: time.Now,
	})
	get(server, "GET", "/docs/api")
	get(server, "GET", "/docs/api/style.css")
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "route" {
					seen[l.GetValue()] = true
				}
			}
		}
	}
	if !seen["/docs/api"] || !seen["/docs/api/style.css"] || len(seen) != 2 {
		t.Errorf("routes = %v, want /docs/api and /docs/api/style.css", seen)
	}
}

func TestCompressed(t *testing.T) {
	t.Parallel()
	h := newHandler(t)
	for _, path := range largeFiles {
		plain := get(h, "GET", path)
		zipped := get(h, "GET", path, "Accept-Encoding", "br, gzip")
		if plain.Header.Get("Content-Encoding") != "" || zipped.Header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("%s is encoded as %q and %q", path, plain.Header.Get("Content-Encoding"), zipped.Header.Get("Content-Encoding"))
		}
		for _, r := range []*http.Response{plain, zipped} {
			if r.Header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s varies by %q", path, r.Header.Get("Vary"))
			}
		}
		text := body(t, plain)
		stream := body(t, zipped)
		if got := zipped.Header.Get("Content-Length"); got != strconv.Itoa(len(stream)) {
			t.Errorf("%s: Content-Length %s of %d bytes", path, got, len(stream))
		}
		reader, err := gzip.NewReader(strings.NewReader(stream))
		if err != nil {
			t.Fatal(err)
		}
		if unzipped, err := io.ReadAll(reader); err != nil || string(unzipped) != text {
			t.Errorf("%s is something else when it is compressed: %v", path, err)
		}
		t.Logf("%s: %d bytes, compressed %d", path, len(text), len(stream))

		tag := zipped.Header.Get("ETag")
		if tag == plain.Header.Get("ETag") {
			t.Errorf("%s: both forms have the tag %s", path, tag)
		}
		if r := get(h, "GET", path, "Accept-Encoding", "gzip", "If-None-Match", tag); r.StatusCode != http.StatusNotModified || r.Header.Get("ETag") != tag {
			t.Errorf("%s again = %d %s", path, r.StatusCode, r.Header.Get("ETag"))
		}
		if r := get(h, "HEAD", path, "Accept-Encoding", "gzip"); r.Header.Get("Content-Length") != strconv.Itoa(len(stream)) || r.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("HEAD %s: %v", path, r.Header)
		}
		if r := get(h, "GET", path, "Accept-Encoding", "gzip", "Range", "bytes=0-9"); r.StatusCode != http.StatusPartialContent || body(t, r) != text[:10] {
			t.Errorf("the first bytes of %s = %d", path, r.StatusCode)
		}
	}
}
