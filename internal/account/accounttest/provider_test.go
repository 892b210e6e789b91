package accounttest_test

import (
	"net/url"
	"testing"
	"time"

	"atelier/internal/account"
	"atelier/internal/account/accounttest"
	"atelier/internal/account/devicelogin"
	"atelier/internal/account/signin"
	"atelier/internal/account/signup"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/company"
	"atelier/internal/people/oidc"
	"atelier/internal/people/oidc/oidctest"
	"atelier/internal/people/person"
)

// studio is a fixture with an OpenID provider, and so with the real time.
type studio struct {
	*fixture
	server *oidctest.Server
}

func eachProvider(t *testing.T, s account.Settings, fn func(w studio)) {
	t.Helper()
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			const callback = "http://127.0.0.1:1/oidc/callback"
			server := oidctest.Start(t, callback)
			provider := oidc.New(oidc.Settings{
				Name: "Studio", Issuer: server.Issuer, ClientID: server.ClientID, ClientSecret: server.ClientSecret, RedirectURL: callback, Now: time.Now,
			})
			w := studio{open(t, engine, accounttest.Options{Settings: s, Provider: provider}, time.Now), server}
			fn(w)
			w.sound()
		})
	}
}

// arrive signs a browser in with the provider.
func (w studio) arrive(login string) (signin.NewSession, error) {
	w.Helper()
	address, pending, err := w.Accounts.OpenID.Provider.BeginSignIn(w.Context())
	w.ok(err)
	back, err := url.Parse(w.server.SignIn(w, address, login))
	w.ok(err)
	return w.Accounts.OpenID.FinishSignIn(w.Context(), pending, back.Query().Get("state"), back.Query().Get("code"), w.Client())
}

// device signs a device in for somebody who comes by the provider.
func (w studio) device(login string) devicelogin.Login {
	w.Helper()
	in, err := w.arrive(login)
	w.ok(err)
	s, err := w.Accounts.SignIn.FindSession(w.Context(), in.Cookie, "")
	w.ok(err)
	got, err := w.poll(w.approved(s))
	w.ok(err)
	return got
}

func TestProviderBringsANewPerson(t *testing.T) {
	eachProvider(t, account.Settings{SignupGrant: 100}, func(w studio) {
		c := w.Company("Studio", company.TeamPlan)
		w.own(c, "studio.example", "")
		mark := w.mark()
		in, err := w.arrive("anna@studio.example")
		w.ok(err)
		if p := w.byID(in.Person.ID); p.Email != "anna@studio.example" || !p.EmailVerified || p.Provider != "Studio" || !w.knows(in.Cookie) {
			w.Errorf("person = %+v", p)
		}
		w.recorded("new", mark, audit.CompanyMemberSet, audit.PersonCreated, audit.SessionSignedIn)
		if r := w.records(mark)[2]; r.ActorID != in.Person.ID || r.Details["provider"] != "Studio" {
			w.Errorf("record = %+v", r)
		}
		s, err := w.Accounts.SignIn.FindSession(w.Context(), in.Cookie, "")
		if err != nil || s.Provider != "Studio" {
			w.Errorf("session = %+v, %v", s, err)
		}

		mark = w.mark()
		again, err := w.arrive("anna@studio.example")
		if err != nil || again.Person.ID != in.Person.ID || again.Cookie == in.Cookie {
			w.Errorf("the same person again = %+v, %v", again, err)
		}
		w.recorded("again", mark, audit.SessionSignedIn)
		if got := w.balance(in.Person.ID); got != 100 || len(w.mails()) != 0 || len(w.notices(in.Person.ID)) != 0 {
			w.Errorf("balance = %d, mails = %v", got, w.mails())
		}
		if got := w.device("anna@studio.example").Profile; got.Provider != "Studio" {
			w.Errorf("record = %+v", got)
		}
		var sealed string
		w.ok(w.DB.QueryRow(w.Context(), `SELECT refresh FROM person_identity`).Scan(&sealed))
		plain, err := w.Keys.BoxFor("person_identity").Open(sealed, "person_identity "+w.server.Issuer+" anna@studio.example")
		if err != nil || len(plain) == 0 || string(plain) == sealed {
			w.Errorf("the provider's refresh token is not sealed to its row: %v", err)
		}
	})
}

