package oidc_test

import (
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/people/oidc"
	"atelier/internal/people/oidc/oidctest"
)

const callback = "http://127.0.0.1:1/auth/callback"

// open gives a provider and the real one behind it.
func open(t *testing.T) (*oidc.Provider, *oidctest.Server) {
	t.Helper()
	s := oidctest.Start(t, callback)
	return oidc.New(settings(s)), s
}

func settings(s *oidctest.Server) oidc.Settings {
	return oidc.Settings{
		Name: "Studio", Issuer: s.Issuer, ClientID: s.ClientID, ClientSecret: s.ClientSecret, RedirectURL: callback, Now: time.Now,
	}
}

// begin starts a sign-in and goes through the provider's pages.
func begin(t *testing.T, p *oidc.Provider, s *oidctest.Server, login string) (pending oidc.Pending, state, code string) {
	t.Helper()
	address, pending, err := p.BeginSignIn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	back, err := url.Parse(s.SignIn(t, address, login))
	if err != nil {
		t.Fatal(err)
	}
	q := back.Query()
	if q.Get("code") == "" || q.Get("state") == "" {
		t.Fatalf("sent back to %s, want a code and a state", back)
	}
	return pending, q.Get("state"), q.Get("code")
}

// signIn is a whole sign-in.
func signIn(t *testing.T, p *oidc.Provider, s *oidctest.Server, login string) oidc.Identity {
	t.Helper()
	pending, state, code := begin(t, p, s, login)
	who, err := p.FinishSignIn(t.Context(), pending, state, code)
	if err != nil {
		t.Fatal(err)
	}
	return who
}

// wantRefused fails unless err is a refusal by the provider.
func wantRefused(t *testing.T, err error) {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != fault.Forbidden || f.Details["reason"] != "provider" || f.Message == "" {
		t.Errorf("err = %v, want FORBIDDEN by the provider", err)
	}
}

// wantAway fails unless err says that the provider gave no answer.
func wantAway(t *testing.T, err error) {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != fault.Unavailable || !strings.Contains(f.Message, "Studio") || errors.Is(err, oidc.ErrUnknownPerson) {
		t.Errorf("err = %v, want UPSTREAM_UNAVAILABLE", err)
	}
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	p, s := open(t)
	if p.DisplayName() != "Studio" || p.IssuerURL() != s.Issuer {
		t.Errorf("provider = %s at %s", p.DisplayName(), p.IssuerURL())
	}
	tests := []struct {
		login    string
		verified bool
	}{
		{"anna@studio.example", true},
		{"unverified-anna@studio.example", false},
	}
	for _, tt := range tests {
		t.Run(tt.login, func(t *testing.T) {
			t.Parallel()
			got := signIn(t, p, s, tt.login)
			want := oidc.Identity{Issuer: s.Issuer, Subject: tt.login, Email: tt.login, EmailVerified: tt.verified, Refresh: got.Refresh}
			if got != want || got.Refresh == "" {
				t.Errorf("identity = %+v, want %+v and a refresh token", got, want)
			}
		})
	}
}

func TestBeginIsNewEachTime(t *testing.T) {
	t.Parallel()
	p, _ := open(t)
	seen := map[string]bool{}
	for range 3 {
		address, pending, err := p.BeginSignIn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		if q.Get("code_challenge_method") != "S256" || q.Get("scope") != "openid email profile offline_access" ||
			q.Get("state") != pending.State || q.Get("nonce") != pending.Nonce || q.Get("redirect_uri") != callback ||
			strings.Contains(address, pending.Verifier) {
			t.Errorf("address = %s", address)
		}
		for _, secret := range []string{pending.State, pending.Nonce, pending.Verifier} {
			if len(secret) < 26 || seen[secret] {
				t.Errorf("a secret is short or known: %q", secret)
			}
			seen[secret] = true
		}
	}
}

