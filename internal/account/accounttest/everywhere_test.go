package accounttest_test

import (
	"testing"

	"atelier/internal/account/accounttest"
	"atelier/internal/account/signin"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/device"
	"atelier/internal/people/principal"
)

func TestSignOutEverywhere(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		anna, bert := w.somebody("anna@example.com", true), w.somebody("bert@example.com", true)
		hers, his := w.possessions(anna.ID, anna.Email), w.possessions(bert.ID, bert.Email)
		for range 3 {
			hers.devices = append(hers.devices, w.Device(anna.ID, ""))
		}
		mark := w.mark()
		w.ok(w.Accounts.SignIn.SignOutEverywhere(w.Context(), principal.Principal{PersonID: anna.ID, Address: "192.0.2.1"}, anna.ID))
		w.ended(hers, true)
		w.recorded("hers", mark, audit.SessionSignedOutEverywhere)
		if r := w.records(mark)[0]; r.ActorID != anna.ID || r.PersonID != anna.ID || r.Address != "192.0.2.1" {
			w.Errorf("record = %+v", r)
		}
		for _, cookie := range his.cookies {
			if !w.knows(cookie) {
				w.Error("somebody else was signed out of a browser")
			}
		}
		if !w.admits(his.devices[0].Tokens.ID) || his.grant() != nil {
			w.Error("somebody else was signed out of a device")
		}
	})
}

// What is approved and fetched at the moment of the sign-out was either there
// to be ended or comes too late.
func TestSignOutEverywhereAmongMany(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		for _, email := range []string{"anna@example.com", "bert@example.com", "carl@example.com"} {
			id := w.somebody(email, true).ID
			in, cookie := w.browser(id)
			dev := w.Device(id, "")
			var approved, pending []device.Codes
			var pages []device.Grant
			for range 16 {
				approved = append(approved, w.approved(in))
			}
			for range 8 { // no more than wrong codes are allowed: each holds a try while it lasts
				codes := w.Start("")
				g, err := w.open(in, codes.UserCode)
				w.ok(err)
				pending, pages = append(pending, codes), append(pages, g)
			}
			dbtest.Together(33, func(i int) {
				switch {
				case i == 16:
					if err := w.Accounts.SignIn.SignOutEverywhere(w.Context(), principal.Principal{PersonID: id}, id); err != nil {
						w.Error(err)
					}
				case i < 16:
					if _, err := w.poll(approved[i]); err != nil {
						w.refused("poll", err, fault.DeviceCodeExpired)
					}
				case i < 25:
					if err := w.decide(in, pages[i-17].ID, pending[i-17].UserCode, true); err != nil && !signin.IsSignedOut(err) {
						w.Errorf("approve = %v", err)
					}
				default:
					if _, err := w.poll(pending[i-25]); err != nil && !fault.Is(err, fault.AuthorizationPending) {
						w.refused("poll", err, fault.DeviceCodeExpired)
					}
				}
			})
			for _, codes := range append(approved, pending...) {
				if _, err := w.poll(codes); err == nil {
					w.Error("something approved before the sign-out signs a device in after it")
				}
			}
			for _, left := range []string{
				`device WHERE revoked IS NULL AND person_id = $1`, `device_grant WHERE state = 'approved' AND person_id = $1`, `web_session WHERE person_id = $1`,
			} {
				if n := w.count(left, id); n != 0 {
					w.Errorf("%d of %s, want none", n, left)
				}
			}
			if w.knows(cookie) || w.admits(dev.Tokens.ID) {
				w.Error("somebody is still signed in")
			}
		}
		if n := w.times(audit.SessionSignedOutEverywhere); n != 3 {
			w.Errorf("%d records, want 3", n)
		}
	})
}
