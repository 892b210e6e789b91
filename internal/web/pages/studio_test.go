package pages_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/person"
	chromium "atelier/internal/testkit/browser"
	"atelier/internal/testkit/watch"
	"atelier/internal/web/pages"
	"atelier/internal/web/studio"
)

// TestStudioNeedsASession requests every page of the studio with and without a
// session. Nobody gets a script before signing in, and everybody returns to the
// page that they asked for.
func TestStudioNeedsASession(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		in := s.signedIn(s.person("anna@studio.example"))
		out := s.browser()
		for _, pattern := range studio.Paths {
			path := fill(pattern, "")
			for _, query := range []string{"", "?team=abc&q=red+fox"} {
				a := out.get(path + query)
				want := "/signin"
				if path+query != "/" {
					want += "?next=" + url.QueryEscape(strings.ReplaceAll(path+query, "?team=abc&q=red+fox", "?q=red+fox&team=abc"))
				}
				a.leads(want)
				if a.body != "" {
					t.Errorf("%s sends %q to nobody", path, a.body)
				}
			}

			a := in.get(path)
			if a.status != 200 || !strings.Contains(a.body, `<script type="module"`) || !strings.Contains(a.body, "<noscript>") {
				t.Errorf("%s = %d %s", path, a.status, a.body)
			}
			for name, want := range map[string]string{
				"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Cross-Origin-Opener-Policy": "same-origin",
				"Referrer-Policy": "same-origin", "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=()", "Content-Type": "text/html; charset=utf-8",
			} {
				if got := a.header.Values(name); len(got) != 1 || got[0] != want {
					t.Errorf("%s: %s = %q, want %q", path, name, got, want)
				}
			}
			policy := a.header.Values("Content-Security-Policy")
			if len(policy) != 1 || !strings.Contains(policy[0], "connect-src 'self'; ") || !strings.Contains(policy[0], "trusted-types 'none'") || strings.Contains(policy[0], "unsafe") {
				t.Errorf("%s: policy = %q", path, policy)
			}

			in.header = http.Header{"If-None-Match": {a.header.Get("ETag")}}
			if a := in.get(path); a.status != 304 || a.body != "" {
				t.Errorf("%s again = %d", path, a.status)
			}
			in.header = http.Header{}
			if a := in.post(path, nil); a.status != 405 || a.header.Get("Allow") != "GET, HEAD" {
				t.Errorf("POST %s = %d", path, a.status)
			}
		}
		in.submit("/account", "/signout")
		in.get("/library").leads("/signin?next=%2Flibrary")
	})
}

func TestStudioFilesNeedNoSession(t *testing.T) {
	t.Parallel()
	s := build(t, "sqlite", nil, nil)
	out := s.browser()
	for _, path := range []string{"/favicon.ico", "/icons/atelier.svg", "/manifest.webmanifest", "/styles/tokens.css", "/styles/fonts.css", "/styles/fonts/studio-sans.woff2", "/styles/fonts/studio-serif.woff2"} {
		if a := out.get(path); a.status != 200 || a.body == "" || a.header.Get("Set-Cookie") != "" {
			t.Errorf("%s = %d", path, a.status)
		}
	}
	for _, path := range []string{"/assets/none.js", "/assets/", "/icons/", "/icons/none.png", "/index.html", "/styles/", "/styles/fonts/"} {
		out.get(path).want(404, "Page not found")
	}
}

// TestSignOutClearsTheBrowser ends a session in every way that the pages offer.
// What the studio stored in the browser goes with it.
func TestSignOutClearsTheBrowser(t *testing.T) {
	t.Parallel()
	s := build(t, "sqlite", nil, nil)
	anna := s.person("anna@studio.example")
	check := func(name string, a *answer) {
		t.Helper()
		if got := a.header.Get("Clear-Site-Data"); a.status != 303 || got != `"cache", "storage"` {
			t.Errorf("%s = %d, clears %q", name, a.status, got)
		}
	}
	check("sign out", s.signedIn(anna).submit("/account", "/signout"))
	check("sign out to another page", s.signedIn(anna).submit("/account", "/signout", "next", "/device?code=x"))
	b := s.signedIn(anna)
	check("sign out everywhere", b.submit("/devices", "/devices/signout-everywhere"))
	b = s.signedIn(anna)
	check("this browser in the list", b.submit("/devices", "/devices/signout"))
	check("delete the account", s.signedIn(anna).submit("/account/delete", "/account/delete", "email", anna.Email))
	if a := s.browser().get("/signin"); a.header.Get("Clear-Site-Data") != "" {
		t.Error("the sign-in page clears the browser")
	}
}

