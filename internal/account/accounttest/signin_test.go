package accounttest_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"atelier/internal/account/accounttest"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
)

// signIn tries a password.
func (w *fixture) signIn(email, password string) error {
	return second(w.Accounts.SignIn.SignIn(w.Context(), email, password, w.Client()))
}

func TestSignIn(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		id := w.Person("anna@example.com")
		mark := w.mark()
		in, err := w.Accounts.SignIn.SignIn(w.Context(), "Anna@Example.com", password, session.Client{UserAgent: "Firefox", Address: "203.0.113.7"})
		w.ok(err)
		s, err := w.Accounts.SignIn.FindSession(w.Context(), in.Cookie, "203.0.113.7")
		w.ok(err)
		if in.Person.ID != id || s.PersonID != id || s.Person != w.byID(id) || s.Provider != person.Password || s.Agent != "Firefox" || s.Address != "203.0.113.7" {
			w.Errorf("entered = %+v, session = %+v", in, s)
		}
		w.recorded("sign in", mark, audit.SessionSignedIn)
		if r := w.records(mark)[0]; r.ActorID != id || r.PersonID != id || r.Address != "203.0.113.7" || r.Details["provider"] != person.Password {
			w.Errorf("record = %+v", r)
		}
		for _, cookie := range []string{"", "x", in.Cookie[1:], in.Cookie + "x"} {
			if w.knows(cookie) {
				w.Errorf("somebody is signed in with %q", cookie)
			}
		}
	})
}

func TestWrongAndUnknownAreOneAnswer(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		w.Person("anna@example.com")
		w.do(func(tx *sqldb.Tx) error { // somebody of a provider, without a password
			p, err := person.Create(w.Context(), tx, person.Draft{Email: "bert@example.com"})
			if err != nil {
				return err
			}
			return person.StoreIdentity(w.Context(), tx, person.Identity{Issuer: "https://id.example", Subject: "b", PersonID: p.ID, Provider: "Studio"})
		})
		want := w.signIn("anna@example.com", "a wrong password")
		w.refused("wrong", want, fault.Unauthenticated)
		for _, test := range []struct{ name, email, password string }{
			{"unknown", "nobody@example.com", password},
			{"no password", "bert@example.com", password},
			{"empty", "bert@example.com", ""},
			{"no address", "anna", password},
			{"a long password", "anna@example.com", unfit},
		} {
			mark := w.mark()
			if err := w.signIn(test.email, test.password); !reflect.DeepEqual(err, want) {
				w.Errorf("%s = %v, want %v", test.name, err, want)
			}
			if test.email != "anna" {
				w.recorded(test.name, mark, audit.SessionSignInFailed)
			}
		}
		if n := w.count(`web_session`); n != 0 {
			w.Errorf("%d sessions, want none", n)
		}
	})
}

// Wrong passwords of a pair of person and network are slowed down.
func TestPasswordTries(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		w.Person("anna@example.com")
		from := func(email, password string) error {
			return second(w.Accounts.SignIn.SignIn(w.Context(), email, password, session.Client{Address: "192.0.2.1"}))
		}
		for range 9 {
			w.refused("wrong", from("anna@example.com", unfit), fault.Unauthenticated)
		}
		w.ok(from("anna@example.com", password)) // does not count
		w.refused("the 10th", from("ANNA@example.com", unfit), fault.Unauthenticated)
		w.pass(10 * time.Second)
		for _, try := range []string{unfit, password} {
			if got := w.wait("the 11th", from("anna@example.com", try)); got != 20*time.Second {
				w.Errorf("wait = %v, want 20s", got)
			}
		}
		w.refused("somebody else", from("bert@example.com", unfit), fault.Unauthenticated)
		w.refused("from elsewhere", w.signIn("anna@example.com", unfit), fault.Unauthenticated)
		w.pass(20*time.Second - time.Microsecond)
		w.wait("a moment early", from("anna@example.com", password))
		w.pass(time.Microsecond)
		w.ok(from("anna@example.com", password))

		tries := 10
		for range 24 * 12 { // a day
			if !fault.Is(from("anna@example.com", unfit), fault.RateLimited) {
				tries++
			}
			w.pass(5 * time.Minute)
		}
		if tries < 90 || tries > 115 {
			w.Errorf("%d tries in a day, want a wait of 15 minutes after the first few", tries)
		}
	})
}

// A customer of an IPv6 network has 2^64 addresses and counts as one.
func TestPasswordTriesPerAddress(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		n := 0
		from := func(address string) error {
			n++
			return second(w.Accounts.SignIn.SignIn(w.Context(), fmt.Sprintf("p%d@example.com", n), unfit, session.Client{Address: address}))
		}
		for i := range 100 {
			w.refused("wrong", from(fmt.Sprintf("2001:db8:1:2:%x::1", i)), fault.Unauthenticated)
		}
		for _, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
			if got := w.wait("one more", from("2001:db8:1:2:ffff::1")); got != want*time.Second {
				w.Errorf("wait = %v, want %v", got, want*time.Second)
			}
			w.pass(want * time.Second)
			w.refused("after the wait", from("2001:db8:1:2:ffff::1"), fault.Unauthenticated)
		}
		w.refused("the next network", from("2001:db8:1:3::1"), fault.Unauthenticated)
		w.refused("an IPv4 address", from("192.0.2.1"), fault.Unauthenticated)
		w.pass(time.Hour)
		w.refused("an hour later", from("2001:db8:1:2::1"), fault.Unauthenticated)
	})
}

