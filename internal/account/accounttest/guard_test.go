package accounttest_test

import (
	"errors"
	"testing"

	"atelier/internal/account/accounttest"
	"atelier/internal/account/signin"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
)

// TestEndedSessionChangesNothing ends a session after a page has recognised its
// browser, and before what the page does is done.
func TestEndedSessionChangesNothing(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		p := w.somebody("anna@example.com", true)
		for name, end := range map[string]func(s signin.Session) error{
			"signed out": func(s signin.Session) error {
				return w.Accounts.SignIn.SignOut(w.Context(), principal.Principal{PersonID: p.ID}, s.ID)
			},
			"signed out everywhere": func(signin.Session) error {
				return w.Accounts.SignIn.SignOutEverywhere(w.Context(), principal.Principal{}, p.ID)
			},
			"suspended": func(signin.Session) error { return w.Accounts.SignIn.SetSuspended(w.Context(), p.Email, true) },
		} {
			w.ok(w.Accounts.SignIn.SetSuspended(w.Context(), p.Email, false))
			s, cookie := w.browser(p.ID)
			ctx := sqldb.WithGuard(w.Context(), w.Accounts.SignIn.SessionGuard(cookie))
			_, _, err := w.Accounts.AccessTokens.CreateAccessToken(ctx, principal.Principal{PersonID: p.ID}, p.ID, "before")
			w.ok(err)
			w.ok(end(s))
			before := w.count("access_token")
			if _, _, err := w.Accounts.AccessTokens.CreateAccessToken(ctx, principal.Principal{PersonID: p.ID}, p.ID, "after"); !errors.Is(err, session.ErrSignedOut) {
				w.Errorf("%s: a token after it = %v, want %v", name, err, session.ErrSignedOut)
			}
			if n := w.count("access_token"); n != before {
				w.Errorf("%s: %d tokens, want %d", name, n, before)
			}
		}
	})
}
