package accounttest_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"atelier/internal/account/accounttest"
	"atelier/internal/account/devicelogin"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/device"
	"atelier/internal/people/idtoken"
	"atelier/internal/people/person"
	"atelier/internal/people/session"
)

func TestRefresh(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		dev := w.Device(w.somebody("anna@example.com", true).ID, "blender")
		w.pass(time.Hour) // the ID token ran out
		if w.admits(dev.Tokens.ID) {
			w.Error("the ID token works for ever")
		}
		mark := w.mark()
		got, err := w.refresh(dev.Tokens.Refresh)
		w.ok(err)
		claims, err := w.Tokens.VerifyToken(w.Context(), got.ID)
		if want := (idtoken.Claims{PersonID: dev.Profile.Person.ID, DeviceID: dev.DeviceID}); err != nil || claims != want {
			w.Errorf("claims = %+v, %v, want %+v", claims, err, want)
		}
		if !w.admits(got.ID) || got.Refresh != dev.Tokens.Refresh || !got.Expires.Equal(w.now().Add(time.Hour)) {
			w.Errorf("tokens = %+v", got)
		}
		w.recorded("refresh", mark)
		for _, token := range []string{"", "x", got.ID, "atl_r_" + "0123456789012345678901234567890123456789012"} {
			w.refused("refresh with "+token, second(w.refresh(token)), fault.TokenInvalid)
		}
	})
}

func TestRefreshesAtOnceGiveOneSuccessor(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		dev := w.Device(w.somebody("anna@example.com", true).ID, "")
		w.pass(24 * time.Hour)
		var mu sync.Mutex
		given := map[string][]string{} // ID tokens by refresh token
		dbtest.Together(64, func(int) {
			got, err := w.refresh(dev.Tokens.Refresh)
			if err != nil {
				w.Errorf("refresh = %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			given[got.Refresh] = append(given[got.Refresh], got.ID)
		})
		if len(given) != 1 || given[dev.Tokens.Refresh] != nil {
			w.Errorf("%d refresh tokens were given, want one and not the old one", len(given))
		}
		for _, tokens := range given {
			if slices.ContainsFunc(tokens, func(id string) bool { return !w.admits(id) }) {
				w.Error("an ID token does not work")
			}
		}
		if live, all := w.count(`refresh_token WHERE replaced IS NULL`), w.count(`refresh_token`); live != 1 || all != 2 {
			w.Errorf("%d of %d refresh tokens live, want 1 of 2", live, all)
		}
	})
}

// A client that lost the answer asks again with what it has.
func TestLostAnswerOfARefresh(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		dev := w.Device(w.somebody("anna@example.com", true).ID, "")
		w.pass(24 * time.Hour)
		lost, err := w.refresh(dev.Tokens.Refresh)
		w.ok(err)
		w.pass(time.Minute)
		again, err := w.refresh(dev.Tokens.Refresh)
		w.ok(err)
		if again.Refresh != lost.Refresh || !w.admits(again.ID) {
			w.Errorf("the second answer = %+v, want the refresh token of the first", again)
		}
		w.ok(second(w.refresh(again.Refresh)))
	})
}

func TestReusedRefreshTokenKillsTheDevice(t *testing.T) {
	t.Parallel()
	for name, reuse := range map[string]func(w *fixture, first, next string) (reused, newest string){
		"after the grace": func(w *fixture, first, next string) (string, string) {
			w.pass(time.Minute + time.Microsecond)
			return first, next
		},
		"two generations back": func(w *fixture, first, next string) (string, string) {
			w.pass(10 * time.Second)
			got, err := w.refresh(next)
			w.ok(err)
			return first, got.Refresh
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, accounttest.Options{Device: device.Options{RotateAfter: 10 * time.Second}}, func(w *fixture) {
				id := w.somebody("anna@example.com", true).ID
				dev, other := w.Device(id, ""), w.Device(id, "")
				w.pass(10 * time.Second)
				next, err := w.refresh(dev.Tokens.Refresh)
				w.ok(err)
				reused, newest := reuse(w, dev.Tokens.Refresh, next.Refresh)
				mark := w.mark()
				got, err := w.Accounts.Devices.RefreshTokens(w.Context(), reused, session.Client{Address: "192.0.2.1"})
				w.refused("reuse", err, fault.TokenInvalid)
				if got != (devicelogin.Tokens{}) {
					w.Errorf("reuse gives %+v", got)
				}
				if w.admits(next.ID) || !w.admits(other.Tokens.ID) {
					w.Error("not just the device of the token ended")
				}
				for _, token := range []string{reused, newest} {
					w.refused("refresh", second(w.refresh(token)), fault.TokenInvalid)
				}
				w.recorded("reuse", mark, audit.RefreshReused)
				if r := w.records(mark)[0]; r.PersonID != id || r.Address != "192.0.2.1" || r.Details["device"] != dev.DeviceID {
					w.Errorf("record = %+v", r)
				}
			})
		})
	}
}

// Suspending somebody ends their devices; this holds even where one is left.
func TestSuspendedPersonDoesNotRefresh(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		id := w.somebody("anna@example.com", true).ID
		dev := w.Device(id, "")
		w.pass(24 * time.Hour)
		suspend := func(on bool) {
			w.do(func(tx *sqldb.Tx) error { return person.SetSuspended(w.Context(), tx, id, on) })
		}
		suspend(true)
		got, err := w.refresh(dev.Tokens.Refresh)
		w.refused("refresh", err, fault.TokenInvalid)
		if got != (devicelogin.Tokens{}) {
			w.Errorf("refresh gives %+v", got)
		}
		if n := w.count(`refresh_token`); n != 1 {
			w.Errorf("%d refresh tokens, want the refused refresh to change nothing", n)
		}
		suspend(false)
		w.ok(second(w.refresh(dev.Tokens.Refresh)))
	})
}
