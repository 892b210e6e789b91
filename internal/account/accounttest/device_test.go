package accounttest_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/account/accounttest"
	"atelier/internal/account/devicelogin"
	"atelier/internal/account/signin"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/device"
	"atelier/internal/people/idtoken"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
)

// open opens the approval page.
func (w *fixture) open(in signin.Session, userCode string) (device.Grant, error) {
	return w.Accounts.Devices.OpenGrant(w.Context(), in.Principal(w.Client().Address), userCode)
}

// decide answers on the page of a grant.
func (w *fixture) decide(in signin.Session, grantID, userCode string, approve bool) error {
	return second(w.Accounts.Devices.DecideGrant(w.Context(), in.Principal(w.Client().Address), devicelogin.Answer{GrantID: grantID, UserCode: userCode, Approve: approve}))
}

func TestDeviceSignIn(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		anna := w.somebody("anna@example.com", true)
		in, _ := w.browser(anna.ID)
		mark := w.mark()
		codes, err := w.Accounts.Devices.Start(w.Context(), "blender", session.Client{UserAgent: "Blender/5.0", Address: "203.0.113.7"})
		w.ok(err)
		if got, want := w.Accounts.Devices.VerificationURL(codes.UserCode), accounttest.AppURL+"/device?code="+codes.UserCode; got != want {
			w.Errorf("verification address = %s, want %s", got, want)
		}
		w.refused("poll", second(w.poll(codes)), fault.AuthorizationPending)
		g, err := w.open(in, strings.ToLower(strings.ReplaceAll(codes.UserCode, "-", "")))
		w.ok(err)
		if g.PluginKind != "blender" || g.Agent != "Blender/5.0" || g.Address != "203.0.113.7" || !g.Created.Equal(w.now()) || g.Locked {
			w.Errorf("grant = %+v", g)
		}
		w.recorded("looking", mark)
		w.ok(w.decide(in, g.ID, codes.UserCode, true))

		got, err := w.Accounts.Devices.Poll(w.Context(), codes.DeviceCode, session.Client{Address: "203.0.113.8"})
		w.ok(err)
		claims, err := w.Tokens.VerifyToken(w.Context(), got.Tokens.ID)
		if want := (idtoken.Claims{PersonID: anna.ID, DeviceID: got.DeviceID}); err != nil || claims != want {
			w.Errorf("claims = %+v, %v, want %+v", claims, err, want)
		}
		if !w.admits(got.Tokens.ID) || !got.Tokens.Expires.Equal(w.now().Add(time.Hour)) {
			w.Errorf("tokens = %+v", got.Tokens)
		}
		if r := got.Profile; r.Person.ID != anna.ID || r.Provider != person.Password || len(r.Accounts) != 1 || r.Accounts[0].ID != anna.ID {
			w.Errorf("record = %+v", r)
		}
		w.ok(second(w.refresh(got.Tokens.Refresh)))
		w.refused("poll again", second(w.poll(codes)), fault.DeviceCodeExpired)
		w.refused("the page again", second(w.open(in, codes.UserCode)), fault.Forbidden)

		w.recorded("signed in", mark, audit.DeviceApproved, audit.DeviceSignedIn)
		rows := w.records(mark)
		if r := rows[0]; r.ActorID != anna.ID || r.PersonID != anna.ID || r.Details["grant"] != g.ID || r.Details["plugin_kind"] != "blender" || r.Details["device_address"] != "203.0.113.7" {
			w.Errorf("approval = %+v", r)
		}
		if r := rows[1]; r.PersonID != anna.ID || r.Address != "203.0.113.8" || r.Details["device"] != got.DeviceID {
			w.Errorf("sign-in = %+v", r)
		}
		w.refused("a bad kind", second(w.Accounts.Devices.Start(w.Context(), "Blender!", w.Client())), fault.Invalid)
	})
}

func TestOnePollOfManyWins(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		in, _ := w.browser(w.somebody("anna@example.com", true).ID)
		codes := w.approved(in)
		var won atomic.Int64
		dbtest.Together(64, func(int) {
			got, err := w.poll(codes)
			if err != nil {
				w.refused("poll", err, fault.DeviceCodeExpired)
				return
			}
			won.Add(1)
			if !w.admits(got.Tokens.ID) {
				w.Error("the winner is not signed in")
			}
		})
		for table, want := range map[string]int{`device`: 1, `refresh_token`: 1, `person_notice`: 1, `person_link`: 1} {
			if n := w.count(table); n != want {
				w.Errorf("%d of %s, want %d", n, table, want)
			}
		}
		if n := w.times(audit.DeviceSignedIn); n != 1 || won.Load() != 1 || len(w.mails()) != 1 {
			w.Errorf("%d won, %d records, %d mails, want 1", won.Load(), n, len(w.mails()))
		}
	})
}

