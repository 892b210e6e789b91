package accounttest_test

import (
	"errors"
	"testing"
	"time"

	"atelier/internal/account/accounttest"
	"atelier/internal/account/devicelogin"
	"atelier/internal/account/signin"
	"atelier/internal/account/signup"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
)

// offer makes a link behind the desk's back.
func (w *fixture) offer(kind person.LinkKind, l person.Link) (secret string) {
	w.Helper()
	w.do(func(tx *sqldb.Tx) (err error) {
		secret, err = person.CreateLink(w.Context(), tx, kind, l, time.Hour)
		return err
	})
	return secret
}

// possessions are all that somebody can be signed in with.
type possessions struct {
	cookies []string
	devices []devicelogin.Login
	grant   func() error // fetches what was approved
	token   string       // personal
}

func (w *fixture) possessions(id, email string) (p possessions) {
	w.Helper()
	in, cookie := w.browser(id)
	_, other := w.browser(id)
	p.cookies = []string{cookie, other}
	for range 2 {
		p.devices = append(p.devices, w.Device(id, "blender"))
	}
	codes := w.approved(in)
	p.grant = func() error { return second(w.poll(codes)) }
	_, p.token = w.Token(email, "")
	if !w.knows(cookie) || !w.knows(other) || !w.admits(p.devices[0].Tokens.ID) || !w.admits(p.devices[1].Tokens.ID) || !w.admits(p.token) {
		w.Error("somebody has something that does not work")
	}
	w.pass(time.Second)
	return p
}

// ended wants all of them dead but the personal token, which may live.
func (w *fixture) ended(p possessions, token bool) {
	w.Helper()
	for _, cookie := range p.cookies {
		if w.knows(cookie) {
			w.Error("a browser is signed in")
		}
	}
	for _, dev := range p.devices {
		if w.admits(dev.Tokens.ID) {
			w.Error("a device is signed in")
		}
		w.refused("refresh", second(w.refresh(dev.Tokens.Refresh)), fault.TokenInvalid)
	}
	w.refused("what was approved", p.grant(), fault.DeviceCodeExpired)
	if w.admits(p.token) != token {
		w.Errorf("the personal token works: %v, want %v", !token, token)
	}
}

func TestVerifyEmail(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		in, err := w.signUp(signup.Application{Email: "anna@example.com"})
		w.ok(err)
		first := w.secret("anna@example.com", "Verify")
		reset := w.offer(person.ResetLink, person.Link{PersonID: in.Person.ID, Target: "anna@example.com"})
		verify := func(secret string) error {
			return w.Accounts.Verification.VerifyEmail(w.Context(), secret, w.Client())
		}

		mark := w.mark()
		w.refused("no secret", verify(""), fault.NotFound)
		w.refused("a link for something else", verify(reset), fault.NotFound)
		w.ok(w.Accounts.Verification.ResendLink(w.Context(), principal.Principal{PersonID: in.Person.ID}))
		w.refused("the link before", verify(first), fault.NotFound)
		again := w.secret("anna@example.com", "Verify")
		w.pass(72 * time.Hour)
		w.refused("after three days", verify(again), fault.NotFound)
		w.recorded("refused", mark)
		if w.byID(in.Person.ID).EmailVerified {
			w.Error("the address is verified")
		}

		w.ok(w.Accounts.Verification.ResendLink(w.Context(), principal.Principal{PersonID: in.Person.ID}))
		last := w.secret("anna@example.com", "Verify")
		w.pass(72*time.Hour - time.Microsecond)
		w.ok(verify(last))
		w.refused("a second time", verify(last), fault.NotFound)
		w.recorded("verified", mark, audit.PersonVerified)
		if !w.byID(in.Person.ID).EmailVerified {
			w.Error("the address is not verified")
		}

		sent := len(w.mails())
		w.ok(w.Accounts.Verification.ResendLink(w.Context(), principal.Principal{PersonID: in.Person.ID}))
		if n := len(w.mails()); n != sent {
			w.Error("somebody with a verified address was sent another link")
		}
		link, err := w.Accounts.Verification.OperatorLink(w.Context(), "anna@example.com")
		w.ok(err)
		mark = w.mark()
		w.ok(verify(secretIn(link))) // verified already: no news
		w.recorded("no news", mark)
	})
}

func TestVerificationMailsAreFew(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		anna := w.somebody("anna@example.com", false)
		for range 5 {
			w.ok(w.Accounts.Verification.ResendLink(w.Context(), principal.Principal{PersonID: anna.ID}))
		}
		if got := w.wait("the 6th", w.Accounts.Verification.ResendLink(w.Context(), principal.Principal{PersonID: anna.ID})); got != time.Hour {
			w.Errorf("wait = %v, want 1h", got)
		}
		if n := len(w.mails()); n != 5 {
			w.Errorf("%d mails, want 5", n)
		}
		w.pass(time.Hour)
		w.ok(w.Accounts.Verification.ResendLink(w.Context(), principal.Principal{PersonID: anna.ID}))
	})
}

