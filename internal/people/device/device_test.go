package device_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/device"
)

func (w *fixture) revoke(personID, deviceID string) error {
	return w.write(func(tx *sqldb.Tx) error { return w.RevokeDevice(w.t.Context(), tx, personID, deviceID, "by its owner") })
}

func (w *fixture) revokeAll(personID string) (n int64, err error) {
	err = w.write(func(tx *sqldb.Tx) (err error) {
		n, err = w.RevokeAll(w.t.Context(), tx, personID, "signed out")
		return err
	})
	return n, err
}

func (w *fixture) list(personID string) (all []device.Device) {
	w.t.Helper()
	if err := w.db.Read(w.t.Context(), func(tx *sqldb.Tx) (err error) { all, err = w.ListSignedIn(w.t.Context(), tx, personID); return err }); err != nil {
		w.t.Fatal(err)
	}
	return all
}

func TestCheckReadsAfresh(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		who := w.person()
		dev, _ := w.signIn(who)
		check := func(want device.DeviceStatus) {
			t.Helper()
			got, err := w.CheckDevice(t.Context(), w.db, dev.ID)
			if err != nil || got != want {
				t.Errorf("check = %+v, %v, want %+v", got, err, want)
			}
		}
		want := device.DeviceStatus{
			PersonID:   who,
			PluginKind: "blender",
			Provider:   "password",
			LastUsed:   start,
			Email:      who, // the fixture's people have their id as the address
			Verified:   true,
		}
		check(want)
		w.pass(time.Hour)
		if err := w.write(func(tx *sqldb.Tx) error { return w.TouchDevice(t.Context(), tx, dev.ID, "2001:db8::1\n") }); err != nil {
			t.Fatal(err)
		}
		want.LastUsed = w.now()
		check(want)
		if got := w.list(who); len(got) != 1 || got[0].Address != "2001:db8::1\ufffd" || !got[0].LastUsed.Equal(w.now()) {
			t.Errorf("list = %+v", got)
		}
		w.exec(`UPDATE person SET suspended = TRUE, email_verified = FALSE WHERE id = $1`, who)
		want.Verified, want.Suspended = false, true
		check(want)
		if err := w.revoke(who, dev.ID); err != nil {
			t.Fatal(err)
		}
		if err := w.write(func(tx *sqldb.Tx) error { return w.TouchDevice(t.Context(), tx, dev.ID, "192.0.2.1") }); err != nil {
			t.Fatal(err)
		}
		if n := w.count(`SELECT count(*) FROM device WHERE address = '192.0.2.1'`); n != 0 {
			t.Error("a device was used after it was revoked")
		}
		for _, id := range []string{dev.ID, ids.New(), "", "x", dev.ID + "0", strings.Repeat("\x00", 20), "é" + dev.ID[2:]} {
			_, err := w.CheckDevice(t.Context(), w.db, id)
			w.want(fmt.Sprintf("check %q", id), err, fault.Unauthenticated)
			if fmt.Sprint(err) != "UNAUTHENTICATED: A valid credential is required." {
				t.Errorf("check %q = %v", id, err)
			}
		}
	})
}

func TestDevicesAreTheirOwners(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		anna, bert := w.person(), w.person()
		var annas []device.Device
		for range 3 {
			dev, _ := w.signIn(anna)
			annas = append([]device.Device{dev}, annas...)
			w.pass(time.Minute)
		}
		berts, _ := w.signIn(bert)
		if got := w.list(anna); fmt.Sprint(got) != fmt.Sprint(annas) {
			t.Errorf("list = %+v, want %+v", got, annas)
		}
		if err := w.revoke(anna, annas[1].ID); err != nil {
			t.Fatal(err)
		}
		if w.alive(annas[1].ID) || !w.alive(annas[0].ID) || !w.alive(annas[2].ID) {
			t.Error("another device than the one was revoked")
		}
		if got := w.list(anna); len(got) != 2 {
			t.Errorf("list = %+v, want two", got)
		}
		texts := map[string]bool{}
		for name, id := range map[string]string{"foreign": berts.ID, "unknown": ids.New(), "revoked": annas[1].ID, "no id": "x", "empty": "", "NUL": strings.Repeat("\x00", 20)} {
			err := w.revoke(anna, id)
			w.want(name, err, fault.NotFound)
			texts[fmt.Sprint(err)] = true
		}
		if len(texts) != 1 || !w.alive(berts.ID) {
			t.Errorf("texts = %v, want one, and the foreign device alive", texts)
		}
	})
}

