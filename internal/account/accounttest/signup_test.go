package accounttest_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/account"
	"atelier/internal/account/accounttest"
	"atelier/internal/account/signin"
	"atelier/internal/account/signup"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/money/ledger"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
	"atelier/internal/people/session"
)

// offerSetup is what the first start prints.
func (w *fixture) offerSetup() (token string) {
	w.Helper()
	w.do(func(tx *sqldb.Tx) (err error) { token, err = person.CreateSetupToken(w.Context(), tx); return err })
	return token
}

// balance gives the tokens of an account.
func (w *fixture) balance(id string) int64 {
	w.Helper()
	var all map[string]ledger.Balance
	w.do(func(tx *sqldb.Tx) (err error) {
		all, err = ledger.Balances(w.Context(), tx, []string{id}, 0)
		return err
	})
	return all[id].Tokens
}

func TestWhoMaySignUp(t *testing.T) {
	t.Parallel()
	const nothing, setup, byMail, byLink, foreign, unknown = "nothing", "a set-up token", "a mail", "a link", "a mail to another", "a secret nobody made"
	type answer struct {
		code     fault.Code
		reason   string
		verified bool
	}
	closed := answer{code: fault.Forbidden, reason: "closed"}
	uninvited := answer{code: fault.Forbidden, reason: "invitation"}
	for mode, answers := range map[signup.Policy]map[string]answer{
		signup.Open: {
			nothing: {}, setup: {verified: true}, byMail: {verified: true}, byLink: {},
			foreign: {code: fault.Invalid}, unknown: {code: fault.NotFound},
		},
		signup.ByInvitation: {
			nothing: uninvited, setup: {verified: true}, byMail: {verified: true}, byLink: {},
			foreign: {code: fault.Invalid}, unknown: {code: fault.NotFound},
		},
		signup.Closed: {
			nothing: closed, setup: {verified: true}, byMail: closed, byLink: closed, foreign: closed, unknown: closed,
		},
	} {
		t.Run(string(mode), func(t *testing.T) {
			each(t, accounttest.Options{Settings: account.Settings{Signup: mode}}, func(w *fixture) {
				token := w.offerSetup()
				if ok, err := w.Accounts.SignUp.IsSetupToken(w.Context(), token); err != nil || !ok {
					w.Errorf("may set up = %v, %v", ok, err)
				}
				c := w.Company("Studio", company.TeamPlan)
				team := w.Team(c, "Film", "member")
				secret := func(brings, email string) string {
					switch brings {
					case byMail:
						return w.invite(email, c, team)
					case byLink:
						return w.invite("", c, team)
					case foreign:
						return w.invite("other-"+email, c, team)
					case unknown:
						return strings.Repeat("x", 40)
					}
					return ""
				}
				apply := func(brings string) (email string, err error) {
					email = strings.ReplaceAll(brings, " ", "-") + "@example.com"
					a := signup.Application{Email: email, Invitation: secret(brings, email)}
					if brings == setup {
						a.Setup = token
					}
					want, in := answers[brings], signin.NewSession{}
					mark := w.mark()
					in, err = w.signUp(a)
					if want.code != "" {
						w.recorded(brings, mark)
						return email, err
					}
					if err != nil || !w.knows(in.Cookie) {
						w.Fatalf("%s = %+v, %v", brings, in, err)
					}
					if p := w.byID(in.Person.ID); p.EmailVerified != want.verified || p.Email != email || p.Provider != person.Password {
						w.Errorf("%s: person = %+v, want verified %v", brings, p, want.verified)
					}
					if n := len(w.mailsTo(email, "Verify")); (n == 0) != want.verified || n > 1 {
						w.Errorf("%s: %d mails to verify the address", brings, n)
					}
					teams := w.count(`team_member WHERE person_id = $1 AND team_id = $2 AND how = 'invitation'`, in.Person.ID, team)
					acts := []audit.Act{audit.PersonCreated, audit.SessionSignedIn}
					if a.Invitation != "" {
						acts = append([]audit.Act{audit.InvitationAccepted}, acts...)
					}
					if w.recorded(brings, mark, acts...); teams != len(acts)-2 {
						w.Errorf("%s: in %d teams", brings, teams)
					}
					return email, err
				}
				for brings, want := range answers {
					if want.code == "" {
						continue
					}
					email, err := apply(brings)
					w.refused(brings, err, want.code)
					if want.reason != "" {
						w.because(brings, err, want.reason)
					}
					if n := len(w.mailsTo(email, "Verify")); n != 0 {
						w.Errorf("%s: %d mails, want none", brings, n)
					}
				}
				if n := w.count(`person`); n != 0 {
					w.Errorf("%d people were made, want none", n)
				}
				w.ok(second(apply(setup)))
				for brings, want := range answers {
					if want.code == "" && brings != setup {
						w.ok(second(apply(brings)))
					}
				}
				if ok, err := w.Accounts.SignUp.IsSetupToken(w.Context(), token); err != nil || ok {
					w.Errorf("may set up again = %v, %v", ok, err)
				}
			})
		})
	}
}

