package accounttest_test

import (
	"fmt"
	"testing"
	"time"

	"atelier/internal/account/accounttest"
	"atelier/internal/account/signin"
	"atelier/internal/base/fault"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
)

// Wrong codes of one person do not stop the others of an address.
func TestWrongCodesOfANeighbour(t *testing.T) {
	each(t, accounttest.Options{Device: longLived}, func(w *fixture) {
		office := session.Client{Address: "192.0.2.1"}
		open := func(in signin.Session, code string) error {
			return second(w.Accounts.Devices.OpenGrant(w.Context(), in.Principal(office.Address), code))
		}
		for i := range 3 {
			in, _ := w.browser(w.somebody(fmt.Sprintf("p%d@example.com", i), true).ID)
			for range 10 {
				w.refused("a wrong code", open(in, "BBBB-BBBB"), fault.NotFound)
			}
		}
		anna, _ := w.browser(w.somebody("anna@example.com", true).ID)
		for range 20 { // right ones take nothing
			w.ok(open(anna, w.Start("").UserCode))
		}
		code := w.Start("").UserCode
		for range 3 {
			w.refused("a wrong code", open(anna, "BBBB-BBBB"), fault.NotFound)
		}
		w.wait("one guess too many there", open(anna, code))
		w.ok(second(w.Accounts.Devices.OpenGrant(w.Context(), anna.Principal("192.0.2.2"), code)))
		w.pass(time.Hour)
		w.ok(open(anna, code))
	})
}

// One address that begins sign-ins without end stops nobody else, and those of
// its own network wait for seconds.
func TestStartsWithoutEnd(t *testing.T) {
	o := accounttest.Options{Device: longLived}
	o.Device.MaxGrants = 60
	o.Device.MaxPerNetwork = 40
	each(t, o, func(w *fixture) {
		start := func(address string) (string, error) {
			codes, err := w.Accounts.Devices.Start(w.Context(), "", session.Client{Address: address})
			return codes.DeviceCode, err
		}
		mine, err := start("192.0.2.1")
		w.ok(err)
		for i := range 600 { // an hour
			if _, err := start(fmt.Sprintf("2001:db8::%x", i)); err != nil {
				w.wait("a start", err)
			}
			w.pass(6 * time.Second)
		}
		if n := w.count(`device_grant WHERE state = 'pending'`); n != 41 {
			w.Errorf("%d grants wait, want 40 of the network and one", n)
		}
		w.pass(30 * time.Second)
		w.ok(second(start("2001:db8::1")))
		w.ok(second(start("192.0.2.2")))
		w.refused("the first one", second(w.Accounts.Devices.Poll(w.Context(), mine, w.Client())), fault.AuthorizationPending)
	})
}

// A known browser has few tries of its own, so that whoever steals its cookie
// has won little; and it is as unknown as others after a sign-out everywhere.
func TestStolenCookieOfAKnownBrowser(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		w.Person("anna@example.com")
		w.Person("bert@example.com")
		from := func(email, password, address, cookie string) (signin.NewSession, error) {
			return w.Accounts.SignIn.SignIn(w.Context(), email, password, session.Client{Address: address, KnownBrowser: cookie})
		}
		in, err := from("anna@example.com", password, "192.0.2.1", "")
		w.ok(err)
		if w.knows(in.Browser) || w.admits(in.Browser) {
			w.Error("the cookie signs somebody in")
		}

		tries := 0
		for i := range 1000 { // at once, each from an address of its own
			_, err := from("anna@example.com", unfit, fmt.Sprintf("2001:db8:%x::1", i), in.Browser)
			if fault.Is(err, fault.Unauthenticated) {
				tries++
			}
		}
		without := 0
		for i := range 1000 {
			_, err := from("bert@example.com", unfit, fmt.Sprintf("2001:db8:%x::1", i), in.Browser)
			if fault.Is(err, fault.Unauthenticated) {
				without++
			}
		}
		if tries > without+10 {
			w.Errorf("%d tries with the cookie and %d without, want at most 10 more", tries, without)
		}
		_, err = from("anna@example.com", password, "192.0.2.1", in.Browser)
		w.ok(err)
	})
}

// What ends all sessions ends what is known about browsers.
func TestKnownBrowsersEnd(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		id := w.Person("anna@example.com")
		sign := func(cookie, password string) signin.NewSession {
			w.Helper()
			in, err := w.Accounts.SignIn.SignIn(w.Context(), "anna@example.com", password, session.Client{Address: "192.0.2.1", KnownBrowser: cookie})
			w.ok(err)
			return in
		}
		known := func() int { return w.count(`known_browser WHERE person_id = $1`, id) }
		in := sign("", password)
		s, err := w.Accounts.SignIn.FindSession(w.Context(), in.Cookie, "")
		w.ok(err)
		w.ok(w.Accounts.SignIn.SignOut(w.Context(), principal.Principal{PersonID: id}, s.ID))
		if n := known(); n != 1 {
			w.Errorf("%d known browsers after a sign-out, want 1", n)
		}
		w.ok(w.Accounts.SignIn.SignOutEverywhere(w.Context(), principal.Principal{PersonID: id}, id))
		if n := known(); n != 0 {
			w.Errorf("%d known browsers after a sign-out everywhere, want none", n)
		}

		in = sign(in.Browser, password)
		link, err := w.Accounts.SignIn.OperatorResetLink(w.Context(), "anna@example.com")
		w.ok(err)
		browser, err := w.Accounts.SignIn.ResetPassword(w.Context(), secretIn(link), "another password", w.Client())
		w.ok(err)
		if n := known(); n != 1 || browser == in.Browser {
			w.Errorf("%d known browsers after a reset, want the one that did it", n)
		}
		w.ok(w.Accounts.SignIn.SetSuspended(w.Context(), "anna@example.com", true))
		if n := known(); n != 0 {
			w.Errorf("%d known browsers of somebody who was suspended, want none", n)
		}
	})
}
