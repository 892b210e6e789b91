package pages_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/people/session"
)

// unfit is a password that is wrong without the slow work of hashing.
var unfit = strings.Repeat("x", 1025)

// guess tries wrong passwords for a person, from addresses in turn.
func (s *site) guess(email string, times, addresses int) (admitted int) {
	s.t.Helper()
	for i := range times {
		from := session.Client{UserAgent: "a stranger", Address: fmt.Sprintf("203.0.113.%d", i%addresses)}
		_, err := s.accounts.SignIn.SignIn(s.t.Context(), email, unfit, from)
		switch {
		case fault.Is(err, fault.Unauthenticated):
			admitted++
		case !fault.Is(err, fault.RateLimited):
			s.t.Fatalf("a guess = %v", err)
		}
	}
	return admitted
}

// A stranger's wrong passwords keep nobody out: neither at a browser that the
// person signed in with before, nor at an address of their own.
func TestGuessesDoNotKeepTheOwnerOut(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		s.person("anna@studio.example")
		known := s.browser()
		known.signIn("anna@studio.example", password).leads("/")
		known.submit("/account", "/signout").leads("/signin?done=signed-out")

		t.Logf("%d of 1,000 guesses were tried", s.guess("anna@studio.example", 1000, 20))

		known.signIn("anna@studio.example", "wrong password").want(403)
		known.signIn("anna@studio.example", password).leads("/")
		s.browser().signIn("anna@studio.example", password).leads("/")
	})
}

// Neither do guesses from the person's own address, such as that of an office.
func TestGuessesFromTheSameAddress(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		s.person("anna@studio.example")
		known := s.browser()
		known.signIn("anna@studio.example", password).leads("/")
		known.submit("/account", "/signout").leads("/signin?done=signed-out")
		for i := range 300 {
			for _, email := range []string{"anna@studio.example", fmt.Sprintf("p%d@studio.example", i)} {
				_, err := s.accounts.SignIn.SignIn(t.Context(), email, unfit, session.Client{Address: "127.0.0.1"})
				if !fault.Is(err, fault.Unauthenticated) && !fault.Is(err, fault.RateLimited) {
					t.Fatal(err)
				}
			}
		}
		s.browser().signIn("anna@studio.example", password).want(429, "You can try again in")
		known.signIn("anna@studio.example", password).leads("/")
	})
}

// Somebody who asks for links in another's name takes nothing from them: the
// mails stay few, and there is always one with a link that works.
func TestResetsThatStrangersAskFor(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		s.person("anna@studio.example")
		ask := func(address string) {
			t.Helper()
			if err := s.accounts.SignIn.RequestPasswordReset(t.Context(), "anna@studio.example", session.Client{Address: address}); err != nil && !fault.Is(err, fault.RateLimited) {
				t.Fatal(err)
			}
		}
		for i := range 200 {
			ask(fmt.Sprintf("203.0.113.%d", i))
			s.clock.pass(20 * time.Second)
		}
		b := s.browser()
		b.submit("/forgot", "/forgot", "email", "anna@studio.example").want(200, "Check your mail")
		link := s.link("/reset")
		for i := range 20 { // until she has read it
			ask(fmt.Sprintf("203.0.113.%d", i))
			s.clock.pass(time.Minute)
		}
		if n := strings.Count(s.mails(), "Subject: Choose a new password"); n > 12 {
			t.Errorf("%d mails in 90 minutes, want at most 12", n)
		}
		b.submit(link, "/reset", "password", "another password").leads("/signin?done=reset")
		b.signIn("anna@studio.example", "another password").leads("/")
	})
}

// Another site can have a browser open an address of ours. That uses up nothing
// of the person's.
func TestOtherSitesUseUpNoCodes(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		b := s.signedIn(s.person("anna@studio.example"))
		code := s.start("blender", "blender/4.5", "198.51.100.7").UserCode
		b.header = http.Header{"Sec-Fetch-Site": {"cross-site"}}
		for range 20 {
			b.get("/device?code=BCDF-GHJK").want(200)
		}
		a := b.get("/device?code="+code).want(200, "Sign in a device")
		if attr(a.element("code"), "value") != code {
			t.Errorf("page = %s", a.body)
		}
		b.header = http.Header{"Sec-Fetch-Site": {"same-origin"}}
		b.get("/device?code="+code).want(200, "Do you see this code on your device?")
	})
}