func TestForeignAnswersAreRefused(t *testing.T) {
	t.Parallel()
	p, s := open(t)
	mine, state, code := begin(t, p, s, "anna@studio.example")
	theirs, _, _ := begin(t, p, s, "eve@evil.example")
	tests := []struct {
		name        string
		pending     oidc.Pending
		state, code string
	}{
		{"another state", mine, "x" + state, code},
		{"no state", mine, "", code},
		{"nothing was begun", oidc.Pending{}, "", code},
		{"no code", mine, state, ""},
		{"an invented code", mine, state, "invented"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := p.FinishSignIn(t.Context(), tt.pending, tt.state, tt.code)
			wantRefused(t, err)
		})
	}
	if _, err := p.FinishSignIn(t.Context(), mine, state, code); err != nil {
		t.Errorf("finish after all that = %v", err)
	}
	t.Run("a code used twice", func(t *testing.T) {
		_, err := p.FinishSignIn(t.Context(), mine, state, code)
		wantRefused(t, err)
	})
	t.Run("another browser's verifier", func(t *testing.T) {
		mine, state, code := begin(t, p, s, "anna@studio.example")
		mine.Verifier = theirs.Verifier
		_, err := p.FinishSignIn(t.Context(), mine, state, code)
		wantRefused(t, err)
	})
	for name, nonce := range map[string]string{"another browser's nonce": theirs.Nonce, "no nonce": ""} {
		t.Run(name, func(t *testing.T) {
			mine, state, code := begin(t, p, s, "anna@studio.example")
			mine.Nonce = nonce
			_, err := p.FinishSignIn(t.Context(), mine, state, code)
			wantRefused(t, err)
		})
	}
}

func TestPersonTurnsAround(t *testing.T) {
	t.Parallel()
	p, s := open(t)
	address, pending, err := p.BeginSignIn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	back, err := url.Parse(s.Refuse(t, address))
	if err != nil {
		t.Fatal(err)
	}
	q := back.Query()
	if q.Get("error") != "access_denied" {
		t.Fatalf("sent back to %s", back)
	}
	_, err = p.FinishSignIn(t.Context(), pending, q.Get("state"), q.Get("code"))
	wantRefused(t, err)
}

func TestOneCodeSignsInOnce(t *testing.T) {
	t.Parallel()
	p, s := open(t)
	pending, state, code := begin(t, p, s, "anna@studio.example")
	results := make([]error, 8)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() { _, results[i] = p.FinishSignIn(t.Context(), pending, state, code) })
	}
	all.Wait()
	good := 0
	for _, err := range results {
		if err == nil {
			good++
		}
	}
	if good > 1 {
		t.Errorf("one code signed in %d times", good)
	}
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	p, s := open(t)
	who := signIn(t, p, s, "anna@studio.example")
	refresh := who.Refresh
	for range 3 {
		next, err := p.ConfirmPerson(t.Context(), refresh)
		if err != nil {
			t.Fatal(err)
		}
		if next == "" || next == refresh {
			t.Fatalf("next = %q, want another one than %q", next, refresh)
		}
		refresh = next
	}
	s.Revoke(t, "eve@evil.example")
	refresh, err := p.ConfirmPerson(t.Context(), refresh)
	if err != nil {
		t.Fatalf("confirm after somebody else was revoked = %v", err)
	}
	s.Revoke(t, "anna@studio.example")
	if _, err := p.ConfirmPerson(t.Context(), refresh); !errors.Is(err, oidc.ErrUnknownPerson) {
		t.Errorf("confirm = %v, want ErrGone", err)
	}
	if _, err := p.ConfirmPerson(t.Context(), "invented"); !errors.Is(err, oidc.ErrUnknownPerson) {
		t.Errorf("confirm with an invented token = %v, want ErrGone", err)
	}
}