func TestSignOutEverywhere(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		anna, bert := w.person(), w.person()
		var tokens, devices []string
		for range 5 {
			dev, refresh := w.signIn(anna)
			devices, tokens = append(devices, dev.ID), append(tokens, refresh)
		}
		berts, _ := w.signIn(bert)
		approved, pending, foreign := w.start(), w.start(), w.start()
		w.approve(approved.UserCode, anna)
		w.open(pending.UserCode, anna)
		w.approve(foreign.UserCode, bert)
		if err := w.revoke(anna, devices[0]); err != nil {
			t.Fatal(err)
		}
		if n, err := w.revokeAll(anna); err != nil || n != 4 {
			t.Errorf("revoked %d, %v, want the 4 that were left", n, err)
		}
		for n, id := range devices {
			if w.alive(id) {
				t.Errorf("device %d is alive", n)
			}
			_, err := w.refresh(tokens[n])
			w.want("a refresh token", err, fault.TokenInvalid)
		}
		_, _, err := w.poll(approved.DeviceCode)
		w.want("what was approved", err, fault.DeviceCodeExpired)
		_, _, err = w.poll(pending.DeviceCode)
		w.want("what was only seen", err, fault.AuthorizationPending)
		if _, _, err := w.poll(foreign.DeviceCode); err != nil || !w.alive(berts.ID) {
			t.Errorf("somebody else's: %v", err)
		}
		if n, err := w.revokeAll(anna); err != nil || n != 0 {
			t.Errorf("again = %d, %v", n, err)
		}
	})
}

// TestSignOutBeatsClaims has approved devices come for their tokens while the
// person signs out everywhere: whoever is quicker, they end dead.
func TestSignOutBeatsClaims(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		who := w.person()
		claims := 0
		for range 25 {
			var codes []device.Codes
			for range 6 {
				c := w.start()
				w.approve(c.UserCode, who)
				codes = append(codes, c)
			}
			var mu sync.Mutex
			var claimed []device.Device
			var tokens []string
			dbtest.Together(len(codes)+1, func(n int) {
				if n == len(codes)/2 {
					if _, err := w.revokeAll(who); err != nil {
						t.Error(err)
					}
					return
				}
				if n > len(codes)/2 {
					n--
				}
				dev, refresh, err := w.poll(codes[n].DeviceCode)
				if err != nil {
					w.want("a claim that lost", err, fault.DeviceCodeExpired)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				claimed, tokens = append(claimed, dev), append(tokens, refresh)
			})
			claims += len(claimed)
			for n, dev := range claimed {
				if w.alive(dev.ID) {
					t.Fatal("a device outlives the sign-out")
				}
				_, err := w.refresh(tokens[n])
				w.want("its refresh token", err, fault.TokenInvalid)
			}
			if n := w.count(`SELECT count(*) FROM device_grant WHERE state = 'approved'`); n != 0 {
				t.Fatalf("%d approved grants outlive the sign-out", n)
			}
			if n := w.count(`SELECT count(*) FROM device WHERE revoked IS NULL`); n != 0 {
				t.Fatalf("%d devices outlive the sign-out", n)
			}
		}
		t.Logf("%d of %d claims were quicker", claims, 25*6)
	})
}

// TestSignOutBeatsRefreshes does the same to refresh tokens that are due.
func TestSignOutBeatsRefreshes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		who := w.person()
		for range 10 {
			_, token := w.signIn(who)
			w.pass(25 * time.Hour)
			var mu sync.Mutex
			got := []string{token}
			dbtest.Together(8, func(n int) {
				if n == 4 {
					if _, err := w.revokeAll(who); err != nil {
						t.Error(err)
					}
					return
				}
				r, err := w.refresh(token)
				if err != nil {
					w.want("a refresh that lost", err, fault.TokenInvalid)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				got = append(got, r.Token)
			})
			for _, token := range got {
				_, err := w.refresh(token)
				w.want("a refresh token after the sign-out", err, fault.TokenInvalid)
			}
		}
	})
}