// TestStudioDestinations checks which addresses of the studio a sign-in may
// lead to.
func TestStudioDestinations(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]string{
		"/":                           "/",
		"/?team=x":                    "/?team=x",
		"/?next=//evil.example":       "/?next=%2F%2Fevil.example",
		"/library?q=red fox":          "/library?q=red+fox",
		"/library/result%3Aabc":       "/library/result%3Aabc",
		"/people/abc/roles?x=1":       "/people/abc/roles?x=1",
		"/welcome":                    "/welcome",
		"/library?a=%0d%0aLocation:x": "/library?a=%0D%0ALocation%3Ax",
	} {
		if got := pages.Destination(next); got != want {
			t.Errorf("next %q leads to %q, want %q", next, got, want)
		}
	}
	for _, next := range []string{
		"/library/", "/library//evil.example", "/library/..//evil.example", "/library/../..", "/library/%2e%2e/%2e%2e", "/library/\\evil.example", "/library\\..\\evil.example",
		"/create//evil.example", "/create/@evil.example", "/create/javascript:alert(1)", "/you/%2F%2Fevil.example", "/boards/a\r\nLocation: https://evil.example", "/boards/a\tb",
		"//library", "///library", "\\/library", "/\\library", "/.//library", "/%2flibrary", "https:/library", "https://evil.example/library", "//evil.example/library", "/library;@evil.example",
		"/library@evil.example", "/library%00", "/library#//evil.example", "/assets/index.js", "/sw.js", "/operator/..", "/people/a/..", "/welcome/..//evil.example",
	} {
		if got := pages.Destination(next); got != "/" {
			t.Errorf("next %q leads to %q", next, got)
		}
	}
}

// TestWithoutScripts uses a browser that runs no scripts: signing in, approving
// a device and creating a token work, and the studio says what it needs.
func TestWithoutScripts(t *testing.T) {
	t.Parallel()
	s := build(t, dbtest.Engines[0], nil, nil)
	anna := s.person("anna@studio.example")
	b := chromium.Open(t)
	b.NoScript()

	b.Goto(s.url + "/library")
	if want := s.url + "/signin?next=%2Flibrary"; b.URL() != want {
		t.Fatalf("the studio led to %s, want %s", b.URL(), want)
	}
	b.Fill("[name=email]", anna.Email)
	b.Fill("[name=password]", password)
	b.Click("button.main")
	if want := s.url + "/library"; b.URL() != want {
		t.Fatalf("the sign-in led to %s, want %s", b.URL(), want)
	}
	if text := b.Text(); !strings.Contains(text, "JavaScript") {
		t.Errorf("without scripts the studio shows %q", text)
	}
	look(t, b, "studio-without-scripts")
	b.Click(`noscript a[href="/tokens"]`)
	b.Fill("[name=name]", "laptop")
	b.Click("button.main")
	if secret := b.Eval(`document.querySelector("#secret").textContent`); !s.works(secret) {
		t.Errorf("the new token is %q", secret)
	}

	codes := s.start("blender", "blender/4.5", "198.51.100.7")
	b.Goto(s.url + "/device")
	b.Fill("[name=code]", codes.UserCode)
	b.Click("button.main")
	b.Click("[value=approve]")
	if text := b.Text(); !strings.Contains(text, "Approved") {
		t.Errorf("the approval led to %q", text)
	}
	if _, err := s.poll(codes); err != nil {
		t.Errorf("the device is not signed in: %v", err)
	}

	b.Click("header button")
	if want := s.url + "/signin?done=signed-out"; b.URL() != want {
		t.Errorf("signing out led to %s, want %s", b.URL(), want)
	}
	b.Goto(s.url + "/")
	if want := s.url + "/signin"; b.URL() != want {
		t.Errorf("after signing out the studio led to %s, want %s", b.URL(), want)
	}
	complaints(t, b)
}

// TestSetupLeadsToWelcome counts the clicks from the printed link to the
// studio: one.
func TestSetupLeadsToWelcome(t *testing.T) {
	t.Parallel()
	s := build(t, dbtest.Engines[0], nil, nil)
	var setup string
	s.write(func(ctx context.Context, tx *sqldb.Tx) (err error) {
		setup, err = person.CreateSetupToken(ctx, tx)
		return err
	})
	b := chromium.Open(t)
	b.NoScript() // the studio's script would call the API, which this site lacks
	b.Goto(s.url + "/setup?token=" + setup)
	b.Fill("[name=email]", "anna@studio.example")
	b.Fill("[name=password]", password)
	b.Click("button.main")
	if want := s.url + "/welcome"; b.URL() != want || b.Status() != 200 {
		t.Errorf("the form led to %s, status %d, want %s", b.URL(), b.Status(), want)
	}
}

// TestFocusIsVisible walks through the sign-in page with the Tab key.
func TestFocusIsVisible(t *testing.T) {
	t.Parallel()
	s := build(t, dbtest.Engines[0], nil, nil)
	b := chromium.Open(t)
	for _, scheme := range []string{"light", "dark"} {
		b.ColorScheme(scheme)
		b.Goto(s.url + "/signin")
		watch.Until(t, "the focus on the first field", func() bool { return b.Focused() == "input#email[name=email]" })
		for i, want := range []string{"input#email[name=email]", "input#password[name=password]", "button", "a", "a"} {
			if i > 0 {
				b.Press("Tab")
			}
			if got := b.Focused(); got != want {
				t.Errorf("focus = %s, want %s", got, want)
			}
			const outline = `(s => s.outlineStyle + " " + s.outlineWidth)(getComputedStyle(document.activeElement))`
			if got := b.Eval(outline); got != "solid 2px" {
				t.Errorf("%s, %s: outline = %s", scheme, want, got)
			}
		}
	}
}
