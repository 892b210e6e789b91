package pages_test

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/session"
	"atelier/internal/web/pages"
)

func TestEveryFormNeedsItsToken(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		anna := s.person("anna@studio.example")
		c, _ := s.company("Studio", "Team", company.RoleAdmin, anna)
		eve := s.person("eve@studio.example")
		forms := 0
		for _, rt := range pages.Table() {
			if rt.Method != "POST" {
				continue
			}
			forms++
			path := fill(rt.Path, c.ID)
			b, other := s.browser(), s.signedIn(eve)
			if rt.SignedIn {
				b = s.signedIn(anna)
			}
			for _, b := range []*browser{b, other} {
				b.get("/forgot") // its form is for visitors with or without a session
			}
			// A token is for one browser and one form.
			token := b.tokenOf(rt, path)
			foreign := other.tokenOf(rt, path)
			elsewhere := b.tokenOf(rt, path+"/")
			if token == "" || token == foreign || token == elsewhere {
				t.Fatalf("%s: tokens = %q, %q, %q", path, token, foreign, elsewhere)
			}
			before := s.state()
			values := url.Values{"email": {"eve@studio.example"}, "password": {password}, "id": {ids.New()}, "name": {"x"}}
			for what, token := range map[string]string{"no": "", "a foreign": foreign, "another form's": elsewhere, "a cut": token[1:], "a made-up": strings.Repeat("A", len(token))} {
				values.Set("form_token", token)
				if token == "" {
					values.Del("form_token")
				}
				if a := b.post(path, values); a.status != 403 || !strings.Contains(a.text(), "This form is out of date") {
					t.Errorf("%s with %s token = %d %s", path, what, a.status, a.text())
				}
			}
			// The right token in a form that another site submitted.
			values.Set("form_token", token)
			for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example", "origin": "null"} {
				b.header = http.Header{}
				b.header.Set(name, value)
				if a := b.post(path, values); a.status != 403 || !strings.Contains(a.text(), "from another site") {
					t.Errorf("%s with %s %s = %d %s", path, name, value, a.status, a.text())
				}
			}
			b.header = http.Header{}
			if now := s.state(); now != before {
				t.Errorf("%s did something:\n%s\n%s", path, before, now)
			}
			// A browser without cookies has no token at all.
			values.Set("form_token", pages.Token(s.key, "", path))
			if a := s.browser().post(path, values); a.status != 403 && !rt.SignedIn {
				t.Errorf("%s without cookies = %d %s", path, a.status, a.text())
			}
			values.Set("form_token", token)
			// The same form from this site with its own token is not refused as
			// a forgery.
			b.header = http.Header{"Sec-Fetch-Site": {"same-origin"}, "Origin": {s.url}}
			if a := b.post(path, values); strings.Contains(a.text(), "This form is out of date") || strings.Contains(a.text(), "from another site") {
				t.Errorf("%s with its token = %d %s", path, a.status, a.text())
			}
			if rt.SignedIn {
				a := s.browser().post(path, values)
				if a.status != 303 || !strings.HasPrefix(a.header.Get("Location"), "/signin") {
					t.Errorf("%s signed out = %d %s", path, a.status, a.header.Get("Location"))
				}
			}
		}
		if forms < 20 {
			t.Errorf("forms = %d", forms)
		}
	})
}

// TestStudioSignsOut signs out as the studio does: with its header in place of a
// form token, which no other form accepts and no other site can send.
func TestStudioSignsOut(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		anna := s.person("anna@studio.example")
		b := s.signedIn(anna)
		studio := http.Header{session.StudioHeader: {"1"}}

		for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
			b.header = studio.Clone()
			b.header.Set(name, value)
			if a := b.post("/signout", nil); a.status != 403 {
				t.Errorf("signing out with %s %s = %d", name, value, a.status)
			}
		}
		for _, path := range []string{"/devices/signout-everywhere", "/tokens", "/account/delete"} {
			b.header = studio.Clone()
			if a := b.post(path, nil); a.status != 403 || !strings.Contains(a.text(), "This form is out of date") {
				t.Errorf("%s with the studio's header = %d %s", path, a.status, a.text())
			}
		}

		b.header = studio.Clone()
		a := b.post("/signout", nil)
		if a.status != 303 || a.header.Get("Clear-Site-Data") == "" {
			t.Errorf("signing out = %d %v", a.status, a.header)
		}
		b.get("/account").leads("/signin?next=%2Faccount")
	})
}

