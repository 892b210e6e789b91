package reference_test

import (
	"compress/gzip"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	openapi "atelier/api"
	"atelier/internal/web/reference"
	"atelier/internal/web/httpd"
)

// get asks a handler for a path. Headers come in pairs.
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

func handler(t *testing.T, document []byte) http.Handler {
	t.Helper()
	h, err := reference.New(document)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// page gives the HTML made from a document.
func page(t *testing.T, document []byte) string {
	t.Helper()
	r := get(handler(t, document), "GET", "/docs")
	if r.StatusCode != http.StatusOK {
		t.Fatalf("status = %d, want 200", r.StatusCode)
	}
	return body(t, r)
}

var (
	unseen = regexp.MustCompile(`(?s)<caption.*?</thead>`)
	marks  = regexp.MustCompile(`<[^>]*>`)
	spaces = regexp.MustCompile(`\s+`)
)

// read gives the words of a page as a reader sees them.
func read(page string) string {
	page = unseen.ReplaceAllString(page, "")
	page = strings.NewReplacer("<td", " <td", "<p", " <p", "<li", " <li", "<dd", " <dd").Replace(page)
	return spaces.ReplaceAllString(html.UnescapeString(marks.ReplaceAllString(page, "")), " ")
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	h := handler(t, openapi.Document)
	for _, c := range []struct{ path, mediaType string }{
		{"/docs", "text/html; charset=utf-8"},
		{"/docs/style.css", "text/css; charset=utf-8"},
	} {
		r := get(h, "GET", c.path)
		for name, want := range map[string]string{
			"Content-Type":            c.mediaType,
			"Cache-Control":           "no-cache",
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
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
	h := handler(t, openapi.Document)
	for _, path := range []string{"/docs", "/docs/style.css"} {
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
	changed := strings.Replace(string(openapi.Document), "title: Atelier", "title: Workshop", 1)
	if get(handler(t, []byte(changed)), "GET", "/docs").Header.Get("ETag") == get(h, "GET", "/docs").Header.Get("ETag") {
		t.Error("another document has the same ETag")
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	h := handler(t, openapi.Document)
	for _, c := range []struct {
		name, method, path string
		status             int
		header, value      string
	}{
		{"the page", "GET", "/docs", 200, "", ""},
		{"a slash too many", "GET", "/docs/", 308, "Location", "/docs"},
		{"an unknown page", "GET", "/docs/nothing", 404, "", ""},
		{"outside", "GET", "/", 404, "", ""},
		{"writing", "POST", "/docs", 405, "Allow", "GET, HEAD"},
		{"writing the style", "DELETE", "/docs/style.css", 405, "Allow", "GET, HEAD"},
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
	h := handler(t, openapi.Document)
	r, full := get(h, "HEAD", "/docs"), get(h, "GET", "/docs")
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
	server := httpd.New(handler(t, openapi.Document), httpd.Options{
		Log: slog.New(slog.DiscardHandler), Metrics: metrics, Health: &httpd.Health{}, Now: time.Now,
	})
	get(server, "GET", "/docs")
	get(server, "GET", "/docs/style.css")
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
	if !seen["/docs"] || !seen["/docs/style.css"] || len(seen) != 2 {
		t.Errorf("routes = %v, want /docs and /docs/style.css", seen)
	}
}

func TestBrokenDocuments(t *testing.T) {
	t.Parallel()
	const head = "openapi: 3.1.0\ninfo: {title: T, version: '1'}\n"
	for _, c := range []struct{ name, document, want string }{
		{"empty", "", "want 3.1"},
		{"not YAML", "a: [", "yaml"},
		{"not a mapping", "just words", "cannot unmarshal"},
		{"another version", "openapi: 3.0.3\ninfo: {title: T}", "want 3.1"},
		{"no title", "openapi: 3.1.0", "info.title"},
		{"parameters that are no list", head + "paths: {/a: {get: {parameters: 7}}}", "cannot unmarshal"},
		{"properties that are no mapping", head + "components: {schemas: {A: {properties: [a]}}}", "must be a mapping"},
		{"a name twice", head + "components: {schemas: {A: {type: string}, A: {type: string}}}", "A stands here twice"},
		{"a reference to nothing", head + "paths: {/a: {get: {parameters: [{$ref: '#/components/parameters/X'}]}}}", `"#/components/parameters/X" points to nothing`},
		{"a reference to no schema", head + "components: {schemas: {A: {items: {$ref: '#/components/schemas/B'}}}}", `"#/components/schemas/B" points to nothing`},
		{"a reference elsewhere", head + "paths: {/a: {get: {responses: {'200': {$ref: 'other.yaml#/a'}}}}}", "does not point into this document"},
		{"references in a circle", head + "paths: {/a: {get: {parameters: [{$ref: '#/components/parameters/X'}]}}}\ncomponents: {parameters: {X: {$ref: '#/components/parameters/X'}}}", "goes in a circle"},
		{"an unknown security scheme", head + "paths: {/a: {get: {security: [{nobody: []}]}}}", `security scheme "nobody"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := reference.New([]byte(c.document))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want one with %q", err, c.want)
			}
		})
	}
}

// TestSharedErrorsAreShownOnce: an operation names them and leads to them.
func TestSharedErrorsAreShownOnce(t *testing.T) {
	t.Parallel()
	shown := page(t, []byte(`
openapi: 3.1.0
info: {title: T, version: '1'}
paths:
  /a:
    get: {responses: {"200": {description: Fine.}, "404": {$ref: '#/components/responses/Gone'}, "409": {description: Taken.}}}
    post: {responses: {"201": {$ref: '#/components/responses/Made'}, "404": {$ref: '#/components/responses/Gone'}, default: {$ref: '#/components/responses/Other'}}}
components:
  responses:
    Made: {description: It is made.}
    Gone: {description: It is gone.}
    Other: {description: Something else.}
    Unused: {description: Nobody says this.}
`))
	for text, want := range map[string]int{
		"It is made.": 1, "It is gone.": 1, "Something else.": 1, "Taken.": 1, "Nobody says this.": 0,
		`href="#error-Gone"><span class="status s4">404</span> Gone`:        2,
		`href="#error-Other"><span class="status other">other</span> Other`: 1,
		`id="error-Gone"`: 1, `id="error-Made"`: 0,
	} {
		if got := strings.Count(shown, text); got != want {
			t.Errorf("%s is on the page %d times, want %d", text, got, want)
		}
	}
}

func TestCompressed(t *testing.T) {
	t.Parallel()
	h := handler(t, openapi.Document)
	for _, path := range []string{"/docs", "/docs/style.css"} {
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