func TestRefuse(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		in, _ := w.browser(w.somebody("anna@example.com", true).ID)
		codes := w.Start("blender")
		g, err := w.open(in, codes.UserCode)
		w.ok(err)
		mark := w.mark()
		w.ok(w.decide(in, g.ID, codes.UserCode, false))
		w.refused("poll", second(w.poll(codes)), fault.DeviceCodeExpired)
		w.refused("approve it after all", w.decide(in, g.ID, codes.UserCode, true), fault.Forbidden)
		w.recorded("refused", mark, audit.DeviceRefused)
	})
}

func TestOneVerdictOfManyCounts(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		in, _ := w.browser(w.somebody("anna@example.com", true).ID)
		codes := w.Start("")
		g, err := w.open(in, codes.UserCode)
		w.ok(err)
		var approved, refused atomic.Int64
		dbtest.Together(32, func(i int) {
			err := w.decide(in, g.ID, codes.UserCode, i%2 == 0)
			switch {
			case err != nil && !fault.Is(err, fault.RateLimited):
				w.refused("verdict", err, fault.Forbidden)
			case err == nil && i%2 == 0:
				approved.Add(1)
			case err == nil:
				refused.Add(1)
			}
		})
		_, err = w.poll(codes)
		if approved.Load()+refused.Load() != 1 || (err == nil) != (approved.Load() == 1) {
			w.Errorf("%d approved, %d refused, then poll = %v", approved.Load(), refused.Load(), err)
		}
		if n := w.times(audit.DeviceApproved) + w.times(audit.DeviceRefused); n != 1 {
			w.Errorf("%d verdicts recorded, want 1", n)
		}
	})
}

func TestCodesEndWithTheirTime(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		in, _ := w.browser(w.somebody("anna@example.com", true).ID)
		late, fetchedLate := w.Start(""), w.Start("")
		g, err := w.open(in, late.UserCode)
		w.ok(err)
		w.pass(10*time.Minute - time.Microsecond)
		w.ok(w.Decide(in, fetchedLate, true))
		w.pass(time.Microsecond)
		w.refused("approve", w.decide(in, g.ID, late.UserCode, true), fault.NotFound)
		w.refused("open", second(w.open(in, late.UserCode)), fault.NotFound)
		for _, codes := range []device.Codes{late, fetchedLate} {
			w.refused("poll", second(w.poll(codes)), fault.DeviceCodeExpired)
		}
		if n := w.count(`device`); n != 0 {
			w.Errorf("%d devices, want none", n)
		}
	})
}

// A code that more than one person looks at was sent around.
func TestCodeSeenByMany(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		anna, _ := w.browser(w.somebody("anna@example.com", true).ID)
		bert, _ := w.browser(w.somebody("bert@example.com", true).ID)
		codes := w.Start("")
		mark := w.mark()
		g, err := w.open(anna, codes.UserCode)
		w.ok(err)
		if again, err := w.open(anna, codes.UserCode); err != nil || again.Locked {
			w.Errorf("the same person again = %+v, %v", again, err)
		}
		w.recorded("one person", mark)
		var first atomic.Int64
		dbtest.Together(16, func(i int) {
			who := []signin.Session{anna, bert}[i%2]
			g, err := w.open(who, codes.UserCode)
			if err != nil && !fault.Is(err, fault.RateLimited) {
				w.Error(err)
			}
			if g.JustLocked {
				first.Add(1)
			}
		})
		if seen, err := w.open(bert, codes.UserCode); err != nil || !seen.Locked || seen.JustLocked || first.Load() != 1 {
			w.Errorf("opened = %+v, %v, locked %d times", seen, err, first.Load())
		}
		w.recorded("two people", mark, audit.DeviceCodeSeenByMany)
		if r := w.records(mark)[0]; r.ActorID != bert.PersonID || r.Details["grant"] != g.ID {
			w.Errorf("record = %+v", r)
		}
		for _, who := range []signin.Session{anna, bert} {
			w.because("approve", w.decide(who, g.ID, codes.UserCode, true), "locked")
		}
		w.refused("poll", second(w.poll(codes)), fault.AuthorizationPending)
		w.ok(w.decide(bert, g.ID, codes.UserCode, false))
		w.recorded("the end", mark, audit.DeviceCodeSeenByMany, audit.DeviceRefused)
	})
}

