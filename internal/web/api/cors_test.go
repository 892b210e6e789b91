package api_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/testkit/browser"
	"atelier/internal/web/api"
	"atelier/internal/web/httpd"
)

// withOrigins serves the same installation for pages of origins.
func (s *service) withOrigins(origins ...string) *httptest.Server {
	s.t.Helper()
	parts := s.parts
	parts.Origins = origins
	h, err := api.New(parts)
	if err != nil {
		s.t.Fatal(err)
	}
	server := httptest.NewServer(httpd.New(h, httpd.Options{
		Log:     slog.New(slog.DiscardHandler),
		Metrics: prometheus.NewRegistry(),
		Health:  &httpd.Health{Now: time.Now},
		Now:     time.Now,
	}))
	s.t.Cleanup(server.Close)
	return server
}

// headers calls a server and gives the answer without its body.
func headers(t *testing.T, method, address string, header http.Header) *http.Response {
	t.Helper()
	r, err := http.NewRequest(method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res
}

// corsHeaders are those of an answer that let pages of others in.
func corsHeaders(res *http.Response) map[string]string {
	found := map[string]string{}
	for name := range res.Header {
		if strings.HasPrefix(name, "Access-Control-") {
			found[name] = res.Header.Get(name)
		}
	}
	return found
}

func TestPagesOfOrigins(t *testing.T) {
	t.Parallel()
	const app = "https://app.example"
	s := startService(t, dbtest.Open(t, dbtest.URL(t, "sqlite")), limits)
	server := s.withOrigins("http://localhost:3000", app)
	bearer := "Bearer " + s.token

	// Every answer says whether a page may read it: successes, errors, files.
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/api/v2/me", 200}, {"HEAD", "/api/v2/tools", 200}, {"GET", "/api/v2/openapi.json", 200}, {"GET", "/.well-known/jwks.json", 200},
		{"GET", "/api/v2/tools?limit=0", 400}, {"GET", "/api/v2/tools/nowhere", 404}, {"PUT", "/api/v2/tools", 405}, {"GET", "/api/v2/nothing", 404},
		{"GET", "/catalog/x.png", 404}, {"OPTIONS", "/api/v2/tools", 405},
	} {
		res := headers(t, c.method, server.URL+c.path, http.Header{"Authorization": {bearer}, "Origin": {app}})
		got := corsHeaders(res)
		if res.StatusCode != c.status || got["Access-Control-Allow-Origin"] != app || len(got) != 2 {
			t.Errorf("%s %s = %d %v, want %d for %s", c.method, c.path, res.StatusCode, got, c.status, app)
		}
		for _, name := range []string{"Retry-After", "RateLimit", "RateLimit-Policy", "X-Trace-Id", "ETag", "Idempotent-Replayed", "Location", "Content-Disposition"} {
			if !slices.Contains(strings.Split(got["Access-Control-Expose-Headers"], ", "), name) {
				t.Errorf("%s %s does not expose %s", c.method, c.path, name)
			}
		}
		if !slices.Contains(res.Header.Values("Vary"), "Origin") {
			t.Errorf("%s %s varies by %v, want Origin too", c.method, c.path, res.Header.Values("Vary"))
		}
	}
	if res := headers(t, "GET", server.URL+"/api/v2/me", http.Header{"Origin": {app}}); res.StatusCode != 401 || res.Header.Get("Access-Control-Allow-Origin") != app {
		t.Errorf("without a token = %d %v", res.StatusCode, corsHeaders(res))
	}
	res := headers(t, "GET", server.URL+"/api/v2/me", http.Header{"Authorization": {bearer}, "Origin": {app}})
	if got := res.Header.Values("Vary"); !slices.Equal(got, []string{"Origin", "Authorization"}) {
		t.Errorf("Vary = %v", got)
	}

	// Nobody else gets any of it.
	for _, origin := range [][]string{
		{"https://app.example.evil"}, {"https://evilapp.example"}, {"http://app.example"}, {"https://APP.example"}, {"https://app.example:443"}, {"https://app.example/"},
		{"http://localhost:3001"}, {"null"}, {""}, {"*"}, {app, app}, {app + ", https://evil.example"}, nil,
	} {
		for _, method := range []string{"GET", "OPTIONS"} {
			h := http.Header{"Authorization": {bearer}, "Origin": origin}
			if method == "OPTIONS" {
				h.Set("Access-Control-Request-Method", "POST")
			}
			res := headers(t, method, server.URL+"/api/v2/me", h)
			want := map[string]int{"GET": 200, "OPTIONS": 405}[method]
			if got := corsHeaders(res); len(got) > 0 || res.StatusCode != want {
				t.Errorf("%s of %q = %d %v, want %d and nothing", method, origin, res.StatusCode, got, want)
			}
			if !slices.Contains(res.Header.Values("Vary"), "Origin") {
				t.Errorf("%s of %q does not vary by origin", method, origin)
			}
		}
	}

	// Where no origin is allowed nothing depends on it.
	res = headers(t, "GET", s.url+"/api/v2/me", http.Header{"Authorization": {bearer}, "Origin": {app}})
	if got := corsHeaders(res); len(got) > 0 || slices.Contains(res.Header.Values("Vary"), "Origin") {
		t.Errorf("without the setting: %v, Vary %v", got, res.Header.Values("Vary"))
	}
}