// A try that one limit refuses takes nothing from the other.
func TestRefusedTriesTakeNothing(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		from := func(email string) error {
			return second(w.Accounts.SignIn.SignIn(w.Context(), email, unfit, session.Client{Address: "192.0.2.1"}))
		}
		for range 10 {
			w.refused("wrong", from("anna@example.com"), fault.Unauthenticated)
		}
		for range 95 {
			w.wait("one more", from("anna@example.com"))
		}
		w.refused("from the same address", from("bert@example.com"), fault.Unauthenticated)
		if n := w.count(`rate_log`); n != 33 {
			w.Errorf("%d tries are kept, want 33", n)
		}
	})
}

func TestSuspend(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		id := w.Person("anna@example.com")
		in, cookie := w.browser(id)
		dev := w.Device(id, "blender")
		codes := w.approved(in)
		_, token := w.Token("anna@example.com", "")
		if !w.knows(cookie) || !w.admits(dev.Tokens.ID) || !w.admits(token) {
			w.Error("somebody in good standing is refused")
		}

		mark := w.mark()
		w.ok(w.Accounts.SignIn.SetSuspended(w.Context(), "anna@example.com", true))
		if w.knows(cookie) || w.admits(dev.Tokens.ID) || w.admits(token) {
			w.Error("somebody who was suspended is in")
		}
		w.because("sign in", w.signIn("anna@example.com", password), "suspended")
		w.refused("refresh", second(w.refresh(dev.Tokens.Refresh)), fault.TokenInvalid)
		w.refused("poll", second(w.poll(codes)), fault.DeviceCodeExpired)
		w.because("approve", w.Decide(in, w.Start("blender"), true), "suspended")
		w.recorded("suspended", mark, audit.PersonSuspended, audit.SessionSignInFailed)
		if r := w.records(mark)[1]; r.PersonID != id {
			w.Errorf("record = %+v, want it to name the person", r)
		}

		mark = w.mark()
		w.ok(w.Accounts.SignIn.SetSuspended(w.Context(), "anna@example.com", false))
		if !w.admits(token) {
			w.Error("the access token is dead for good")
		}
		if w.knows(cookie) || w.admits(dev.Tokens.ID) {
			w.Error("what was ended came back")
		}
		w.ok(w.signIn("anna@example.com", password))
		w.recorded("restored", mark, audit.PersonRestored, audit.SessionSignedIn)
		w.refused("nobody", w.Accounts.SignIn.SetSuspended(w.Context(), "nobody@example.com", true), fault.NotFound)
	})
}

func TestSessionIsTouchedOnceAMinute(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		_, cookie := w.browser(w.somebody("anna@example.com", true).ID)
		used := func(address string) (time.Duration, string) {
			_, err := w.Accounts.SignIn.FindSession(w.Context(), cookie, address)
			w.ok(err)
			again, err := w.Accounts.SignIn.FindSession(w.Context(), cookie, address)
			w.ok(err)
			return w.now().Sub(again.LastUsed), again.Address
		}
		for _, step := range []struct {
			pass    time.Duration
			address string
			ago     time.Duration
			want    string
		}{
			{0, "192.0.2.1", 0, ""},
			{59 * time.Second, "192.0.2.2", 59 * time.Second, ""},
			{time.Second, "192.0.2.3", 0, "192.0.2.3"},
		} {
			w.pass(step.pass)
			if ago, address := used(step.address); ago != step.ago || address != step.want {
				w.Errorf("used %v ago from %q, want %v from %q", ago, address, step.ago, step.want)
			}
		}
		w.pass(23*time.Hour + 59*time.Minute - time.Microsecond)
		if !w.knows(cookie) {
			w.Error("the session ended too soon")
		}
		w.pass(time.Microsecond)
		if w.knows(cookie) {
			w.Error("the session does not end")
		}
	})
}

func TestSignOut(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		anna, bert := w.somebody("anna@example.com", true), w.somebody("bert@example.com", true)
		one, first := w.browser(anna.ID)
		_, other := w.browser(anna.ID)
		dev := w.Device(anna.ID, "")
		mark := w.mark()
		w.ok(w.Accounts.SignIn.SignOut(w.Context(), principal.Principal{PersonID: bert.ID}, one.ID))
		if !w.knows(first) {
			w.Error("somebody else ended the session")
		}
		w.recorded("somebody else's", mark)
		for range 2 { // the second time there is nothing to end
			w.ok(w.Accounts.SignIn.SignOut(w.Context(), principal.Principal{PersonID: anna.ID}, one.ID))
		}
		if w.knows(first) || !w.knows(other) || !w.admits(dev.Tokens.ID) {
			w.Error("not just the one session ended")
		}
		w.recorded("once", mark, audit.SessionSignedOut)
	})
}