func TestWrongConfirmationsKillTheCode(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		in, _ := w.browser(w.somebody("anna@example.com", true).ID)
		codes, other := w.Start(""), w.Start("")
		g, err := w.open(in, codes.UserCode)
		w.ok(err)
		mark := w.mark()
		for _, wrong := range []string{"BBBB-BBBB", "", other.UserCode, "BBBB-BBBC"} {
			got, err := w.Accounts.Devices.DecideGrant(w.Context(), in.Principal(w.Client().Address), devicelogin.Answer{GrantID: g.ID, UserCode: wrong, Approve: true})
			w.refused("a wrong code", err, fault.NotFound)
			if got != (device.Grant{}) {
				w.Errorf("a wrong code shows %+v", got)
			}
		}
		w.recorded("four", mark)
		w.refused("poll", second(w.poll(codes)), fault.AuthorizationPending)
		w.refused("the fifth", w.decide(in, g.ID, "BBBB-BBBD", true), fault.NotFound)
		w.recorded("five", mark, audit.DeviceCodeKilled)
		w.refused("the right one", w.decide(in, g.ID, codes.UserCode, true), fault.NotFound)
		w.refused("poll", second(w.poll(codes)), fault.DeviceCodeExpired)
		if _, err := w.poll(other); !fault.Is(err, fault.AuthorizationPending) {
			w.Errorf("the other device = %v, want it to wait", err)
		}
	})
}

// Confirming the code of a device that somebody else looks at is one more way
// to have seen it.
func TestWrongConfirmationLocksTheOtherCode(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		anna, _ := w.browser(w.somebody("anna@example.com", true).ID)
		bert, _ := w.browser(w.somebody("bert@example.com", true).ID)
		hers, his := w.Start(""), w.Start("")
		g, err := w.open(anna, hers.UserCode)
		w.ok(err)
		own, err := w.open(bert, his.UserCode)
		w.ok(err)
		mark := w.mark()
		w.refused("confirm", w.decide(bert, own.ID, hers.UserCode, true), fault.NotFound)
		w.recorded("confirm", mark, audit.DeviceCodeSeenByMany)
		w.because("approve", w.decide(anna, g.ID, hers.UserCode, true), "locked")
		w.ok(w.decide(bert, own.ID, his.UserCode, true))
	})
}

func TestEndedSessionApprovesNothing(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		in, _ := w.browser(w.somebody("anna@example.com", true).ID)
		codes := w.Start("")
		g, err := w.open(in, codes.UserCode)
		w.ok(err)
		w.ok(w.Accounts.SignIn.SignOut(w.Context(), principal.Principal{PersonID: in.PersonID}, in.ID))
		mark := w.mark()
		if err := w.decide(in, g.ID, codes.UserCode, true); !signin.IsSignedOut(err) {
			w.Errorf("approve = %v, want nobody to be signed in", err)
		}
		w.recorded("approve", mark)
		w.refused("poll", second(w.poll(codes)), fault.AuthorizationPending)
	})
}

func TestReplayKillsTheDevice(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		in, _ := w.browser(w.somebody("anna@example.com", true).ID)
		codes := w.approved(in)
		dev, err := w.poll(codes)
		w.ok(err)
		other := w.Device(in.PersonID, "")
		mark := w.mark()
		w.pass(10 * time.Second)
		w.refused("a retry", second(w.poll(codes)), fault.DeviceCodeExpired)
		if !w.admits(dev.Tokens.ID) {
			w.Error("a retry ended the device")
		}
		w.recorded("a retry", mark)
		w.pass(5 * time.Second)
		dbtest.Together(8, func(int) { w.refused("a replay", second(w.poll(codes)), fault.DeviceCodeExpired) })
		if w.admits(dev.Tokens.ID) || !w.admits(other.Tokens.ID) {
			w.Error("not just the device of the code ended")
		}
		w.refused("refresh", second(w.refresh(dev.Tokens.Refresh)), fault.TokenInvalid)
		w.recorded("replays", mark, audit.DeviceCodeReplayed)
		if r := w.records(mark)[0]; r.PersonID != in.PersonID || r.Details["device"] != dev.DeviceID {
			w.Errorf("record = %+v", r)
		}
	})
}