func second[T any](_ T, err error) error { return err }

func TestSetupTokenIsForOnePerson(t *testing.T) {
	each(t, accounttest.Options{Settings: account.Settings{Signup: signup.Closed}}, func(w *fixture) {
		token := w.offerSetup()
		var in atomic.Int64
		dbtest.Together(6, func(i int) {
			_, err := w.signUp(signup.Application{Email: fmt.Sprintf("p%d@example.com", i), Setup: token})
			if err == nil {
				in.Add(1)
				return
			}
			w.because("sign up", err, "closed")
		})
		if n := w.count(`person`); n != 1 || in.Load() != 1 {
			w.Errorf("%d people, %d of them let in, want 1", n, in.Load())
		}
		_, err := w.signUp(signup.Application{Email: "late@example.com", Setup: token})
		w.because("sign up later", err, "closed")
		if ok, err := w.Accounts.SignUp.IsSetupToken(w.Context(), "short"); err != nil || ok {
			w.Errorf("may set up with anything = %v, %v", ok, err)
		}
	})
}

func TestUsedUpInvitationLeavesNobodyBehind(t *testing.T) {
	each(t, accounttest.Options{Settings: account.Settings{Signup: signup.ByInvitation, SignupGrant: 100}}, func(w *fixture) {
		c := w.Company("Studio", company.TeamPlan)
		secret := w.invite("", c, w.Team(c, "Film", "member"))
		var in atomic.Int64
		dbtest.Together(6, func(i int) {
			_, err := w.signUp(signup.Application{Email: fmt.Sprintf("p%d@example.com", i), Invitation: secret})
			switch {
			case err == nil:
				in.Add(1)
			case !fault.Is(err, fault.NotFound): // found used up at the end
				w.because("sign up", err, "invitation") // or at once
			}
		})
		for table, want := range map[string]int{
			`person`: 1, `web_session`: 1, `team_member`: 1, `company_member`: 1, `person_link`: 1,
			`ledger_account WHERE id NOT LIKE 'system:%'`: 1, `audit WHERE act = 'person.created'`: 1,
		} {
			if n := w.count(table); n != want {
				w.Errorf("%d of %s, want %d", n, table, want)
			}
		}
		if n := len(w.mails()); n != 1 || in.Load() != 1 {
			w.Errorf("%d mails, %d let in, want 1", n, in.Load())
		}
	})
}

func TestKnownAddressWhereSignUpSaysSo(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		w.somebody("anna@example.com", true)
		for _, email := range []string{"anna@example.com", "Anna@Example.COM"} {
			in, err := w.signUp(signup.Application{Email: email})
			w.refused(email, err, fault.Invalid)
			if f, ok := errors.AsType[*fault.Error](err); !ok || len(f.Fields) != 1 || f.Fields[0].Path != "email" || in.Cookie != "" {
				w.Errorf("sign up = %+v, %v, want a problem of the address", in, err)
			}
		}
		if people, mails := w.count(`person`), len(w.mails()); people != 1 || mails != 0 {
			w.Errorf("%d people, %d mails", people, mails)
		}
	})
}