// tokenOf computes the token of a form as the pages do.
func (b *browser) tokenOf(rt pages.Entry, path string) string {
	b.t.Helper()
	secret := b.cookie(formCookie)
	if rt.SignedIn {
		secret = b.cookie(sessionCookie)
	}
	if len(secret) != 44 {
		b.t.Fatalf("%s: the browser has no secret", path)
	}
	return pages.Token(b.key, secret, path)
}

func TestPlantedFormCookiesAreReplaced(t *testing.T) {
	t.Parallel()
	s := build(t, "sqlite", nil, nil)
	for _, planted := range []string{"x", strings.Repeat("-", 44), strings.Repeat("a", 45)} {
		b := s.browser()
		b.plant(formCookie, planted)
		page := b.get("/forgot")
		if c := b.cookie(formCookie); len(c) != 44 || c == planted {
			t.Errorf("cookie = %q", c)
		}
		b.send(page, "/forgot", "email", "anna@studio.example").want(200)
	}
}

func TestTrustedOrigin(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		s.person("anna@studio.example")
		b := s.browser()
		page := b.get("/signin")
		b.header = http.Header{"Origin": {s.url}, "Sec-Fetch-Site": {"cross-site"}} // through a proxy that tells another host
		b.send(page, "/signin", "email", "anna@studio.example", "password", password).leads("/")
	})
}

func TestBodiesAreForms(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		b := s.browser()
		form := b.get("/signin").form("/signin")
		form.Set("email", "anna@studio.example")
		good := form.Encode()
		tests := []struct {
			name, kind, body string
			status           int
			says             string
		}{
			{"JSON", "application/json", `{"email":"a@b.c"}`, 415, "only forms"},
			{"plain text", "text/plain", good, 415, "only forms"},
			{"parts", "multipart/form-data; boundary=x", "--x--", 415, "only forms"},
			{"no type", "", good, 415, "only forms"},
			{"too much", formType, good + "&x=" + strings.Repeat("x", 16<<10), 413, "too large"},
			{"not encoded", formType, good + "&x=%zz", 400, "cannot be read"},
			{"semicolons", formType, good + ";x=y", 400, "cannot be read"},
			{"a zero byte", formType, good + "&x=%00", 400, "characters that are not allowed"},
			{"a line break", formType, good + "&x=a%0D%0Ab", 400, "characters that are not allowed"},
			{"not UTF-8", formType, good + "&x=%ff", 400, "characters that are not allowed"},
			{"a name that is not text", formType, good + "&%00=x", 400, "characters that are not allowed"},
			{"a character set", formType + "; charset=UTF-8", good, 403, "The address or the password is wrong."},
		}
		for _, tt := range tests {
			if a := b.do("POST", "/signin", tt.kind, tt.body); a.status != tt.status || !strings.Contains(a.text(), tt.says) {
				t.Errorf("%s = %d %s, want %d %s", tt.name, a.status, a.text(), tt.status, tt.says)
			}
		}
	})
}

func TestUnknownPathsAndMethods(t *testing.T) {
	t.Parallel()
	s := build(t, "sqlite", nil, nil)
	b := s.browser()
	for _, path := range []string{"/nothing", "/account/", "/signin/x", "/admin", "/debug/pprof/", "/companies/x", "/.git/config", "/style.css/", "/favicon.png"} {
		b.get(path).want(404, "Page not found")
	}
	for _, tt := range []struct{ method, path, allow string }{
		{"POST", "/account", "GET, HEAD"}, {"GET", "/signout", "POST"}, {"PUT", "/signin", "GET, HEAD, POST"}, {"DELETE", "/tokens", "GET, HEAD, POST"},
		{"PATCH", "/devices/revoke", "POST"}, {"OPTIONS", "/device", "GET, HEAD, POST"}, {"TRACE", "/", "GET, HEAD"},
	} {
		if a := b.do(tt.method, tt.path, "", "").want(405, "Method not allowed"); a.header.Get("Allow") != tt.allow {
			t.Errorf("%s %s allows %q, want %q", tt.method, tt.path, a.header.Get("Allow"), tt.allow)
		}
	}
	css := b.get("/style.css")
	if css.status != 200 || css.header.Get("Content-Type") != "text/css; charset=utf-8" || css.header.Get("Cache-Control") != "no-cache" {
		t.Errorf("style = %d %v", css.status, css.header)
	}
	// Styles load only files of this site.
	loads := regexp.MustCompile(`@import|url\(.*?\)`)
	for path, want := range map[string][]string{
		"/style.css":         {"url(/wall.jpg)"},
		"/styles/tokens.css": nil,
		"/styles/fonts.css":  {`url("./fonts/studio-sans.woff2")`, `url("./fonts/studio-serif.woff2")`},
	} {
		if got := loads.FindAllString(b.get(path).body, -1); !slices.Equal(got, want) {
			t.Errorf("%s loads %q, want %q", path, got, want)
		}
	}
	b.header.Set("If-None-Match", css.header.Get("ETag"))
	if again := b.get("/style.css"); again.status != 304 {
		t.Errorf("the same style again = %d", again.status)
	}
}

