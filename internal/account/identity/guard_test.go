package identity_test

import (
	"errors"
	"testing"

	"atelier/internal/account/identity"
	"atelier/internal/account/identity/identitytest"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
)

// TestEndedSessionChangesNothing ends a session after a page has recognised its
// browser, and before what the page does is done.
func TestEndedSessionChangesNothing(t *testing.T) {
	each(t, identitytest.Options{}, func(w *world) {
		p := w.somebody("anna@example.com", true)
		for name, end := range map[string]func(s identity.Session) error{
			"signed out": func(s identity.Session) error { return w.Desk.SignOut(w.Context(), p.ID, s.ID, session.Client{}) },
			"signed out everywhere": func(identity.Session) error {
				return w.Desk.SignOutEverywhere(w.Context(), principal.Principal{}, p.ID)
			},
			"suspended": func(identity.Session) error { return w.Desk.Suspend(w.Context(), p.Email, true) },
		} {
			w.ok(w.Desk.Suspend(w.Context(), p.Email, false))
			s, cookie := w.browser(p.ID)
			ctx := sqldb.WithGuard(w.Context(), w.Desk.SessionGuard(cookie))
			_, _, err := w.Desk.CreateAccessToken(ctx, principal.Principal{PersonID: p.ID}, p.ID, "before")
			w.ok(err)
			w.ok(end(s))
			before := w.count("access_token")
			if _, _, err := w.Desk.CreateAccessToken(ctx, principal.Principal{PersonID: p.ID}, p.ID, "after"); !errors.Is(err, session.ErrNone) {
				w.Errorf("%s: a token after it = %v, want %v", name, err, session.ErrNone)
			}
			if n := w.count("access_token"); n != before {
				w.Errorf("%s: %d tokens, want %d", name, n, before)
			}
		}
	})
}