// Where addresses must be verified the answer is the same for all of them.
func TestKnownAddressWhereSignUpIsNeutral(t *testing.T) {
	each(t, accounttest.Options{Verified: true, Settings: account.Settings{SignupGrant: 100}}, func(w *fixture) {
		anna := w.Person("anna@example.com")
		for _, email := range []string{"Anna@example.com", "bert@example.com"} {
			in, err := w.signUp(signup.Application{Email: email, Password: "another password"})
			if err != nil || in != (signin.NewSession{}) {
				w.Errorf("sign up of %s = %+v, %v, want nothing", email, in, err)
			}
		}
		if n := len(w.mailsTo("anna@example.com", "You already have an account")); n != 1 {
			w.Errorf("the owner got %d mails, want 1", n)
		}
		if n := len(w.mailsTo("bert@example.com", "Verify")); n != 1 || len(w.mails()) != 2 {
			w.Errorf("the new one got %d of %d mails, want 1 of 2", n, len(w.mails()))
		}
		if n := w.count(`web_session`); n != 0 {
			w.Errorf("%d sessions, want none", n)
		}
		if _, err := w.Accounts.SignIn.SignIn(w.Context(), "anna@example.com", password, w.Client()); err != nil {
			w.Errorf("sign in with the old password = %v", err)
		}
		if got := w.balance(anna); got != 100 {
			w.Errorf("balance = %d, want 100", got)
		}
		w.ok(w.Accounts.Verification.VerifyEmail(w.Context(), w.secret("bert@example.com", "Verify"), w.Client()))
		if _, err := w.Accounts.SignIn.SignIn(w.Context(), "bert@example.com", "another password", w.Client()); err != nil {
			w.Errorf("sign in of the new one = %v", err)
		}
	})
}

// Two at once with the same new address must not tell that it was new.
func TestNeutralSignUpsAtOnce(t *testing.T) {
	each(t, accounttest.Options{Verified: true}, func(w *fixture) {
		dbtest.Together(6, func(int) {
			if in, err := w.signUp(signup.Application{Email: "anna@example.com"}); err != nil || in != (signin.NewSession{}) {
				w.Errorf("sign up = %+v, %v, want nothing", in, err)
			}
		})
		if people, first, more := w.count(`person`), len(w.mailsTo("anna@example.com", "Verify")), len(w.mails()); people != 1 || first != 1 || more != 2 {
			w.Errorf("%d people, %d mails to verify of %d, want 1, 1 of 2", people, first, more)
		}
	})
}

// Strangers can't fill somebody's mailbox, and do not learn that they tried.
func TestOwnerIsNotRemindedWithoutEnd(t *testing.T) {
	each(t, accounttest.Options{Verified: true}, func(w *fixture) {
		w.somebody("anna@example.com", true)
		for _, want := range []int{1, 1, 2, 2, 3} { // after one minute and two more
			if in, err := w.signUp(signup.Application{Email: "anna@example.com"}); err != nil || in != (signin.NewSession{}) {
				w.Errorf("sign up = %+v, %v, want nothing", in, err)
			}
			if n := len(w.mails()); n != want {
				w.Errorf("%d mails, want %d", n, want)
			}
			w.pass(30 * time.Second * time.Duration(want))
		}
	})
}

// An invitation by mail proves the address, so that somebody comes in at once.
func TestInvitedWhereAddressesMustBeVerified(t *testing.T) {
	each(t, accounttest.Options{Verified: true}, func(w *fixture) {
		c := w.Company("Studio", company.TeamPlan)
		in, err := w.signUp(signup.Application{Email: "anna@example.com", Invitation: w.invite("anna@example.com", c, "")})
		if err != nil || !w.knows(in.Cookie) {
			w.Errorf("with a mail = %+v, %v", in, err)
		}
		in, err = w.signUp(signup.Application{Email: "bert@example.com", Invitation: w.invite("", c, "")})
		if err != nil || in.Cookie != "" {
			w.Errorf("with a link = %+v, %v, want nobody signed in", in, err)
		}
		if n := w.count(`company_member`); n != 2 {
			w.Errorf("%d members, want 2", n)
		}
	})
}

func TestSignUpGrantLandsOnce(t *testing.T) {
	each(t, accounttest.Options{Settings: account.Settings{SignupGrant: 100}}, func(w *fixture) {
		in, err := w.signUp(signup.Application{Email: "anna@example.com"})
		w.ok(err)
		w.refused("again", second(w.signUp(signup.Application{Email: "anna@example.com"})), fault.Invalid)
		w.ok(w.Accounts.Verification.VerifyEmail(w.Context(), w.secret("anna@example.com", "Verify"), w.Client()))
		w.ok(second(w.Accounts.SignIn.SignIn(w.Context(), "anna@example.com", password, w.Client())))
		w.Device(in.Person.ID, "")
		for _, id := range []string{in.Person.ID, w.Person("bert@example.com")} {
			if got := w.balance(id); got != 100 {
				w.Errorf("balance = %d, want 100", got)
			}
		}
	})
}