func TestMetricsHaveFewRoutes(t *testing.T) {
	t.Parallel()
	s := build(t, "sqlite", nil, nil)
	b := s.signedIn(s.person("anna@studio.example"))
	known := map[string]bool{"unknown": true}
	for _, rt := range pages.Table() {
		known[rt.Path] = true
		b.do(rt.Method, fill(rt.Path, ids.New()), "", "")
	}
	b.get("/" + ids.New())
	seen := map[string]bool{}
	families, err := s.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "route" {
					seen[l.GetValue()] = true
				}
			}
		}
	}
	if !maps.Equal(seen, known) {
		t.Errorf("routes = %v, want %v", seen, known)
	}
}

func TestDestinations(t *testing.T) {
	t.Parallel()
	id := ids.New()
	good := map[string]string{
		"/account": "/account", "/device": "/device", "/devices": "/devices", "/tokens": "/tokens",
		"/device?code=BCDF-GHJK":               "/device?code=BCDF-GHJK",
		"/device?code=BCDF-GHJK&intent=signup": "/device?code=BCDF-GHJK&intent=signup",
		"/device?code=//evil.example":          "/device?code=%2F%2Fevil.example",
		"/device?code=a%0d%0aSet-Cookie:x":     "/device?code=a%0D%0ASet-Cookie%3Ax",
		"/device?x#//evil.example":             "/device?x%23%2F%2Fevil.example=",
		"/invitation?token=abc":                "/invitation?token=abc",
		"/companies/" + id + "/tokens":         "/companies/" + id + "/tokens",
		"/tokens?after=x&done=deleted":         "/tokens?after=x&done=deleted",
	}
	for next, want := range good {
		if got := pages.Destination(next); got != want {
			t.Errorf("next %q leads to %q, want %q", next, got, want)
		}
	}
	if len(payloads) < 60 {
		t.Errorf("payloads = %d", len(payloads))
	}
	for _, next := range payloads {
		if got := pages.Destination(next); got != "/" {
			t.Errorf("next %q leads to %q", next, got)
		}
	}
}

// payloads are values of next that attackers use to redirect browsers to
// another site.
var payloads = []string{
	"", "/", "//", "///", "//evil.example", "///evil.example", "////evil.example", "/\\evil.example", "\\\\evil.example", "\\/evil.example",
	"/\\/evil.example", "\\evil.example", "https:evil.example", "https:/evil.example", "https://evil.example", "https:///evil.example",
	"http://evil.example/device", "HTTPS://evil.example", "hTtP:evil.example", "javascript:alert(1)", "JavaScript:alert(1)", "java\nscript:alert(1)",
	"data:text/html,<script>alert(1)</script>", "vbscript:x", "file:///etc/passwd", "ftp://evil.example", "mailto:eve@evil.example", "blob:x",
	"%09//evil.example", "\t//evil.example", "\n//evil.example", "\r\n//evil.example", " //evil.example", "\x00//evil.example", "/\t/evil.example", "/\n/evil.example",
	"/%09/evil.example", "/%2f/evil.example", "/%5cevil.example", "%2f%2fevil.example", "%5c%5cevil.example", "/%2e%2e//evil.example",
	"/device/../..//evil.example", "/device/..//evil.example", "/device/../../evil.example", "/device//evil.example", "/device@evil.example", "@evil.example",
	"/device:80", "/device\\evil.example", "/device;@evil.example", "/device\r\nLocation: https://evil.example", "/device\nSet-Cookie: a=b", "/device%0d%0aLocation:x",
	"/device/", "/Device", "device", "./device", "../device", "?next=//evil.example", "#//evil.example", "/device#//evil.example", "/device.evil.example",
	"/accountx", "/signout", "/signin", "/oidc/start", "/api/v2/tools", "/companies/x/tokens", "/companies//tokens", "/companies/../tokens",
	"/companies/" + strings.Repeat("a", 20) + "/../tokens", "/companies/" + strings.Repeat("a", 20) + "/tokens/", "/companies/evil.example/aaaaaaaa/tokens",
	"/device?%zz", "/device?a;b", "evil.example", "//evil.example@/device", "//evil.example/device", "https://app.example@evil.example", "〱evil.example", "/〵evil.example", "。evil.example",
}

