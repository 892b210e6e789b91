package pages_test

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"atelier/internal/account"
	"atelier/internal/account/signup"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/person"
	"atelier/internal/web/pages"
)

func TestSignUp(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		b := s.browser()
		b.get("/").leads("/signin")
		b.get("/account").leads("/signin?next=%2Faccount")
		for _, bad := range []struct{ email, password, field string }{
			{"anna", "long enough", "email"}, {"anna@studio.example", "short", "password"}, {"", "long enough", "email"},
		} {
			a := b.submit("/signup", "/signup", "email", bad.email, "password", bad.password).want(400)
			in := a.element(bad.field)
			if attr(in, "aria-invalid") != "true" || attr(in, "aria-describedby") != bad.field+"-problem" || !has(in, "autofocus") || len(a.alerts()) != 1 {
				t.Errorf("%s of %v = %v, alerts = %q", bad.field, bad, in.Attr, a.alerts())
			}
			if attr(a.element("email"), "value") != bad.email || strings.Contains(a.body, bad.password) || !strings.Contains(a.body, "<title>Error: ") {
				t.Errorf("the form does not keep what was typed, or keeps the password: %s", a.body)
			}
		}
		if n := s.count("person"); n != 0 {
			t.Fatalf("people = %d after refused forms", n)
		}
		b.submit("/signup", "/signup", "email", "anna@studio.example", "password", password).leads("/")
		b.get("/account").want(200, "anna@studio.example", "Your address is not verified yet.", "1,234,567", "100 free tokens left this month.")
		b.get("/signup").leads("/")
		b.get("/signin?next=/devices").leads("/devices")

		other := s.browser()
		a := other.submit("/signup", "/signup", "email", "Anna@studio.example", "password", password).want(400, "An account with this e-mail address already exists.")
		if attr(a.element("email"), "aria-invalid") != "true" {
			t.Error("the address is not marked")
		}
	})
}

func TestSignUpIsNotForAll(t *testing.T) {
	t.Parallel()
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		each(t, func(c *account.Settings) { c.Signup = signup.Closed }, func(t *testing.T, s *site) {
			b := s.browser()
			a := b.get("/signup?next=/devices").want(200, "Only the operator of this service creates accounts.")
			if strings.Contains(a.body, "<form") || !strings.Contains(a.body, `href="/signin?next=%2fdevices"`) {
				t.Errorf("page = %s", a.body)
			}
			if a := b.get("/signin").want(200); strings.Contains(a.body, "/signup") {
				t.Error("the sign-in page leads to the sign-up")
			}
		})
	})
	t.Run("by invitation", func(t *testing.T) {
		t.Parallel()
		each(t, func(c *account.Settings) { c.Signup = signup.ByInvitation }, func(t *testing.T, s *site) {
			b := s.browser()
			b.get("/signup").want(200, "Signing up requires an invitation.")
			b.submit("/signup?invitation=made-up", "/signup", "email", "anna@studio.example", "password", password).want(404, "This invitation does not exist or is no longer valid.")
			without := []string{"invitation", "", "email", "anna@studio.example", "password", password}
			b.submit("/signup?invitation=made-up", "/signup", without...).want(403, "Signing up requires an invitation.")
			if n := s.count("person"); n != 0 {
				t.Errorf("people = %d", n)
			}
		})
	})
	t.Run("only with a verified address", func(t *testing.T) {
		t.Parallel()
		each(t, func(c *account.Settings) { c.RequireVerified = true }, func(t *testing.T, s *site) {
			b := s.browser()
			first := b.submit("/signup", "/signup", "email", "anna@studio.example", "password", password).want(200, "We sent a link to anna@studio.example.")
			second := b.submit("/signup", "/signup", "email", "anna@studio.example", "password", "another password").want(200)
			if first.body != second.body || b.cookie(sessionCookie) != "" {
				t.Errorf("the answers tell whether somebody has the address: %s %s", first.body, second.body)
			}
		})
	})
}