// TestSetupGrant gives tokens to whoever sets the service up, and to nobody who
// comes after or beside them.
func TestSetupGrant(t *testing.T) {
	each(t, accounttest.Options{Settings: account.Settings{SignupGrant: 100, SetupGrant: 1000}}, func(w *fixture) {
		token := w.offerSetup()
		mark := w.mark()
		in, err := w.signUp(signup.Application{Email: "anna@example.com", Setup: token})
		w.ok(err)
		w.recorded("the set-up", mark, audit.PersonCreated, audit.TokensGranted, audit.SessionSignedIn)
		granted := w.records(mark)[1]
		want := map[string]string{"account": in.Person.ID, "tokens": "1000", "note": "set-up", "from": "100", "to": "1100"}
		if !maps.Equal(granted.Details, want) || granted.PersonID != in.Person.ID || granted.ActorID != in.Person.ID {
			w.Errorf("entry = %+v, want %v", granted, want)
		}

		late, err := w.signUp(signup.Application{Email: "bert@example.com", Setup: token})
		w.ok(err)
		for id, tokens := range map[string]int64{in.Person.ID: 1100, late.Person.ID: 100, w.Person("cora@example.com"): 100} {
			if got := w.balance(id); got != tokens {
				w.Errorf("balance of %s = %d, want %d", id, got, tokens)
			}
		}
		if n := w.times(audit.TokensGranted); n != 1 {
			w.Errorf("%d grants, want 1", n)
		}
	})
}

// TestManySetUpAtOnce gives the tokens of the set-up once.
func TestManySetUpAtOnce(t *testing.T) {
	each(t, accounttest.Options{Settings: account.Settings{SetupGrant: 1000}}, func(w *fixture) {
		token := w.offerSetup()
		dbtest.Together(6, func(i int) {
			_, err := w.signUp(signup.Application{Email: fmt.Sprintf("p%d@example.com", i), Setup: token})
			w.ok(err)
		})
		if people, grants := w.count(`person`), w.times(audit.TokensGranted); people != 6 || grants != 1 {
			w.Errorf("%d people and %d grants, want 6 and 1", people, grants)
		}
	})
}

func TestSignUpsPerAddress(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		from := func(address string) error {
			return second(w.signUp(signup.Application{Email: "no address", Client: session.Client{Address: address}}))
		}
		for minute := range 5 {
			for range 20 {
				w.refused("sign up", from("203.0.113.7"), fault.Invalid)
			}
			if got, want := w.wait("one more", from("203.0.113.7")), time.Minute; got != want && minute < 4 {
				w.Errorf("minute %d: wait = %v, want %v", minute, got, want)
			}
			w.refused("another address", from("203.0.113.8"), fault.Invalid)
			w.pass(time.Minute)
		}
		for _, want := range []time.Duration{2, 4, 8, 16, 32, 60, 60} { // the first wait is over
			w.refused("one more in an hour", from("203.0.113.7"), fault.Invalid)
			if got := w.wait("and another", from("203.0.113.7")); got != want*time.Second {
				w.Errorf("wait = %v, want %v", got, want*time.Second)
			}
			w.pass(want * time.Second)
		}
	})
}

func TestApplicationsThatCannotBe(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		for _, test := range []struct{ name, email, password, field string }{
			{"no address", "anna", password, "email"},
			{"a name with the address", "Anna <anna@example.com>", password, "email"},
			{"an address that no mail goes to", "an\u0085na@example.com", password, "email"},
			{"two lines", "anna\u2028bert@example.com", password, "email"},
			{"a short password", "anna@example.com", "short", "password"},
		} {
			_, err := w.signUp(signup.Application{Email: test.email, Password: test.password})
			w.refused(test.name, err, fault.Invalid)
			if f, ok := errors.AsType[*fault.Error](err); ok && (len(f.Fields) != 1 || f.Fields[0].Path != test.field) {
				w.Errorf("%s: fields = %v, want %s", test.name, f.Fields, test.field)
			}
		}
		if n := w.count(`person`); n != 0 {
			w.Errorf("%d people, want none", n)
		}
	})
}
