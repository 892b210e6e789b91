package identity

import (
	"context"
	"fmt"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/failpoint"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/device"
	"atelier/internal/people/idtoken"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
)

// StartDevice begins the sign-in of a device.
func (d *Desk) StartDevice(ctx context.Context, pluginKind string, v session.Client) (codes device.Codes, err error) {
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		// The keys stay locked until the grant is there, so that starts of one
		// network come one after the other.
		if err := paceNetwork(ctx, tx, "start", v, startsOfNetwork); err != nil {
			return err
		}
		codes, err = d.Devices.Start(ctx, tx, device.Request{PluginKind: pluginKind, Agent: v.UserAgent, Address: v.Address, Network: v.Network()})
		return err
	})
	if err != nil {
		return device.Codes{}, err
	}
	return codes, nil
}

// VerificationURL is where a person approves a device.
func (d *Desk) VerificationURL(userCode string) string {
	return d.Settings.AppURL + "/device?code=" + userCode
}

// OpenGrant shows a signed-in person the device that asks for them. Wrong codes
// count against the person and the address.
func (d *Desk) OpenGrant(ctx context.Context, s Session, userCode string, v session.Client) (g device.Grant, err error) {
	taken, err := d.tryCode(ctx, s.PersonID, v)
	if err != nil {
		return g, err
	}
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if g, err = d.Devices.Open(ctx, tx, userCode, s.PersonID); err != nil {
			return err
		}
		if err := taken.giveBack(ctx, tx); err != nil {
			return err
		}
		return seen(ctx, tx, s, g, v)
	})
	return g, err
}

// seen records that a person was the second to open a grant.
func seen(ctx context.Context, tx *sqldb.Tx, s Session, g device.Grant, v session.Client) error {
	if !g.JustLocked {
		return nil
	}
	return act(ctx, tx, audit.DeviceCodeSeenByMany, s.PersonID, v.Address, map[string]string{"grant": g.ID})
}

// Verdict is what a person says on the approval page.
type Verdict struct {
	GrantID  string // of the page that was shown
	UserCode string
	Approve  bool
}

// DecideGrant approves or refuses a device. A code that is not that of the page
// counts against its grant, which dies of the fifth.
func (d *Desk) DecideGrant(ctx context.Context, s Session, a Verdict, v session.Client) (g device.Grant, err error) {
	taken, err := d.tryCode(ctx, s.PersonID, v)
	if err != nil {
		return g, err
	}
	wrong := false
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		wrong = false
		if _, err := locked(ctx, tx, s.PersonID); err != nil {
			return err
		}
		if err := stillIn(ctx, tx, s); err != nil {
			return err
		}
		if g, err = d.Devices.Open(ctx, tx, a.UserCode, s.PersonID); fault.Is(err, fault.NotFound) || err == nil && g.ID != a.GrantID {
			wrong = true
			dead, err := d.Devices.WrongConfirmation(ctx, tx, a.GrantID)
			if err != nil {
				return err
			}
			if err := seen(ctx, tx, s, g, v); err != nil || !dead { // the code was that of another device
				return err
			}
			return act(ctx, tx, audit.DeviceCodeKilled, s.PersonID, v.Address, map[string]string{"grant": a.GrantID})
		}
		if err != nil {
			return err
		}
		decision := device.Decision{UserCode: a.UserCode, PersonID: s.PersonID, Provider: s.Provider, Approve: a.Approve}
		if g, err = d.Devices.Decide(ctx, tx, decision); err != nil {
			return err
		}
		if err := taken.giveBack(ctx, tx); err != nil {
			return err
		}
		done := audit.DeviceRefused
		if a.Approve {
			done = audit.DeviceApproved
		}
		return act(ctx, tx, done, s.PersonID, v.Address, map[string]string{"grant": g.ID, "plugin_kind": g.PluginKind, "device_address": g.Address})
	})
	if err == nil && wrong {
		err = fault.New(fault.NotFound, "This code is not known. Look at your device for the one it shows.")
	}
	if err != nil {
		return device.Grant{}, err
	}
	return g, nil
}

// Tokens are what a device is given to speak with.
type Tokens struct {
	ID      string
	Refresh string
	Expires time.Time // of the ID token
}

// SignedIn is what a device learns when its sign-in is through.
type SignedIn struct {
	Tokens   Tokens
	DeviceID string
	Record   Record
}

// dropLifetime is how long the link in the mail about a new device works.
const dropLifetime = 24 * time.Hour

// Poll gives a device its tokens once a person approved it, exactly once.
func (d *Desk) Poll(ctx context.Context, deviceCode string, v session.Client) (in SignedIn, err error) {
	err = d.Devices.Poll(ctx, d.DB, deviceCode, func(tx *sqldb.Tx, _ device.Grant, dev device.Device, refresh string) error {
		p, err := locked(ctx, tx, dev.PersonID)
		if err != nil {
			return err
		}
		id, expires, err := d.Tokens.Sign(ctx, tx, idtoken.Claims{PersonID: p.ID, DeviceID: dev.ID})
		if err != nil {
			return err
		}
		if err := person.SignedIn(ctx, tx, p.ID); err != nil {
			return err
		}
		in = SignedIn{Tokens: Tokens{id, refresh, expires}, DeviceID: dev.ID}
		if in.Record, err = d.record(ctx, tx, principalOf(dev)); err != nil {
			return err
		}
		if err := d.tellDevice(ctx, tx, p, dev); err != nil {
			return err
		}
		return act(ctx, tx, audit.DeviceSignedIn, p.ID, v.Address, map[string]string{"device": dev.ID, "plugin_kind": dev.PluginKind})
	})
	if err == nil {
		failpoint.Hit("poll.after_claim_before_reply")
	}
	return in, err
}