func TestNextNeverLeadsAway(t *testing.T) {
	t.Parallel()
	s := build(t, "sqlite", nil, nil)
	b := s.signedIn(s.person("anna@studio.example"))
	out := s.browser()
	for _, next := range payloads {
		for _, page := range []string{"/signin", "/signup"} {
			b.get(page + "?next=" + url.QueryEscape(next)).leads("/")
		}
		if got := out.get("/signin?next=" + url.QueryEscape(next)).form("/signin").Get("next"); got != "/" {
			t.Errorf("the form has next %q of %q", got, next)
		}
	}
	for _, next := range []string{"//evil.example", "https://evil.example", "/device\r\nX: y"} {
		form := out.get("/signin").form("/signin")
		form.Set("email", "anna@studio.example")
		form.Set("password", password)
		form.Set("next", next)
		a := out.post("/signin", form)
		if to := a.header.Get("Location"); a.status == 303 && to != "/" || a.status != 303 && a.status != 400 {
			t.Errorf("next %q = %d %q", next, a.status, to)
		}
		out = s.browser()
	}
	form := out.get("/signin?next=/device?code%3DBCDF-GHJK").form("/signin")
	form.Set("email", "anna@studio.example")
	form.Set("password", password)
	out.post("/signin", form).leads("/device?code=BCDF-GHJK")
}

func TestHostHeadersChangeNothing(t *testing.T) {
	t.Parallel()
	s := build(t, "sqlite", nil, nil)
	s.person("anna@studio.example")
	b := s.browser()
	b.header = http.Header{"X-Forwarded-Host": {"evil.example"}, "X-Forwarded-Proto": {"https"}, "Forwarded": {"host=evil.example"}, "X-Host": {"evil.example"}}
	b.get("/account").leads("/signin?next=%2Faccount")
	b.submit("/forgot", "/forgot", "email", "anna@studio.example").want(200)
	if mails := s.mails(); strings.Contains(mails, "evil.example") || !strings.Contains(mails, s.url+"/reset?token=") {
		t.Errorf("mail = %s", mails)
	}
}

func TestAccidentsAreNotShown(t *testing.T) {
	t.Parallel()
	s := build(t, "sqlite", nil, nil)
	b := s.signedIn(s.person("anna@studio.example"))
	for _, table := range []string{"person_notice", "web_session"} {
		s.write(func(ctx context.Context, tx *sqldb.Tx) error { _, err := tx.Exec(ctx, "DROP TABLE "+table); return err })
		a := b.get("/account").want(500, "The request failed because of an internal error. Quote", "when you ask for help.")
		if strings.Contains(a.body, table) || !strings.Contains(s.log.String(), "no such table: "+table) {
			t.Errorf("page = %s, log = %s", a.body, s.log)
		}
	}
}

func TestWordsForPeople(t *testing.T) {
	t.Parallel()
	check := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	check(pages.Words(1e9), "1 second")
	check(pages.Words(59e9), "59 seconds")
	check(pages.Words(119e9), "119 seconds")
	check(pages.Words(120e9), "2 minutes")
	check(pages.Words(119*60e9), "119 minutes")
	check(pages.Words(120*60e9), "2 hours")
	check(pages.Words(47*3600e9), "47 hours")
	check(pages.Words(48*3600e9), "2 days")
	check(pages.WaitFor(1), "1 second")
	check(pages.WaitFor(121e9), "3 minutes")
	check(pages.WaitFor(300e9), "5 minutes")
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1234: "-1,234", -123: "-123"} {
		check(pages.Amount(n), want)
	}
	for agent, want := range map[string]string{
		"": "Unknown browser", "curl/8.5": "curl/8.5",
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0":                                                                  "Firefox on Linux",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0":           "Edge on Windows",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1": "Safari on iPhone",
		"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36":                         "Chrome on Android",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36":                   "Chrome on Mac",
		"Firefox/1": "Firefox",
	} {
		check(pages.Browser(agent), want)
	}
}