func TestProviderIsHeldToItsSignIn(t *testing.T) {
	eachProvider(t, account.Settings{}, func(w studio) {
		address, pending, err := w.Accounts.OpenID.Provider.BeginSignIn(w.Context())
		w.ok(err)
		back, err := url.Parse(w.server.SignIn(w, address, "anna@studio.example"))
		w.ok(err)
		state, code := back.Query().Get("state"), back.Query().Get("code")
		_, err = w.Accounts.OpenID.FinishSignIn(w.Context(), pending, "another state", code, w.Client())
		w.because("another state", err, "provider")
		_, err = w.Accounts.OpenID.FinishSignIn(w.Context(), pending, state, "", w.Client())
		w.because("no code", err, "provider")
		if n := w.count(`person`); n != 0 {
			w.Errorf("%d people, want none", n)
		}
	})
}

func TestProviderIsLinkedToAVerifiedAccount(t *testing.T) {
	eachProvider(t, account.Settings{}, func(w studio) {
		id := w.Person("Anna@studio.example")
		had := w.possessions(id, "Anna@studio.example")
		mark, mails := w.mark(), len(w.mails())
		in, err := w.arrive("anna@studio.example")
		if err != nil || in.Person.ID != id {
			w.Fatalf("entered = %+v, %v, want %s", in, err, id)
		}
		w.recorded("linked", mark, audit.IdentityLinked, audit.SessionSignedIn)
		if told := w.notices(id); told[0].Kind != "provider" || len(w.mails()) != mails+1 || len(w.mailsTo("Anna@studio.example", "A new way to sign in")) != 1 {
			w.Errorf("notices = %+v", told)
		}
		if !w.knows(had.cookies[0]) || !w.admits(had.devices[0].Tokens.ID) || !w.admits(had.token) || had.grant() != nil {
			w.Error("the owner lost something")
		}
		w.ok(w.signIn("anna@studio.example", password))
		w.ok(second(w.refresh(had.devices[0].Tokens.Refresh)))

		mark = w.mark()
		w.ok(second(w.arrive("anna@studio.example")))
		w.recorded("again", mark, audit.SessionSignedIn)
	})
}

// Who signed up with an address and never proved it loses it to its owner.
func TestProviderTakesOverAnUnverifiedAccount(t *testing.T) {
	eachProvider(t, account.Settings{}, func(w studio) {
		squatter, err := w.signUp(signup.Application{Email: "anna@studio.example"})
		w.ok(err)
		had := w.possessions(squatter.Person.ID, "anna@studio.example")
		had.cookies = append(had.cookies, squatter.Cookie)
		w.ok(w.Accounts.SignIn.RequestPasswordReset(w.Context(), "anna@studio.example", w.Client()))
		mark := w.mark()
		in, err := w.arrive("anna@studio.example")
		if err != nil || in.Person.ID != squatter.Person.ID || !in.Person.EmailVerified || !w.knows(in.Cookie) {
			w.Fatalf("entered = %+v, %v", in, err)
		}
		w.ended(had, false)
		w.recorded("taken over", mark, audit.PersonVerified, audit.TokenDeleted, audit.IdentityLinked, audit.SessionSignedIn)
		if p := w.byID(in.Person.ID); p.Provider != "Studio" {
			w.Errorf("person = %+v, want no password", p)
		}
		w.refused("the squatter's password", w.signIn("anna@studio.example", password), fault.Unauthenticated)
		w.refused("a reset link", w.Accounts.SignIn.CheckResetLink(w.Context(), w.secret("anna@studio.example", "Choose")), fault.NotFound)
	})
}

func TestProviderWithoutAVerifiedAddress(t *testing.T) {
	eachProvider(t, account.Settings{}, func(w studio) {
		const free = "unverified-bert@studio.example"
		for taken, verified := range map[string]bool{"unverified-anna@studio.example": true, "unverified-carl@studio.example": false} {
			p := w.somebody(taken, verified) // whoever has the address here
			_, cookie := w.browser(p.ID)
			mark := w.mark()
			_, err := w.arrive(taken)
			w.because("an address in use", err, "unverified")
			w.recorded("refused", mark)
			if !w.knows(cookie) || w.count(`person_identity`) != 0 || w.byID(p.ID) != p {
				w.Error("the owner lost something")
			}
		}
		in, err := w.arrive(free)
		if err != nil || in.Person.EmailVerified || len(w.mailsTo(free, "Verify")) != 1 {
			w.Errorf("an address that is free = %+v, %v", in, err)
		}
		w.ok(w.Accounts.Verification.VerifyEmail(w.Context(), w.secret(free, "Verify"), w.Client()))
		again, err := w.arrive(free)
		if err != nil || again.Person.ID != in.Person.ID || !again.Person.EmailVerified {
			w.Errorf("again = %+v, %v", again, err)
		}
	})
}