func TestPreflights(t *testing.T) {
	t.Parallel()
	const app = "https://app.example"
	s := startService(t, dbtest.Open(t, dbtest.URL(t, "sqlite")), limits)
	server := s.withOrigins(app)
	for path, methods := range map[string]string{
		"/api/v2/tools":              "GET, HEAD",
		"/api/v2/generate":           "POST",
		"/api/v2/uploads":            "GET, HEAD, POST",
		"/api/v2/library/x/favorite": "DELETE, PUT",
		"/catalog/x.png":             "GET, HEAD",
		"/api/v2/nothing":            "DELETE, GET, HEAD, PATCH, POST, PUT",
	} {
		res := headers(t, "OPTIONS", server.URL+path, http.Header{
			"Origin": {app}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"authorization,content-type,x-evil"},
		})
		got := corsHeaders(res)
		if res.StatusCode != 204 || got["Access-Control-Allow-Origin"] != app || got["Access-Control-Allow-Methods"] != methods || got["Access-Control-Max-Age"] != "7200" || len(got) != 4 {
			t.Errorf("%s = %d %v, want 204 for %s", path, res.StatusCode, got, methods)
		}
		allowed := strings.Split(got["Access-Control-Allow-Headers"], ", ")
		for _, name := range []string{"Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match", "Last-Event-ID", "Range", "X-Device-Id"} {
			if !slices.Contains(allowed, name) {
				t.Errorf("%s does not take %s", path, name)
			}
		}
		if slices.Contains(allowed, "x-evil") || slices.Contains(allowed, "*") {
			t.Errorf("%s takes %v", path, allowed)
		}
	}
}

// TestPagesInBrowser has a real browser call the API from pages of other sites.
func TestPagesInBrowser(t *testing.T) {
	t.Parallel()
	b := browser.Open(t)
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<title>app</title>")
	}))
	t.Cleanup(pages.Close)
	site := func(name, address string) string { return strings.Replace(address, "127.0.0.1", name+".test", 1) }

	m := newRunFixture(t, dbtest.Open(t, dbtest.URL(t, "sqlite")), limits, setHighLimits)
	m.work()
	record := m.done("", m.body("words", steps(raw([]byte("hello, page")))))
	server := m.withOrigins(site("app", pages.URL))
	home := site("api", server.URL)
	file := strings.Replace(*record.Outputs[0].URL, "https://atelier.example", home, 1)

	script := fmt.Sprintf(`(async () => {
		const home = %q, run = %q, file = %q, bearer = {Authorization: "Bearer " + %q};
		const ask = async (path, options) => {
			try {
				const r = await fetch(path.startsWith("http") ? path : home + path, options);
				return r.status + " " + (r.headers.get("X-Trace-Id") ? "traced " : "") + (await r.text());
			} catch (e) { return "refused" }
		};
		return JSON.stringify({
			me: await ask("/api/v2/me", {headers: bearer}),
			stranger: await ask("/api/v2/me"),
			cookies: await ask("/api/v2/me", {headers: bearer, credentials: "include"}),
			missing: await ask("/api/v2/uploads/nothing", {method: "DELETE", headers: bearer}),
			header: await ask("/api/v2/me", {headers: {...bearer, "X-Evil": "1"}}),
			events: await ask("/api/v2/generate/" + run + "/events", {headers: bearer}),
			file: await ask(file),
			part: await ask(file, {headers: {Range: "bytes=0-4"}}),
		});
	})()`, home, record.RequestID, file, m.token)
	from := func(name string) (said map[string]string) {
		t.Helper()
		b.Goto(site(name, pages.URL) + "/")
		if err := json.Unmarshal([]byte(b.Eval(script)), &said); err != nil {
			t.Fatal(err)
		}
		return said
	}

	said := from("app")
	for what, want := range map[string][]string{
		"me": {"200 traced ", "anna@example.com"}, "stranger": {"401 traced ", `"code"`}, "cookies": {"refused"}, "missing": {"404 traced ", `"NOT_FOUND"`},
		"header": {"refused"}, "events": {"200 traced ", "event: done"}, "file": {"200 traced ", "hello, page"}, "part": {"206 traced ", "hello"},
	} {
		for _, part := range want {
			if !strings.Contains(said[what], part) {
				t.Errorf("%s: %.300s, want %s", what, said[what], part)
			}
		}
	}
	for what, got := range from("other") {
		if got != "refused" {
			t.Errorf("a page of another origin reads %s: %.300s", what, got)
		}
	}
}
