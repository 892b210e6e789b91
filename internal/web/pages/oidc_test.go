package pages_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/oidc"
	"atelier/internal/people/oidc/oidctest"
)

// withProvider runs a test against a site whose people can sign in elsewhere.
func withProvider(t *testing.T, fn func(t *testing.T, s *site, p *oidctest.Server)) {
	t.Helper()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			var p *oidctest.Server
			s := build(t, engine, nil, func(appURL string) *oidc.Provider {
				p = oidctest.Start(t, appURL+"/oidc/callback")
				return oidc.New(oidc.Settings{
					Name: "Studio ID", Issuer: p.Issuer, ClientID: p.ClientID, ClientSecret: p.ClientSecret, RedirectURL: appURL + "/oidc/callback", Now: time.Now,
				})
			})
			fn(t, s, p)
		})
	}
}

// away sends the browser to the provider and gives where it comes back to.
func (b *browser) away(p *oidctest.Server, start, login string) string {
	b.t.Helper()
	a := b.get(start)
	if a.status != 303 || !strings.HasPrefix(a.header.Get("Location"), p.Issuer) {
		b.t.Fatalf("start = %d to %q: %s", a.status, a.header.Get("Location"), a.body)
	}
	return strings.TrimPrefix(p.SignIn(b.t, a.header.Get("Location"), login), b.url)
}

// finish signs in at the provider and comes back.
func (b *browser) finish(p *oidctest.Server, start, login string) *answer {
	b.t.Helper()
	return b.get(b.away(p, start, login))
}

func TestSignInWithAProvider(t *testing.T) {
	t.Parallel()
	withProvider(t, func(t *testing.T, s *site, p *oidctest.Server) {
		b := s.browser()
		page := b.get("/signin?next=/devices").want(200, "Sign in with Studio ID")
		if !strings.Contains(page.body, `href="/oidc/start?next=%2fdevices"`) {
			t.Errorf("page = %s", page.body)
		}
		back := b.away(p, "/oidc/start?next=/devices", "anna@studio.example")
		another := s.browser()
		another.get(back).want(403, "started in another browser")
		a := b.get(back)
		a.leads("/devices")
		if set := a.header.Values("Set-Cookie"); len(set) != 3 || !strings.HasPrefix(set[0], "atelier_oidc=; Path=/oidc; Max-Age=0") || !strings.HasPrefix(set[1], sessionCookie+"=") ||
			!strings.HasPrefix(set[2], "atelier_known=") {
			t.Errorf("cookies = %q", set)
		}
		b.get("/account").want(200, "anna@studio.example", "Your address is verified.", "Choose a password")
		b.get(back).want(403) // what it took along works once

		b.get("/password").want(200, "Choose a password")
		b.submit("/password", "/password", "password", "a fine password").leads("/account?done=password")
		s.browser().signIn("anna@studio.example", "a fine password").leads("/")
	})
}

func TestProviderAnswersThatDoNotCount(t *testing.T) {
	t.Parallel()
	withProvider(t, func(t *testing.T, s *site, p *oidctest.Server) {
		b := s.browser()
		start := b.get("/oidc/start?next=//evil.example")
		set := start.header.Get("Set-Cookie")
		if !strings.HasPrefix(set, "atelier_oidc=") || !strings.HasSuffix(set, "; Path=/oidc; Max-Age=600; HttpOnly; SameSite=Lax") || strings.Contains(set, "evil") {
			t.Errorf("cookie = %q", set)
		}
		refused := strings.TrimPrefix(p.Refuse(t, start.header.Get("Location")), s.url)
		if !strings.Contains(refused, "error=access_denied") {
			t.Fatalf("refused = %s", refused)
		}
		if a := b.get(refused+"&error_description=Call+0900").want(403, "Studio ID did not sign you in."); strings.Contains(a.body, "0900") {
			t.Error("the page has words of whoever made the link")
		}

		s.browser().finish(p, "/oidc/start?next=//evil.example", "eve@studio.example").leads("/")

		back := b.away(p, "/oidc/start", "anna@studio.example")
		u, _ := url.Parse(back)
		q := u.Query()
		q.Set("state", "made-up")
		b.get("/oidc/callback?"+q.Encode()).want(403, "was not started in this browser")

		back = b.away(p, "/oidc/start", "anna@studio.example")
		s.clock.pass(10 * time.Minute)
		b.get(back).want(403, "took too long")
		s.clock.pass(-10 * time.Minute)

		back = b.away(p, "/oidc/start", "anna@studio.example")
		here, _ := url.Parse(s.url + "/oidc")
		sealed := b.client.Jar.Cookies(here)
		for _, c := range sealed {
			if c.Name == "atelier_oidc" {
				b.client.Jar.SetCookies(here, []*http.Cookie{{Name: c.Name, Value: c.Value[1:], Path: "/oidc"}})
			}
		}
		b.get(back).want(403, "started in another browser")
		if n := s.count("person"); n != 1 || b.cookie(sessionCookie) != "" {
			t.Errorf("people = %d", n)
		}
	})
}

func TestAProviderThatIsAway(t *testing.T) {
	t.Parallel()
	withProvider(t, func(t *testing.T, s *site, p *oidctest.Server) {
		p.Stop(t)
		a := s.browser().get("/oidc/start").want(503, "Studio ID does not respond.")
		if a.header.Get("Retry-After") != "2" || a.header.Get("Set-Cookie") != "" {
			t.Errorf("headers = %v", a.header)
		}
	})
}

func TestWithoutAProvider(t *testing.T) {
	t.Parallel()
	s := build(t, "sqlite", nil, nil)
	b := s.browser()
	b.get("/oidc/start").want(404)
	b.get("/oidc/callback?state=x&code=y").want(404)
	if a := b.get("/signin"); strings.Contains(a.body, "oidc") {
		t.Errorf("page = %s", a.body)
	}
}