func TestResetOfAVerifiedAccount(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		id := w.Person("anna@example.com")
		had := w.possessions(id, "anna@example.com")
		w.ok(w.Accounts.SignIn.RequestPasswordReset(w.Context(), "Anna@example.com", w.Client()))
		before := w.secret("anna@example.com", "Choose a new password")
		w.ok(w.Accounts.SignIn.RequestPasswordReset(w.Context(), "anna@example.com", w.Client()))
		if n := len(w.mailsTo("anna@example.com", "Choose a new password")); n != 1 {
			w.Errorf("%d mails at once, want 1", n)
		}
		w.pass(time.Minute)
		w.ok(w.Accounts.SignIn.RequestPasswordReset(w.Context(), "anna@example.com", w.Client()))
		secret := w.secret("anna@example.com", "Choose a new password")
		if secret == before {
			w.Error("no other mail after a minute")
		}
		elsewhere := w.offer(person.ResetLink, person.Link{PersonID: id, Target: "an address she had before"})

		reset := func(secret, password string) error {
			return second(w.Accounts.SignIn.ResetPassword(w.Context(), secret, password, w.Client()))
		}
		w.ok(w.Accounts.SignIn.CheckResetLink(w.Context(), before)) // a stranger may have asked for the other
		w.refused("a short password", reset(secret, "short"), fault.Invalid)
		w.ok(w.Accounts.SignIn.CheckResetLink(w.Context(), secret)) // what was refused used nothing up

		mark := w.mark()
		w.ok(reset(secret, "another password"))
		w.ended(had, true)
		w.recorded("reset", mark, audit.PersonPasswordChanged)
		w.refused("a second time", reset(secret, "a third password"), fault.NotFound)
		w.refused("the link before", reset(before, "a third password"), fault.NotFound)
		w.refused("a link that was there already", reset(elsewhere, "a third password"), fault.NotFound)
		w.refused("the old password", w.signIn("anna@example.com", password), fault.Unauthenticated)
		w.ok(w.signIn("anna@example.com", "another password"))
		if n := w.notices(id); len(n) == 0 || n[0].Kind != "password" {
			w.Errorf("notices = %+v, want one about the password", n)
		}
		if n := len(w.mailsTo("anna@example.com", "Your password was changed")); n != 1 {
			w.Errorf("%d mails, want 1", n)
		}
		w.ok(w.Accounts.SignIn.RequestPasswordReset(w.Context(), "anna@example.com", w.Client())) // the links before are gone
		if again := w.secret("anna@example.com", "Choose a new password"); again == secret {
			w.Error("no link after the password was changed")
		}
	})
}

// Whoever signed up with an address that is not theirs leaves nothing behind
// when its owner comes.
func TestResetOfASquattedAccount(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		c := w.Company("Studio", company.TeamPlan)
		_, err := w.Companies.Domains.AddDomain(w.Context(), principal.Operator(), c, "studio.example", "", "")
		w.ok(err)
		_, err = w.Companies.Domains.VerifyDomain(w.Context(), principal.Operator(), c, "studio.example", true)
		w.ok(err)
		in, err := w.signUp(signup.Application{Email: "anna@studio.example"})
		w.ok(err)
		had := w.possessions(in.Person.ID, "anna@studio.example")
		had.cookies = append(had.cookies, in.Cookie)

		link, err := w.Accounts.SignIn.OperatorResetLink(w.Context(), "anna@studio.example")
		w.ok(err)
		mark := w.mark()
		w.ok(second(w.Accounts.SignIn.ResetPassword(w.Context(), secretIn(link), "another password", w.Client())))
		w.ended(had, false)
		w.recorded("reset", mark, audit.CompanyMemberSet, audit.PersonVerified, audit.TokenDeleted, audit.PersonPasswordChanged)
		if !w.byID(in.Person.ID).EmailVerified || w.count(`company_member WHERE person_id = $1`, in.Person.ID) != 1 {
			w.Error("the link did not prove the address")
		}
		w.refused("the squatter", w.signIn("anna@studio.example", password), fault.Unauthenticated)
	})
}

func TestRequestResetTellsNothing(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		anna := w.somebody("anna@example.com", true)
		ask := func(email, address string) error {
			return w.Accounts.SignIn.RequestPasswordReset(w.Context(), email, session.Client{Address: address})
		}
		mark := w.mark()
		w.ok(ask("nobody@example.com", "192.0.2.1"))
		w.recorded("nobody", mark)
		w.ok(ask("anna@example.com", "192.0.2.1"))
		w.recorded("somebody", mark, audit.PersonResetRequested)
		if r := w.records(mark)[0]; r.PersonID != anna.ID || r.ActorID != "" || r.Address != "192.0.2.1" {
			w.Errorf("record = %+v", r)
		}
		w.refused("no address", ask("anna", "192.0.2.1"), fault.Invalid)
		if n := len(w.mails()); n != 1 {
			w.Errorf("%d mails, want 1", n)
		}
		for i := range 28 { // one of them to anna, whom the mail of just now is enough for
			w.ok(ask(string(rune('a'+i%20))+"nna@example.com", "192.0.2.1"))
		}
		for _, email := range []string{"anna@example.com", "nobody@example.com"} {
			if got := w.wait("the 31st from an address", ask(email, "192.0.2.1")); got != 2*time.Second {
				w.Errorf("wait = %v, want 2s", got)
			}
			w.ok(ask(email, "192.0.2.2"))
		}
		if n := len(w.mails()); n != 1 {
			w.Errorf("%d mails, want 1", n)
		}

		secret := w.secret("anna@example.com", "Choose")
		w.pass(time.Hour)
		w.refused("after an hour", w.Accounts.SignIn.CheckResetLink(w.Context(), secret), fault.NotFound)
	})
}

