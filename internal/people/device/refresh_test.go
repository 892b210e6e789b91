package device_test

import (
	"fmt"
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

const day = 24 * time.Hour

func TestRefreshTokensRotate(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		dev, token := w.signIn(w.person())
		for range 3 {
			w.pass(day - time.Microsecond)
			r, err := w.refresh(token)
			if err != nil || r.Token != token || r.Reused || r.Device.ID != dev.ID || r.Device.PersonID != dev.PersonID || r.Device.Revoked != nil {
				t.Fatalf("a young one = %+v, %v", r, err)
			}
			w.pass(time.Microsecond)
			if r, err = w.refresh(token); err != nil || r.Token == token || r.Reused {
				t.Fatalf("an old one = %+v, %v", r, err)
			}
			if !strings.HasPrefix(r.Token, "atl_r_") || len(r.Token) != 49 || !ids.Alphanumeric(r.Token[6:]) {
				t.Fatalf("successor = %q", r.Token)
			}
			again, err := w.refresh(r.Token)
			if err != nil || again.Token != r.Token {
				t.Fatalf("the successor = %+v, %v", again, err)
			}
			token = r.Token
		}
		if n := w.count(`SELECT max(generation) FROM refresh_token`); n != 4 {
			t.Errorf("generation = %d, want 4", n)
		}
	})
}

// TestOldRefreshTokens presents tokens that were replaced.
func TestOldRefreshTokens(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name      string
		rotations int           // R1, then so many successors
		present   int           // which of them
		after     time.Duration // after the last rotation
		gives     int           // which one; 0: the device is dead
	}{
		{"the one before, at once", 1, 1, 0, 2},
		{"the one before, in its last second", 2, 2, 59 * time.Second, 3},
		{"the one before, at the end of its grace", 2, 2, 60 * time.Second, 3},
		{"the one before, too late", 2, 2, 61 * time.Second, 0},
		{"the one before, days later", 1, 1, 40 * day, 0},
		{"two generations back, within the grace", 2, 1, 0, 0},
		{"two generations back, later", 2, 1, day, 0},
		{"three generations back", 3, 1, time.Second, 0},
		{"the live one", 2, 3, 59 * time.Second, 3},
	}
	each(t, func(t *testing.T, w *fixture) {
		for _, c := range cases {
			// Rotates at every use, so that generations are seconds apart.
			o := w.options()
			o.RotateAfter = time.Second
			w.Devices = device.New(o)
			who := w.person()
			dev, token := w.signIn(who)
			other, _ := w.signIn(who)
			tokens := []string{token}
			for range c.rotations {
				w.pass(time.Second)
				r, err := w.refresh(token)
				if err != nil || r.Token == token {
					t.Fatalf("%s: not rotated: %v", c.name, err)
				}
				token = r.Token
				tokens = append(tokens, token)
			}
			w.pass(c.after)
			o.RotateAfter = 365 * day
			w.Devices = device.New(o)
			r, err := w.refresh(tokens[c.present-1])
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if c.gives > 0 {
				if r.Reused || r.Token != tokens[c.gives-1] || !w.alive(dev.ID) {
					t.Errorf("%s: got %+v, want R%d", c.name, r, c.gives)
				}
				continue
			}
			if !r.Reused || r.Token != "" || r.Device.ID != dev.ID || r.Device.PersonID != who || r.Device.Revoked == nil || w.alive(dev.ID) || !w.alive(other.ID) {
				t.Errorf("%s: got %+v, want that device dead", c.name, r)
			}
			if n := w.count(`SELECT count(*) FROM device WHERE id = $1 AND revoked_why = 'reused'`, dev.ID); n != 1 {
				t.Errorf("%s: the device was not revoked for it", c.name)
			}
			for n, token := range tokens {
				_, err := w.refresh(token)
				w.want(fmt.Sprintf("%s: R%d afterwards", c.name, n+1), err, fault.TokenInvalid)
			}
		}
	})
}

// TestALostAnswerSignsNobodyOut has a client store nothing of a refresh and go
// on with either value.
func TestALostAnswerSignsNobodyOut(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		_, first := w.signIn(w.person())
		w.pass(25 * time.Hour)
		lost, err := w.refresh(first)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			w.pass(10 * time.Second)
			for name, token := range map[string]string{"the old value": first, "the new value": lost.Token} {
				if r, err := w.refresh(token); err != nil || r.Token != lost.Token {
					t.Errorf("%s = %+v, %v", name, r, err)
				}
			}
		}
	})
}