func TestRevokeDevice(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		anna, bert := w.somebody("anna@example.com", true), w.somebody("bert@example.com", true)
		dev, other := w.Device(anna.ID, ""), w.Device(anna.ID, "")
		revoke := func(who person.Person, id string) error {
			return w.Accounts.Devices.RevokeDevice(w.Context(), principal.Principal{PersonID: who.ID, Address: "192.0.2.1"}, who.ID, id)
		}
		mark := w.mark()
		foreign, unknown := revoke(bert, dev.DeviceID), revoke(bert, "00000000000000000000")
		w.refused("somebody else's", foreign, fault.NotFound)
		if foreign.Error() != unknown.Error() {
			w.Errorf("somebody else's = %v, one that never was = %v", foreign, unknown)
		}
		if !w.admits(dev.Tokens.ID) {
			w.Error("somebody else ended the device")
		}
		w.ok(revoke(anna, dev.DeviceID))
		if w.admits(dev.Tokens.ID) || !w.admits(other.Tokens.ID) {
			w.Error("not just the one device ended")
		}
		w.refused("a second time", revoke(anna, dev.DeviceID), fault.NotFound)
		w.recorded("once", mark, audit.DeviceRevoked)
		if r := w.records(mark)[0]; r.ActorID != anna.ID || r.PersonID != anna.ID || r.Address != "192.0.2.1" || r.Details["device"] != dev.DeviceID {
			w.Errorf("record = %+v", r)
		}
	})
}

func TestNewDeviceIsTold(t *testing.T) {
	each(t, accounttest.Options{}, func(w *fixture) {
		anna, bert := w.somebody("anna@example.com", true), w.somebody("bert@example.com", true)
		drop := func(secret string) error { return w.Accounts.Devices.EndDeviceByLink(w.Context(), secret, w.Client()) }
		dev, kept := w.Device(anna.ID, "blender"), w.Device(anna.ID, "")
		told := w.notices(anna.ID)
		if len(told) != 2 || told[0].Kind != "device" || !strings.Contains(told[0].Text+told[1].Text, "A new device (blender) was signed in as you from 10.") {
			w.Errorf("notices = %+v", told)
		}
		mails := w.mailsTo("anna@example.com", "A new device")
		if len(mails) != 2 || secretIn(told[0].Text+told[1].Text) != "" {
			w.Fatalf("mails = %+v, notices = %+v, want the link in the mails only", mails, told)
		}
		secret := secretIn(mails[0].Text)

		mark := w.mark()
		w.ok(w.Accounts.Devices.CheckEndLink(w.Context(), secret))
		w.refused("another kind of link", second(w.Accounts.SignIn.ResetPassword(w.Context(), secret, "another password", w.Client())), fault.NotFound)
		w.refused("a guess", drop(secret[1:]+"x"), fault.NotFound)
		foreign := w.offer(person.EndDeviceLink, person.Link{PersonID: bert.ID, Target: dev.DeviceID})
		w.refused("somebody else's link", drop(foreign), fault.NotFound)
		if !w.admits(dev.Tokens.ID) {
			w.Error("somebody else's link ended the device")
		}
		w.ok(drop(secret))
		if w.admits(dev.Tokens.ID) || !w.admits(kept.Tokens.ID) {
			w.Error("not just the device of the link ended")
		}
		w.refused("a second time", drop(secret), fault.NotFound)
		w.refused("a look at it", w.Accounts.Devices.CheckEndLink(w.Context(), secret), fault.NotFound)
		w.recorded("dropped", mark, audit.DeviceRevoked)
		if r := w.records(mark)[0]; r.PersonID != anna.ID || r.Details["device"] != dev.DeviceID {
			w.Errorf("record = %+v", r)
		}

		last := secretIn(mails[1].Text)
		w.pass(24*time.Hour - time.Microsecond)
		w.ok(w.Accounts.Devices.CheckEndLink(w.Context(), last))
		w.pass(time.Microsecond)
		w.refused("after a day", drop(last), fault.NotFound)
		if !w.admitsDevice(kept.DeviceID) {
			w.Error("a link that ran out ended the device")
		}
	})
}

// admitsDevice tells whether a device counts, whatever became of its ID token.
func (w *fixture) admitsDevice(id string) bool {
	_, err := w.Devices.CheckDevice(w.Context(), w.DB, id)
	return err == nil
}