func TestResetDoesNotRestore(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		w.somebody("anna@example.com", false)
		link, err := w.Accounts.SignIn.OperatorResetLink(w.Context(), "anna@example.com")
		w.ok(err)
		w.ok(w.Accounts.SignIn.SetSuspended(w.Context(), "anna@example.com", true))
		mark := w.mark()
		w.because("reset", second(w.Accounts.SignIn.ResetPassword(w.Context(), secretIn(link), "another password", w.Client())), "suspended")
		w.recorded("reset", mark)
		w.refused("a link for nobody", second(w.Accounts.SignIn.OperatorResetLink(w.Context(), "nobody@example.com")), fault.NotFound)
	})
}

func TestChangePassword(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		id := w.Person("anna@example.com")
		had := w.possessions(id, "anna@example.com")
		in, cookie := w.browser(id)
		had.cookies = append(had.cookies, cookie)
		link, err := w.Accounts.SignIn.OperatorResetLink(w.Context(), "anna@example.com")
		w.ok(err)

		mark := w.mark()
		_, err = w.Accounts.SignIn.ChangePassword(w.Context(), in, "a wrong password", "another password", w.Client())
		w.refused("a wrong password", err, fault.Invalid)
		if f, ok := errors.AsType[*fault.Error](err); ok && (len(f.Fields) != 1 || f.Fields[0].Path != "old") {
			w.Errorf("fields = %v, want old", f.Fields)
		}
		_, err = w.Accounts.SignIn.ChangePassword(w.Context(), in, password, "short", w.Client())
		w.refused("a short one", err, fault.Invalid)
		if !w.knows(cookie) || !w.admits(had.devices[0].Tokens.ID) {
			w.Error("a change that was refused ended something")
		}
		w.recorded("refused", mark)

		now, err := w.Accounts.SignIn.ChangePassword(w.Context(), in, password, "another password", w.Client())
		w.ok(err)
		w.recorded("changed", mark, audit.PersonPasswordChanged, audit.SessionSignedIn)
		if now.Cookie == cookie || !w.knows(now.Cookie) {
			w.Error("the browser that did it is not signed in with a new cookie")
		}
		w.ended(had, true)
		w.refused("a reset link that was there", w.Accounts.SignIn.CheckResetLink(w.Context(), secretIn(link)), fault.NotFound)
		w.refused("the old password", w.signIn("anna@example.com", password), fault.Unauthenticated)
		w.ok(w.signIn("anna@example.com", "another password"))

		_, err = w.Accounts.SignIn.ChangePassword(w.Context(), in, "another password", password, w.Client())
		if !signin.IsSignedOut(err) {
			w.Errorf("a session that was ended changes the password: %v", err)
		}
	})
}

// Whoever sits at a browser that was left open guesses no faster than others,
// and what strangers guess at the front door does not matter there.
func TestOldPasswordIsNotGuessed(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		in, _ := w.browser(w.Person("anna@example.com"))
		change := func(old, password string) (signin.NewSession, error) {
			return w.Accounts.SignIn.ChangePassword(w.Context(), in, old, password, w.Client())
		}
		for range 20 {
			w.refused("a stranger", w.signIn("anna@example.com", unfit), fault.Unauthenticated)
		}
		for range 10 {
			w.refused("a guess", second(change(unfit, "another password")), fault.Invalid)
		}
		w.wait("the 11th", second(change(password, "another password")))
		w.ok(w.signIn("anna@example.com", password))
		w.pass(5 * time.Minute)
		w.ok(second(change(password, "another password")))
	})
}

// People of a provider have no password to give.
func TestFirstPassword(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		anna := w.create(person.Draft{Email: "anna@example.com", EmailVerified: true})
		w.do(func(tx *sqldb.Tx) error {
			return person.StoreIdentity(w.Context(), tx, person.Identity{Issuer: "https://id.example", Subject: "a", PersonID: anna.ID, Provider: "Studio"})
		})
		in, _ := w.browser(anna.ID)
		in.Provider = "Studio"
		now, err := w.Accounts.SignIn.ChangePassword(w.Context(), in, "", "another password", w.Client())
		w.ok(err)
		s, err := w.Accounts.SignIn.FindSession(w.Context(), now.Cookie, "")
		if err != nil || s.Provider != "Studio" || s.Person.Provider != person.Password {
			w.Errorf("session = %+v, %v", s, err)
		}
		w.ok(w.signIn("anna@example.com", "another password"))
	})
}