func TestBadRefreshTokensLookAlike(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		who := w.person()
		_, live := w.signIn(who)
		dev, revoked := w.signIn(who)
		if err := w.revoke(who, dev.ID); err != nil {
			t.Fatal(err)
		}
		codes := w.start()
		for name, token := range map[string]string{
			"unknown": "atl_r_" + ids.Text(43), "revoked": revoked, "empty": "", "prefix only": "atl_r_", "longer": live + "0", "shorter": live[:48], "without prefix": live[6:],
			"other prefix": "atl_d_" + live[6:], "lower case": strings.ToLower(live), "space after": live + " ", "NUL": live[:48] + "\x00", "not UTF-8": live[:48] + "\xff", "a device code": codes.DeviceCode,
			"a JWT": "eyJhbGciOiJFZERTQSJ9.e30.AAAA", "huge": strings.Repeat(live, 10_000), "its hash": "atl_r_" + strings.Repeat("0", 43),
		} {
			r, err := w.refresh(token)
			w.want(name, err, fault.TokenInvalid)
			if fmt.Sprint(err) != "TOKEN_INVALID: This refresh token is not valid. Sign in again." || r.Token != "" || r.Reused {
				t.Errorf("%s = %+v, %v", name, r, err)
			}
		}
		if r, err := w.refresh(live); err != nil || r.Token != live {
			t.Errorf("the good one afterwards = %+v, %v", r, err)
		}
	})
}

func TestTheDeviceOfARefreshToken(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		who := w.person()
		dev, first := w.signIn(who)
		w.pass(25 * time.Hour)
		second, err := w.refresh(first)
		if err != nil {
			t.Fatal(err)
		}
		find := func(token string) string {
			t.Helper()
			got, found, err := w.ByRefresh(t.Context(), w.db, token)
			if err != nil || found != (got.ID != "") {
				t.Errorf("by refresh = %+v, %v, %v", got, found, err)
			}
			return got.ID
		}
		for name, token := range map[string]string{"live": second.Token, "replaced": first} {
			if got := find(token); got != dev.ID {
				t.Errorf("%s = %q, want %q", name, got, dev.ID)
			}
		}
		if err := w.revoke(who, dev.ID); err != nil {
			t.Fatal(err)
		}
		for name, token := range map[string]string{"revoked": second.Token, "unknown": "atl_r_" + ids.Text(43), "no token": "\x00"} {
			if got := find(token); got != "" {
				t.Errorf("%s = %q, want none", name, got)
			}
		}
	})
}

// TestBadRefreshTokensLockNothing holds that a refresh with the token of a
// revoked device takes as few steps as with an unknown one: neither waits for
// whoever has the row.
func TestBadRefreshTokensLockNothing(t *testing.T) {
	t.Parallel()
	postgres(t, func(t *testing.T, w *fixture) {
		who := w.person()
		dev, token := w.signIn(who)
		if err := w.revoke(who, dev.ID); err != nil {
			t.Fatal(err)
		}
		err := w.write(func(tx *sqldb.Tx) error {
			if _, err := tx.Exec(t.Context(), `UPDATE device SET address = address`); err != nil {
				return err
			}
			_, err := w.refresh(token)
			w.want("revoked", err, fault.TokenInvalid)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestManyRefreshesHaveOneSuccessor has 64 refreshes of one token at once when
// it is due.
func TestManyRefreshesHaveOneSuccessor(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		dev, token := w.signIn(w.person())
		for range 3 {
			w.pass(25 * time.Hour)
			var mu sync.Mutex
			got := map[string]int{}
			dbtest.Together(64, func(int) {
				r, err := w.refresh(token)
				mu.Lock()
				defer mu.Unlock()
				if err != nil || r.Reused {
					t.Errorf("refresh = %+v, %v", r, err)
				}
				got[r.Token]++
			})
			if len(got) != 1 || got[token] != 0 {
				t.Fatalf("successors = %v, want one", got)
			}
			for token = range got {
			}
			if n := w.count(`SELECT count(*) FROM refresh_token WHERE replaced IS NULL`); n != 1 || !w.alive(dev.ID) {
				t.Errorf("%d live tokens, want 1", n)
			}
		}
	})
}