// TestLocksAreTakenInOrder has somebody hold the person while an approval, a
// claim or a sign-out begins: it waits, and holds nothing itself meanwhile.
func TestLocksAreTakenInOrder(t *testing.T) {
	t.Parallel()
	postgres(t, func(t *testing.T, w *fixture) {
		who := w.person()
		w.signIn(who)
		pending, approved := w.start(), w.start()
		w.approve(approved.UserCode, who)
		for _, a := range []struct {
			name string
			do   func() error
		}{
			{"an approval", func() error { _, err := w.decide(pending.UserCode, who, true); return err }},
			{"a claim", func() error { _, _, err := w.poll(approved.DeviceCode); return err }},
			{"a sign-out", func() error { _, err := w.revokeAll(who); return err }},
		} {
			done := make(chan error, 1)
			err := w.write(func(tx *sqldb.Tx) error {
				if _, err := tx.Exec(t.Context(), `UPDATE person SET email_verified = FALSE WHERE id = $1`, who); err != nil {
					return err
				}
				go func() { done <- a.do() }()
				for w.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 0 {
					if len(done) > 0 {
						t.Errorf("%s does not lock the person", a.name)
						return nil
					}
				}
				for _, table := range []string{"device_grant", "device", "refresh_token"} {
					if err := tx.EachRow(t.Context(), `SELECT 1 FROM `+table+` FOR UPDATE NOWAIT`, nil, func(sqldb.Scanner) error { return nil }); err != nil {
						t.Errorf("%s locks a %s first: %v", a.name, table, err)
					}
				}
				return nil
			})
			if err := errors.Join(err, <-done); err != nil {
				t.Errorf("%s: %v", a.name, err)
			}
		}
	})
}

// TestChecksFindWhatIsBroken breaks each rule and has it named.
func TestChecksFindWhatIsBroken(t *testing.T) {
	t.Parallel()
	breaks := map[string]string{
		"device codes are stored only as hashes":            `UPDATE device_grant SET user_hash = 'BCDFGHJK'`,
		"refresh tokens are stored only as SHA-256":         `UPDATE refresh_token SET hash = 'atl_r_' || substr(hash, 7)`,
		"an approved grant has a person":                    `UPDATE device_grant SET person_id = NULL WHERE state = 'approved'`,
		"every claimed grant, and no other, has a device":   `UPDATE device_grant SET state = 'gone' WHERE state = 'claimed'`,
		"a device has one valid refresh token":              `UPDATE refresh_token SET replaced = 1`,
		"the valid refresh token of a device is its newest": `UPDATE refresh_token SET generation = generation - 5 WHERE replaced IS NULL`,
	}
	each(t, func(t *testing.T, w *fixture) {
		for rule, breakIt := range breaks {
			who := w.person()
			w.approve(w.start().UserCode, who)
			_, token := w.signIn(who)
			w.pass(25 * time.Hour)
			if _, err := w.refresh(token); err != nil {
				t.Fatal(err)
			}
			w.exec(breakIt)
			bad, err := w.db.VerifyChecks(t.Context(), device.Checks)
			if err != nil || len(bad) == 0 {
				t.Errorf("%s: checks = %v, %v", rule, bad, err)
			}
			for _, v := range bad {
				if v.Check != rule {
					t.Errorf("%s: %s was named too", rule, v.Check)
				}
			}
			w.exec(`DELETE FROM refresh_token`)
			w.exec(`DELETE FROM device_grant`)
			w.exec(`DELETE FROM device`)
		}
	})
}

// TestListLive reads devices that are signed in, in pages.
func TestListLive(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		anna, bert := w.person(), w.person()
		var all, annas []string
		for _, id := range []string{anna, anna, bert, anna} {
			d, _ := w.signIn(id)
			all = append(all, d.ID)
			if id == anna {
				annas = append(annas, d.ID)
			}
		}
		ended, _ := w.signIn(anna)
		if err := w.revoke(anna, ended.ID); err != nil {
			t.Fatal(err)
		}
		for personID, want := range map[string][]string{"": all, anna: annas} {
			var got []string
			for after, size := "", 2; size == 2; {
				err := w.write(func(tx *sqldb.Tx) error {
					page, err := device.ListLive(t.Context(), tx, personID, after, 2)
					size = len(page)
					for _, d := range page {
						got = append(got, d.ID)
						after = d.ID
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("devices of %q = %q, want %q", personID, got, want)
			}
		}
		err := w.write(func(tx *sqldb.Tx) error {
			d, err := device.ByID(t.Context(), tx, ended.ID)
			if d.PersonID != anna || d.Revoked == nil {
				t.Errorf("device = %+v", d)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		for _, id := range []string{"", "nonsense", anna} {
			w.want("device "+id, w.write(func(tx *sqldb.Tx) error { _, err := device.ByID(t.Context(), tx, id); return err }), fault.NotFound)
		}
	})
}
