package accounttest_test

import (
	"fmt"
	"testing"
	"time"

	"atelier/internal/account/accounttest"
	"atelier/internal/account/signin"
	"atelier/internal/base/fault"
	"atelier/internal/people/device"
	"atelier/internal/people/session"
)

// longLived codes outlast the windows of the limits.
var longLived = device.Options{ExpiresIn: 3 * time.Hour}

func TestWrongCodesOfAPerson(t *testing.T) {
	each(t, accounttest.Options{Device: longLived}, func(w *fixture) {
		in, _ := w.browser(w.somebody("anna@example.com", true).ID)
		other, _ := w.browser(w.somebody("bert@example.com", true).ID)
		codes := w.Start("")
		for round := range 5 {
			for i := range 10 {
				w.refused("a wrong code", second(w.open(in, "BBBB-BBBB")), fault.NotFound)
				if i < 9 {
					w.ok(second(w.open(in, codes.UserCode))) // does not count
				}
			}
			for _, code := range []string{"BBBB-BBBB", codes.UserCode} {
				if got := w.wait("the 11th", second(w.open(in, code))); got != 10*time.Minute && round < 4 {
					w.Errorf("wait = %v, want 10m", got)
				}
			}
			w.wait("in a confirmation", w.decide(in, "any", codes.UserCode, true))
			if round < 4 {
				w.pass(10 * time.Minute)
			}
		}
		w.refused("somebody else", second(w.open(other, "BBBB-BBBB")), fault.NotFound)
		w.pass(10 * time.Minute)
		if got := w.wait("the 51st in an hour", second(w.open(in, codes.UserCode))); got != 10*time.Minute {
			w.Errorf("wait = %v, want 10m", got)
		}
		w.pass(10 * time.Minute)
		w.ok(second(w.open(in, codes.UserCode)))
	})
}

// Where a network has used up its wrong codes each person has three a day.
func TestWrongCodesFromAnAddress(t *testing.T) {
	each(t, accounttest.Options{Device: longLived}, func(w *fixture) {
		codes := w.Start("")
		var people []signin.Session
		for i := range 5 {
			in, _ := w.browser(w.somebody(fmt.Sprintf("p%d@example.com", i), true).ID)
			people = append(people, in)
		}
		from := func(n int, address, code string) error {
			return second(w.Accounts.Devices.OpenGrant(w.Context(), people[n].Principal(address), code))
		}
		for i := range 30 + 4*3 {
			w.refused("a wrong code", from(i%4, fmt.Sprintf("2001:db8::%x", i), "BBBB-BBBB"), fault.NotFound)
			if i%4 == 3 {
				w.pass(time.Minute)
			}
		}
		for n := range 4 {
			w.wait("one more", from(n, "2001:db8::ffff", codes.UserCode))
		}
		w.ok(from(4, "2001:db8::ffff", codes.UserCode))
		w.pass(time.Hour)
		w.refused("an hour later", from(3, "2001:db8::1", "BBBB-BBBB"), fault.NotFound)
	})
}

func TestStartsPerAddress(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		from := func(address string) error {
			return second(w.Accounts.Devices.Start(w.Context(), "", session.Client{Address: address}))
		}
		for minute := range 5 {
			for i := range 20 {
				w.ok(from(fmt.Sprintf("2001:db8::%x", i)))
			}
			if got := w.wait("the 21st", from("2001:db8::ffff")); got != time.Minute && minute < 4 {
				w.Errorf("wait = %v, want 1m", got)
			}
			w.ok(from("2001:db8:0:1::1"))
			w.pass(time.Minute)
		}
		for _, want := range []time.Duration{2, 4, 8, 16, 30, 30} { // the first wait is over
			w.ok(from("2001:db8::1"))
			if got := w.wait("another in the hour", from("2001:db8::2")); got != want*time.Second {
				w.Errorf("wait = %v, want %v", got, want*time.Second)
			}
			w.pass(want * time.Second)
		}
		if n := w.count(`device_grant`); n != 111 {
			w.Errorf("%d grants, want 111", n)
		}
	})
}

// Who signs in many devices guesses nothing.
func TestRightCodesDoNotCount(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		in, _ := w.browser(w.somebody("anna@example.com", true).ID)
		for i := range 11 {
			w.ok(w.Decide(in, w.Start(""), i%2 == 0))
		}
	})
}