func TestProviderWhereSignUpIsNotOpen(t *testing.T) {
	t.Parallel()
	for _, mode := range []signup.Policy{signup.ByInvitation, signup.Closed} {
		t.Run(string(mode), func(t *testing.T) {
			eachProvider(t, account.Settings{Signup: mode}, func(w studio) {
				known := w.somebody("known@studio.example", true)
				c := w.Company("Studio", company.TeamPlan)
				w.invite("invited@studio.example", c, "")
				w.invite("unverified-invited@studio.example", c, "")
				for _, login := range []string{"stranger@studio.example", "unverified-invited@studio.example"} {
					_, err := w.arrive(login)
					w.because(login, err, "closed")
				}
				if in, err := w.arrive("known@studio.example"); err != nil || in.Person.ID != known.ID {
					w.Errorf("somebody known = %+v, %v", in, err)
				}
				in, err := w.arrive("invited@studio.example")
				if mode == signup.Closed {
					w.because("invited", err, "closed")
				} else if err != nil || !w.knows(in.Cookie) {
					w.Errorf("invited = %+v, %v", in, err)
				}
				if n, want := w.count(`person`), map[signup.Policy]int{signup.ByInvitation: 2, signup.Closed: 1}[mode]; n != want {
					w.Errorf("%d people, want %d", n, want)
				}
				w.ok(w.Accounts.SignIn.SetSuspended(w.Context(), "known@studio.example", true))
				_, err = w.arrive("known@studio.example")
				w.because("somebody suspended", err, "suspended")
			})
		})
	}
}

func TestProviderLetsSomebodyGo(t *testing.T) {
	eachProvider(t, account.Settings{}, func(w studio) {
		dev := w.device("anna@studio.example")
		id := dev.Profile.Person.ID
		other, bert := w.Device(id, ""), w.device("bert@studio.example") // the other was approved with a password
		_, cookie := w.browser(id)
		_, token := w.Token("anna@studio.example", "")
		w.admits(token)
		for range 2 {
			got, err := w.refresh(dev.Tokens.Refresh)
			if err != nil || !w.admits(got.ID) {
				w.Errorf("refresh = %v", err)
			}
		}

		w.server.Revoke(w, "anna@studio.example")
		w.ok(second(w.refresh(other.Tokens.Refresh))) // has nothing to do with the provider
		mark := w.mark()
		dbtest.Together(8, func(int) { w.refused("refresh", second(w.refresh(dev.Tokens.Refresh)), fault.TokenInvalid) })
		w.recorded("gone", mark, audit.IdentityLost)
		if r := w.records(mark)[0]; r.PersonID != id || r.ActorID != "" || r.Details["provider"] != "Studio" {
			w.Errorf("record = %+v", r)
		}
		if w.admits(dev.Tokens.ID) || w.admits(other.Tokens.ID) || w.knows(cookie) {
			w.Error("somebody whom the provider let go is signed in")
		}
		if !w.admits(token) || !w.admits(bert.Tokens.ID) {
			w.Error("more ended than the sign-ins of the person")
		}
		w.ok(second(w.refresh(bert.Tokens.Refresh)))

		back := w.device("anna@studio.example") // the provider knows them again
		w.ok(second(w.refresh(back.Tokens.Refresh)))
		if back.Profile.Person.ID != id {
			w.Errorf("came back as %s, want %s", back.Profile.Person.ID, id)
		}
	})
}