func TestSignInAndOut(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		s.person("anna@studio.example")
		b := s.browser()
		b.plant(sessionCookie, strings.Repeat("a", 44))
		b.get("/account").leads("/signin?next=%2Faccount") // what somebody planted is nobody's

		wrong := b.signIn("anna@studio.example", "wrong password").want(403, "The address or the password is wrong.")
		if attr(wrong.element("email"), "value") != "anna@studio.example" || len(wrong.alerts()) != 1 {
			t.Errorf("page = %s", wrong.body)
		}
		unknown := b.signIn("nobody@studio.example", "wrong password").want(403)
		if strings.ReplaceAll(unknown.body, "nobody@", "anna@") != wrong.body {
			t.Errorf("an unknown person and a wrong password differ:\n%s\n%s", unknown.body, wrong.body)
		}
		for name := range wrong.header {
			if name != "X-Trace-Id" && name != "Date" && name != "Content-Length" && wrong.header.Get(name) != unknown.header.Get(name) {
				t.Errorf("header %s differs: %q, %q", name, wrong.header.Get(name), unknown.header.Get(name))
			}
		}
		b.signIn("not an address", "wrong password").want(403, "The address or the password is wrong.")
		b.signIn(strings.Repeat("a", 600)+"@studio.example", "wrong password").want(403, "The address or the password is wrong.")

		a := b.signIn("ANNA@studio.example", password)
		a.leads("/")
		first := b.cookie(sessionCookie)
		if len(first) != 44 || first == strings.Repeat("a", 44) {
			t.Fatalf("session = %q", first)
		}
		set := a.header.Get("Set-Cookie")
		if want := sessionCookie + "=" + first + "; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax"; set != want {
			t.Errorf("cookie = %q, want %q", set, want)
		}
		b.get("/account").want(200, "anna@studio.example")

		// Signing in again begins a new session, and the old one is over.
		page := s.browser()
		form := page.get("/signin")
		page.plant(sessionCookie, first)
		page.send(form, "/signin", "email", "anna@studio.example", "password", password).leads("/")
		if second := page.cookie(sessionCookie); second == first || len(second) != 44 {
			t.Errorf("second session = %q, first %q", second, first)
		}
		b.get("/account").leads("/signin?next=%2Faccount")

		page.submit("/account", "/signout").leads("/signin?done=signed-out")
		page.get("/signin?done=signed-out").want(200, "You are signed out.")
		if c := page.cookie(sessionCookie); c != "" {
			t.Errorf("the cookie is still there: %q", c)
		}
		if n := s.count("web_session"); n != 0 {
			t.Errorf("sessions = %d", n)
		}
	})
}

func TestAStolenCookieDiesWithTheSignOut(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		b := s.signedIn(s.person("anna@studio.example"))
		thief := s.browser()
		thief.plant(sessionCookie, b.cookie(sessionCookie))
		thief.get("/account").want(200)
		b.submit("/devices", "/signout").leads("/signin?done=signed-out")
		thief.get("/account").leads("/signin?next=%2Faccount")
	})
}

func TestGuessingIsLimited(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		s.person("anna@studio.example")
		b := s.browser()
		for range 10 {
			b.signIn("anna@studio.example", "wrong password").want(403)
		}
		a := b.signIn("anna@studio.example", "wrong password").want(429, "Too many requests", "Too many wrong passwords were entered from your network.", "You can try again in 30 seconds.")
		if a.header.Get("Retry-After") != "30" || len(a.alerts()) != 1 {
			t.Errorf("wait = %q, alerts = %q", a.header.Get("Retry-After"), a.alerts())
		}
		b.signIn("anna@studio.example", password).want(429)
		unknown := s.browser()
		for range 10 {
			unknown.signIn("nobody@studio.example", "wrong password").want(403)
		}
		if u := unknown.signIn("nobody@studio.example", "wrong password").want(429); u.body != a.body {
			t.Errorf("the answers tell who is here:\n%s\n%s", a.body, u.body)
		}
		s.clock.pass(30 * time.Second)
		b.signIn("anna@studio.example", password).leads("/")
	})
}

func TestSuspendedPeopleStayOut(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		b := s.signedIn(s.person("anna@studio.example"))
		if err := s.accounts.SignIn.SetSuspended(t.Context(), "anna@studio.example", true); err != nil {
			t.Fatal(err)
		}
		b.get("/account").leads("/signin?next=%2Faccount")
		b.signIn("anna@studio.example", password).want(403, "This account is suspended.")
		b.signIn("anna@studio.example", "wrong password").want(403, "The address or the password is wrong.")
	})
}