func TestUsedRefreshTokenIsGone(t *testing.T) {
	t.Parallel()
	p, s := open(t)
	who := signIn(t, p, s, "anna@studio.example")
	if _, err := p.ConfirmPerson(t.Context(), who.Refresh); err != nil {
		t.Fatal(err)
	}
	if _, err := p.ConfirmPerson(t.Context(), who.Refresh); !errors.Is(err, oidc.ErrUnknownPerson) {
		t.Errorf("confirm = %v, want ErrGone", err)
	}
}

func TestProviderGoesAndComesBack(t *testing.T) {
	t.Parallel()
	p, s := open(t)
	who := signIn(t, p, s, "anna@studio.example")
	pending, state, code := begin(t, p, s, "anna@studio.example")
	s.Stop(t)
	_, err := p.FinishSignIn(t.Context(), pending, state, code)
	wantAway(t, err)
	_, err = p.ConfirmPerson(t.Context(), who.Refresh)
	wantAway(t, err)
	if _, _, err := p.BeginSignIn(t.Context()); err != nil {
		t.Errorf("begin needs nothing of the provider any more, but %v", err)
	}
	s.Resume(t)
	if _, err := p.FinishSignIn(t.Context(), pending, state, code); err != nil {
		t.Errorf("finish = %v", err)
	}
	if _, err := p.ConfirmPerson(t.Context(), who.Refresh); err != nil {
		t.Errorf("confirm = %v", err)
	}
}

func TestProviderIsDownAtFirst(t *testing.T) {
	t.Parallel()
	p, s := open(t)
	s.Stop(t)
	_, _, err := p.BeginSignIn(t.Context())
	wantAway(t, err)
	_, err = p.FinishSignIn(t.Context(), oidc.Pending{State: "a", Nonce: "b", Verifier: "c"}, "a", "code")
	wantAway(t, err)
	_, err = p.ConfirmPerson(t.Context(), "refresh")
	wantAway(t, err)
	s.Resume(t)
	signIn(t, p, s, "anna@studio.example")
}

func TestProviderNeverAnswers(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := oidc.New(oidc.Settings{Name: "Studio", Issuer: "http://" + l.Addr().String(), ClientID: "a", Timeout: 50 * time.Millisecond})
	_, _, err = p.BeginSignIn(t.Context())
	wantAway(t, err)
}

func TestWrongClientIsForTheOperator(t *testing.T) {
	t.Parallel()
	_, s := open(t)
	right := settings(s)
	wrong := right
	wrong.ClientSecret = "wrong"
	p := oidc.New(wrong)
	pending, state, code := begin(t, p, s, "anna@studio.example")
	_, err := p.FinishSignIn(t.Context(), pending, state, code)
	wantAway(t, err)
	who := signIn(t, oidc.New(right), s, "anna@studio.example")
	_, err = p.ConfirmPerson(t.Context(), who.Refresh)
	wantAway(t, err)
	if strings.Contains(err.Error(), who.Refresh) || strings.Contains(err.Error(), "wrong") {
		t.Errorf("the error tells a secret: %v", err)
	}
	if _, err := oidc.New(right).ConfirmPerson(t.Context(), who.Refresh); err != nil {
		t.Errorf("confirm with the right secret = %v", err)
	}
}

func TestTokenIsTooOld(t *testing.T) {
	t.Parallel()
	_, s := open(t)
	late := settings(s)
	late.Now = func() time.Time { return time.Now().Add(time.Hour) }
	p := oidc.New(late)
	pending, state, code := begin(t, p, s, "anna@studio.example")
	_, err := p.FinishSignIn(t.Context(), pending, state, code)
	wantRefused(t, err)
}

func TestIssuersWithoutAProvider(t *testing.T) {
	t.Parallel()
	for _, issuer := range []string{"", "studio", "ftp://127.0.0.1", "file:///etc", "http://", "https://127.0.0.1:x"} {
		p := oidc.New(oidc.Settings{Name: "Studio", Issuer: issuer, ClientID: "a"})
		_, _, err := p.BeginSignIn(t.Context())
		wantAway(t, err)
	}
}