func TestProviderAway(t *testing.T) {
	eachProvider(t, account.Settings{}, func(w studio) {
		dev := w.device("anna@studio.example")
		byPassword := w.Device(dev.Profile.Person.ID, "")
		w.pass(25 * time.Hour) // the refresh token would be replaced
		w.server.Stop(w)
		mark := w.mark()
		for range 2 {
			w.refused("refresh", second(w.refresh(dev.Tokens.Refresh)), fault.Unavailable)
		}
		w.recorded("away", mark)
		if n := w.count(`person_identity WHERE asking IS NOT NULL`); n != 0 {
			w.Error("nobody else may ask")
		}
		w.ok(second(w.refresh(byPassword.Tokens.Refresh)))
		if n := w.count(`refresh_token WHERE device_id = $1`, dev.DeviceID); n != 1 || !w.admitsDevice(dev.DeviceID) {
			w.Errorf("%d refresh tokens, want nothing to have changed", n)
		}
		w.server.Resume(w)
		got, err := w.refresh(dev.Tokens.Refresh)
		if err != nil || !w.admits(got.ID) || got.Refresh == dev.Tokens.Refresh {
			w.Errorf("when it is back: refresh = %+v, %v", got, err)
		}
		w.ok(second(w.refresh(got.Refresh)))
	})
}

// The provider replaces its refresh tokens and takes an old one for theft, so
// of many who ask at once one may.
func TestProviderIsAskedOnceForMany(t *testing.T) {
	eachProvider(t, account.Settings{}, func(w studio) {
		dev := w.device("anna@studio.example")
		var tokens []string
		for range 3 {
			tokens = append(tokens, w.device("anna@studio.example").Tokens.Refresh)
		}
		tokens = append(tokens, dev.Tokens.Refresh)
		for range 2 {
			before := w.providerToken()
			dbtest.Together(16, func(i int) {
				if _, err := w.refresh(tokens[i%len(tokens)]); err != nil {
					w.Errorf("refresh = %v", err)
				}
			})
			if w.providerToken() == before {
				w.Error("the provider was not asked")
			}
		}
		if !w.admitsDevice(dev.DeviceID) || w.times(audit.IdentityLost) != 0 {
			w.Error("the provider took it for theft")
		}
	})
}

// providerToken is what the provider gave us for the one person it knows.
func (w studio) providerToken() string {
	w.Helper()
	var sealed, subject string
	w.ok(w.DB.QueryRow(w.Context(), `SELECT refresh, subject FROM person_identity`).Scan(&sealed, &subject))
	plain, err := w.Keys.BoxFor("person_identity").Open(sealed, "person_identity "+w.server.Issuer+" "+subject)
	w.ok(err)
	return string(plain)
}

// Who waits while another asks takes the answer that comes meanwhile.
func TestProviderHasAnswered(t *testing.T) {
	eachProvider(t, account.Settings{}, func(w studio) {
		dev := w.device("anna@studio.example")
		var i person.Identity
		w.do(func(tx *sqldb.Tx) (err error) {
			i, _, err = person.IdentityAt(w.Context(), tx, dev.Profile.Person.ID, "Studio")
			return err
		})
		w.server.Stop(w)
		w.pass(time.Minute) // so it answers after whoever begins now
		w.do(func(tx *sqldb.Tx) error { return person.RecordConfirmation(w.Context(), tx, i, i.Refresh) })
		w.pass(-time.Minute)
		w.ok(second(w.refresh(dev.Tokens.Refresh)))
		w.pass(time.Minute)
		w.refused("the next refresh", second(w.refresh(dev.Tokens.Refresh)), fault.Unavailable)
		w.server.Resume(w)
	})
}

// A provider that gave nothing to ask with is left alone, and so is one of
// whom nobody here has heard since.
func TestProviderThatCannotBeAsked(t *testing.T) {
	eachProvider(t, account.Settings{}, func(w studio) {
		dev := w.device("anna@studio.example")
		w.do(func(tx *sqldb.Tx) error {
			i, _, err := person.IdentityAt(w.Context(), tx, dev.Profile.Person.ID, "Studio")
			if err != nil {
				return err
			}
			return person.RecordConfirmation(w.Context(), tx, i, "")
		})
		w.server.Stop(w)
		w.ok(second(w.refresh(dev.Tokens.Refresh)))
		w.Accounts.OpenID.Provider = nil // the operator took it out of the settings
		w.ok(second(w.refresh(dev.Tokens.Refresh)))
		if w.times(audit.IdentityLost) != 0 {
			w.Error("somebody was let go")
		}
		w.server.Resume(w)
	})
}