// principalOf returns the principal of the ID tokens of a device.
func principalOf(dev device.Device) principal.Principal {
	return principal.Principal{
		PersonID:   dev.PersonID,
		Credential: principal.Credential{Kind: principal.IDToken, ID: dev.ID, Provider: dev.Provider},
		Plugin:     dev.PluginKind,
	}
}

// tellDevice tells a person about a new device, with a link that ends it.
func (d *Desk) tellDevice(ctx context.Context, tx *sqldb.Tx, p person.Person, dev device.Device) error {
	secret, err := person.OfferLink(ctx, tx, person.DropLink, person.Link{PersonID: p.ID, Target: dev.ID}, dropLifetime)
	if err != nil {
		return err
	}
	what := "A new device"
	if dev.PluginKind != "" {
		what = "A new device (" + dev.PluginKind + ")"
	}
	text := fmt.Sprintf("%s was signed in as you from %s at %s.", what, dev.Address, dev.Created.Format("2006-01-02 15:04 UTC"))
	return d.tell(ctx, tx, p, "device", "A new device was signed in", text,
		"If this was not you, sign it out with one click: "+d.link("/drop", secret)+"\n\nThe link works once, for a day. All your devices: "+d.Settings.AppURL+"/devices")
}

// Replayed records that a device code was presented long after its device had
// fetched its tokens with it; the device is revoked by then.
func Replayed(ctx context.Context, tx *sqldb.Tx, dev device.Device) error {
	return audit.Add(ctx, tx, audit.Entry{Act: audit.DeviceCodeReplayed, PersonID: dev.PersonID, Details: map[string]string{"device": dev.ID}})
}

// Refresh gives a device a new ID token.
func (d *Desk) Refresh(ctx context.Context, refreshToken string, v session.Client) (t Tokens, err error) {
	if err := d.confirm(ctx, refreshToken); err != nil {
		return t, err
	}
	reused := false
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		r, err := d.Devices.Refresh(ctx, tx, refreshToken)
		if err != nil {
			return err
		}
		if reused = r.Reused; reused { // its device was revoked just now
			return audit.Add(ctx, tx, audit.Entry{Act: audit.RefreshReused, PersonID: r.Device.PersonID, Address: v.Address, Details: map[string]string{"device": r.Device.ID}})
		}
		p, err := person.ByID(ctx, tx, r.Device.PersonID)
		if err != nil {
			return err
		}
		if p.Suspended {
			return device.ErrTokenInvalid
		}
		id, expires, err := d.Tokens.Sign(ctx, tx, idtoken.Claims{PersonID: r.Device.PersonID, DeviceID: r.Device.ID})
		t = Tokens{id, r.Token, expires}
		return err
	})
	if err != nil {
		return Tokens{}, err
	}
	failpoint.Hit("refresh.after_commit_before_reply")
	if reused {
		return Tokens{}, device.ErrTokenInvalid
	}
	return t, nil
}

// ListDevices gives a page of the devices on which a person is signed in, newest
// first.
func (d *Desk) ListDevices(ctx context.Context, personID string, after *device.After, limit int) (all []device.Device, err error) {
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		all, err = d.Devices.ListPage(ctx, tx, personID, after, limit)
		return err
	})
	return all, err
}

// RevokeDevice ends one device of a person.
func (d *Desk) RevokeDevice(ctx context.Context, a principal.Principal, personID, deviceID string) error {
	err := d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := d.Devices.Revoke(ctx, tx, personID, deviceID, "revoked"); err != nil {
			return err
		}
		return audit.Add(ctx, tx, audit.Entry{
			Act:      audit.DeviceRevoked,
			ActorID:  a.PersonID,
			PersonID: personID,
			Address:  a.Address,
			Details:  map[string]string{"device": deviceID},
		})
	})
	if err == nil {
		failpoint.Hit("revoke.after_commit_before_reply")
	}
	return err
}

// DropDevice ends a device with the link of the mail that told about it.
func (d *Desk) DropDevice(ctx context.Context, secret string, v session.Client) error {
	return d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		l, err := person.UseLink(ctx, tx, person.DropLink, secret)
		if err != nil {
			return err
		}
		if err := d.Devices.Revoke(ctx, tx, l.PersonID, l.Target, "revoked by link"); err != nil {
			return err
		}
		return act(ctx, tx, audit.DeviceRevoked, l.PersonID, v.Address, map[string]string{"device": l.Target})
	})
}

// MayDrop tells whether a link to end a device works.
func (d *Desk) MayDrop(ctx context.Context, secret string) error {
	return d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		_, err := person.LookLink(ctx, tx, person.DropLink, secret)
		return err
	})
}
