package accounttest_test

import (
	"testing"
	"time"

	"atelier/internal/account"
	"atelier/internal/account/accounttest"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/device"
)

func TestGrant(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		anna := w.somebody("anna@example.com", true)
		c := w.Company("Studio", company.TeamPlan)
		team := w.Team(c, "Film", "member")
		mark := w.mark()
		for _, test := range []struct {
			email, team string
			tokens      int64
			want        int64
			code        fault.Code
		}{
			{anna.Email, "", 100, 100, ""},
			{anna.Email, "", -40, 60, ""},
			{anna.Email, "", -61, 0, fault.InsufficientBalance},
			{anna.Email, "", 0, 0, fault.Invalid},
			{"", team, 30, 30, ""},
			{"nobody@example.com", "", 1, 0, fault.NotFound},
			{"", "00000000000000000000", 1, 0, fault.NotFound},
		} {
			got, err := w.Accounts.Grants.GrantByOperator(w.Context(), test.email, test.team, test.tokens, "a note")
			if test.code != "" {
				w.refused("grant", err, test.code)
			} else if err != nil || got != test.want {
				w.Errorf("grant of %d = %d, %v, want %d", test.tokens, got, err, test.want)
			}
		}
		if p, t := w.balance(anna.ID), w.balance(team); p != 60 || t != 30 {
			w.Errorf("balances = %d, %d, want 60, 30", p, t)
		}
		w.recorded("grants", mark, audit.TokensGranted, audit.TokensGranted, audit.TokensGranted)
		rows := w.records(mark)
		if r := rows[1]; r.PersonID != anna.ID || r.ActorID != "" || r.Details["tokens"] != "-40" || r.Details["note"] != "a note" || r.Details["account"] != anna.ID {
			w.Errorf("record = %+v", r)
		}
		if r := rows[2]; r.CompanyID != c || r.PersonID != "" || r.Details["account"] != team {
			w.Errorf("record = %+v", r)
		}
	})
}

func TestDevicesForTheOperator(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		anna := w.somebody("anna@example.com", true)
		first := w.Device(anna.ID, "blender")
		w.pass(time.Second)
		last := w.Device(anna.ID, "")
		_, cookie := w.browser(anna.ID)
		list := func() (all []device.Device) {
			w.do(func(tx *sqldb.Tx) (err error) {
				all, err = w.Accounts.Devices.Devices.ListSignedIn(w.Context(), tx, anna.ID)
				return err
			})
			return all
		}
		if all := list(); len(all) != 2 || all[0].ID != last.DeviceID || all[1].ID != first.DeviceID {
			w.Errorf("devices = %+v", all)
		}
		mark := w.mark()
		w.ok(w.Accounts.Devices.RevokeDeviceOf(w.Context(), anna.Email, first.DeviceID))
		w.refused("a second time", w.Accounts.Devices.RevokeDeviceOf(w.Context(), anna.Email, first.DeviceID), fault.NotFound)
		if w.admits(first.Tokens.ID) || !w.admits(last.Tokens.ID) || !w.knows(cookie) || len(list()) != 1 {
			w.Error("not just the one device ended")
		}
		w.ok(w.Accounts.Devices.RevokeDeviceOf(w.Context(), anna.Email, ""))
		if w.admits(last.Tokens.ID) || w.knows(cookie) || len(list()) != 0 {
			w.Error("something is left")
		}
		w.recorded("revoked", mark, audit.DeviceRevoked, audit.SessionSignedOutEverywhere)
		if r := w.records(mark)[0]; r.ActorID != "" || r.PersonID != anna.ID {
			w.Errorf("record = %+v", r)
		}
		w.refused("revoke nobody's", w.Accounts.Devices.RevokeDeviceOf(w.Context(), "nobody@example.com", ""), fault.NotFound)
	})
}

func TestRotateKeys(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		dev := w.Device(w.somebody("anna@example.com", true).ID, "")
		mark := w.mark()
		kid, err := w.Accounts.Devices.RotateKeys(w.Context())
		w.ok(err)
		w.recorded("rotate", mark, audit.KeysRotated)
		if r := w.records(mark)[0]; r.Details["kid"] != kid || kid == "" {
			w.Errorf("record = %+v, want the key %s", r, kid)
		}
		fresh, err := w.refresh(dev.Tokens.Refresh)
		if err != nil || !w.admits(dev.Tokens.ID) || !w.admits(fresh.ID) {
			w.Errorf("after the change of keys not all tokens work: %v", err)
		}
	})
}

// Sweeping takes what ran out and nothing that still counts.
func TestSweep(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		anna := w.somebody("anna@example.com", true)
		c := w.Company("Studio", company.TeamPlan)
		old := w.Device(anna.ID, "")
		w.browser(anna.ID)
		w.invite("", c, "")
		_, err := w.Accounts.Devices.RotateKeys(w.Context())
		w.ok(err)
		w.pass(8 * 24 * time.Hour)
		dev := w.Device(anna.ID, "") // with a link, a session and a grant of its own
		_, cookie := w.browser(anna.ID)
		secret := w.invite("", c, "")
		mark := w.mark()
		w.ok(account.DeleteExpired(w.Context(), w.DB, w.Devices, w.Tokens))
		w.recorded("sweep", mark)
		for table, want := range map[string]int{
			`web_session`: 2, `person_link`: 1, `device_grant`: 1, `invitation`: 1, `signing_key`: 1, `device`: 2, `refresh_token`: 2,
		} {
			if n := w.count(table); n != want {
				w.Errorf("%d of %s, want %d", n, table, want)
			}
		}
		if n := w.count(`rate_log WHERE at < $1`, w.now().Add(-2*time.Hour).UnixMicro()); n != 0 {
			w.Errorf("%d old tries are left", n)
		}
		if !w.admits(dev.Tokens.ID) || !w.knows(cookie) || !w.admitsDevice(old.DeviceID) {
			w.Error("something that counts is gone")
		}
		w.ok(second(w.Accounts.SignUp.FindInvitation(w.Context(), secret)))
		w.ok(second(w.refresh(old.Tokens.Refresh)))
	})
}