func TestSetup(t *testing.T) {
	t.Parallel()
	each(t, func(c *account.Settings) { c.Signup, c.RequireVerified = signup.Closed, true }, func(t *testing.T, s *site) {
		var token string
		s.write(func(ctx context.Context, tx *sqldb.Tx) (err error) {
			token, err = person.CreateSetupToken(ctx, tx)
			return err
		})
		b := s.browser()
		for _, bad := range []string{"/setup", "/setup?token=", "/setup?token=x", "/setup?token=" + token + "x"} {
			if a := b.get(bad).want(404); strings.Contains(a.body, "admin person") {
				t.Errorf("%s tells how to set up", bad)
			}
		}
		page := b.get("/setup?token="+token).want(200, "atelier admin person create", "https://api.atelier.example/api/v2/tools")
		b.send(page, "/setup", "email", "anna@studio.example", "password", "short").want(400, "at least 8 characters", "atelier admin person create")
		b.send(page, "/setup", "token", "x", "email", "anna@studio.example", "password", password).want(404)
		b.send(page, "/setup", "email", "anna@studio.example", "password", password).leads("/welcome")
		b.get("/account").want(200, "Your address is verified.")
		b.get("/setup?token=" + token).want(404)
		b.send(page, "/setup", "email", "eve@studio.example", "password", password).want(404)
		if n := s.count("person"); n != 1 {
			t.Errorf("people = %d", n)
		}
	})
}

func TestCookiesWithTLS(t *testing.T) {
	t.Parallel()
	s := build(t, "sqlite", nil, nil)
	s.person("anna@studio.example")
	pages, err := pages.New(pages.Parts{Studio: newStudio(t, s.url), Accounts: s.accounts, Key: make([]byte, 32), AppURL: "https://app.atelier.example", Now: s.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	s.metrics = prometheus.NewRegistry()
	web := httptest.NewTLSServer(s.served(pages))
	defer web.Close()
	s.url = web.URL
	b := s.browser()
	b.client.Transport = web.Client().Transport
	page := b.get("/signin")
	form := b.cookie("__Host-atelier-form")
	if got, want := page.header.Values("Set-Cookie"), "__Host-atelier-form="+form+"; Path=/; HttpOnly; Secure; SameSite=Lax"; len(form) != 44 || len(got) != 1 || got[0] != want {
		t.Errorf("cookies = %q, want %q", got, want)
	}
	in := b.send(page, "/signin", "email", "anna@studio.example", "password", password)
	in.leads("/")
	cookie := b.cookie("__Host-atelier")
	known := b.cookie("__Host-atelier-known")
	want := []string{
		"__Host-atelier=" + cookie + "; Path=/; Max-Age=86400; HttpOnly; Secure; SameSite=Lax",
		"__Host-atelier-known=" + known + "; Path=/; Max-Age=15552000; HttpOnly; Secure; SameSite=Lax",
	}
	if got := in.header.Values("Set-Cookie"); len(cookie) != 44 || len(known) != 44 || !slices.Equal(got, want) {
		t.Errorf("cookies = %q, want %q", got, want)
	}
	out := b.submit("/account", "/signout")
	if got, want := out.header.Values("Set-Cookie"), "__Host-atelier=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax"; len(got) != 1 || got[0] != want {
		t.Errorf("cookies = %q, want %q", got, want)
	}
}

func TestBadParts(t *testing.T) {
	t.Parallel()
	site := newStudio(t, "https://a.example")
	for _, p := range []pages.Parts{
		{Studio: site, Key: make([]byte, 32), AppURL: ""}, {Studio: site, Key: make([]byte, 32), AppURL: "ftp://a.example"}, {Studio: site, Key: make([]byte, 32), AppURL: "https:"},
		{Studio: site, Key: make([]byte, 31), AppURL: "https://a.example"}, {Key: make([]byte, 32), AppURL: "https://a.example"},
	} {
		if _, err := pages.New(p); err == nil {
			t.Errorf("pages were made of %+v", p)
		}
	}
}

// TestWeakPasswords tries them wherever people choose one.
func TestWeakPasswords(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		const address = "anna@studio.example"
		b := s.browser()
		for _, weak := range []string{"password", "Passw0rd!", "12345678", "anna@studio.example", "studio2026"} {
			a := b.submit("/signup", "/signup", "email", address, "password", weak).want(400, "for example several words.")
			if attr(a.element("password"), "aria-invalid") != "true" || attr(a.element("password"), "value") != "" || attr(a.element("email"), "value") != address {
				t.Errorf("page = %s", a.body)
			}
		}
		if n := s.count("person"); n != 0 {
			t.Fatalf("people = %d", n)
		}

		s.person(address)
		b.submit("/forgot", "/forgot", "email", address).want(200)
		link := s.link("/reset")
		b.submit(link, "/reset", "password", "password1").want(400, "too common")
		b.submit(link, "/reset", "password", address).want(400, "too similar to your e-mail address")
		b.submit(link, "/reset", "password", "lamp river horse").leads("/signin?done=reset")

		b.signIn(address, "lamp river horse").leads("/")
		b.submit("/password", "/password", "old", "lamp river horse", "password", "qwertyuiop").want(400, "pattern")
		b.submit("/password", "/password", "old", "lamp river horse", "password", "another password").leads("/account?done=password")
	})
}
