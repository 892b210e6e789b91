// Package devicelogin signs people in on devices (RFC 8628): it starts and
// approves sign-ins, issues ID tokens and refresh tokens to devices, and
// revokes devices.
package devicelogin

import (
	"context"
	"fmt"
	"time"

	"atelier/internal/account/flow"
	"atelier/internal/account/openidlogin"
	"atelier/internal/account/profile"
	"atelier/internal/account/signin"
	"atelier/internal/base/audit"
	"atelier/internal/base/failpoint"
	"atelier/internal/base/fault"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/device"
	"atelier/internal/people/idtoken"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
)

// Service signs people in and out on devices. It is safe for concurrent use.
type Service struct {
	DB       *sqldb.DB
	Devices  *device.Devices
	Tokens   *idtoken.Issuer
	SignIn   *signin.Service
	OpenID   *openidlogin.Service
	Profiles *profile.Service
	Mail     flow.Mailer
}

// startsOfNetwork limits the device sign-ins that can be started from one
// network (see session.NetworkOf).
var startsOfNetwork = ratelimit.Backoff{Free: 100, Span: time.Hour, First: time.Second, MaxWait: 30 * time.Second}

// Rate limits on entering wrong user codes.
var (
	codesOfPerson  = []ratelimit.Window{{Max: 10, Span: 10 * time.Minute}, {Max: 50, Span: time.Hour}}
	codesOfNetwork = ratelimit.Window{Max: 30, Span: time.Hour}
	// extraCodesOfPerson applies per person after the limit of their network
	// has been reached.
	extraCodesOfPerson = ratelimit.Window{Max: 3, Span: 24 * time.Hour}
)

// Start starts a device sign-in and returns its codes.
func (s *Service) Start(ctx context.Context, pluginKind string, c session.Client) (codes device.Codes, err error) {
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		// The rate-limit keys stay locked until the transaction ends, so that
		// concurrent requests from one network run one after the other.
		if err := flow.LimitNetwork(ctx, tx, "start", c.Network(), startsOfNetwork); err != nil {
			return err
		}
		codes, err = s.Devices.StartGrant(ctx, tx, device.Request{PluginKind: pluginKind, Agent: c.UserAgent, Address: c.Address, Network: c.Network()})
		return err
	})
	if err != nil {
		return device.Codes{}, err
	}
	return codes, nil
}

// VerificationURL returns the URL of the page on which a person approves the
// device sign-in with the given user code.
func (s *Service) VerificationURL(userCode string) string {
	return s.Mail.AppURL + "/device?code=" + userCode
}

// OpenGrant returns the device sign-in with the given user code, so that the
// person can approve it. Wrong codes count towards the rate limits of the
// person and their network.
func (s *Service) OpenGrant(ctx context.Context, p principal.Principal, userCode string) (g device.Grant, err error) {
	attempt, err := s.tryCode(ctx, p)
	if err != nil {
		return g, err
	}
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if g, err = s.Devices.OpenGrant(ctx, tx, userCode, p.PersonID); err != nil {
			return err
		}
		if err := attempt.ReturnUnits(ctx, tx); err != nil {
			return err
		}
		return recordSecondViewer(ctx, tx, p, g)
	})
	return g, err
}

// recordSecondViewer adds an audit log entry if OpenGrant has just locked the
// device sign-in because a second person opened it.
func recordSecondViewer(ctx context.Context, tx *sqldb.Tx, p principal.Principal, g device.Grant) error {
	if !g.JustLocked {
		return nil
	}
	return flow.RecordOwnAct(ctx, tx, audit.DeviceCodeSeenByMany, p.PersonID, p.Address, map[string]string{"grant": g.ID})
}

// Answer is the form that a person submits on the approval page of a device.
type Answer struct {
	GrantID  string // id of the device sign-in that the page showed
	UserCode string
	Approve  bool
}

// DecideGrant approves or refuses a device sign-in. If the submitted code does
// not belong to the sign-in that the page showed, it counts as a wrong code for
// that sign-in; the fifth wrong code revokes the sign-in.
func (s *Service) DecideGrant(ctx context.Context, p principal.Principal, a Answer) (g device.Grant, err error) {
	attempt, err := s.tryCode(ctx, p)
	if err != nil {
		return g, err
	}
	wrong := false
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		wrong = false
		if _, err := flow.LockActivePerson(ctx, tx, p.PersonID); err != nil {
			return err
		}
		if err := flow.RequireSession(ctx, tx, p.Credential.ID); err != nil {
			return err
		}
		if g, err = s.Devices.OpenGrant(ctx, tx, a.UserCode, p.PersonID); fault.Is(err, fault.NotFound) || err == nil && g.ID != a.GrantID {
			wrong = true
			dead, err := s.Devices.CountWrongCode(ctx, tx, a.GrantID)
			if err != nil {
				return err
			}
			if err := recordSecondViewer(ctx, tx, p, g); err != nil || !dead { // g is set if the code belongs to another device sign-in
				return err
			}
			return flow.RecordOwnAct(ctx, tx, audit.DeviceCodeKilled, p.PersonID, p.Address, map[string]string{"grant": a.GrantID})
		}
		if err != nil {
			return err
		}
		decision := device.Decision{UserCode: a.UserCode, PersonID: p.PersonID, Provider: p.Credential.Provider, Approve: a.Approve}
		if g, err = s.Devices.DecideGrant(ctx, tx, decision); err != nil {
			return err
		}
		if err := attempt.ReturnUnits(ctx, tx); err != nil {
			return err
		}
		act := audit.DeviceRefused
		if a.Approve {
			act = audit.DeviceApproved
		}
		return flow.RecordOwnAct(ctx, tx, act, p.PersonID, p.Address, map[string]string{"grant": g.ID, "plugin_kind": g.PluginKind, "device_address": g.Address})
	})
	if err == nil && wrong {
		err = fault.New(fault.NotFound, "This code is unknown. Enter the code that your device shows.")
	}
	if err != nil {
		return device.Grant{}, err
	}
	return g, nil
}

// Tokens are the ID token and the refresh token of a device.
type Tokens struct {
	ID      string
	Refresh string
	Expires time.Time // expiry time of the ID token
}

// Login is the result of a completed device sign-in.
type Login struct {
	Tokens   Tokens
	DeviceID string
	Profile  profile.Profile
}

// endLinkLifetime is how long the link in the mail about a new device can be
// used to sign the device out.
const endLinkLifetime = 24 * time.Hour

// Poll returns the tokens of a device after a person has approved the sign-in.
// It returns them only once.
func (s *Service) Poll(ctx context.Context, deviceCode string, c session.Client) (in Login, err error) {
	err = s.Devices.PollGrant(ctx, s.DB, deviceCode, func(tx *sqldb.Tx, _ device.Grant, dev device.Device, refresh string) error {
		in, err = s.completeLogin(ctx, tx, dev, refresh, c)
		return err
	})
	if err == nil {
		failpoint.Hit("poll.after_claim_before_reply")
	}
	return in, err
}

// ExchangeCode returns the tokens of an app in exchange for an authorization
// code. It returns them only once.
func (s *Service) ExchangeCode(ctx context.Context, claim device.CodeClaim, c session.Client) (t Tokens, err error) {
	err = s.Devices.ClaimCode(ctx, s.DB, claim, func(tx *sqldb.Tx, dev device.Device, refresh string) error {
		in, err := s.completeLogin(ctx, tx, dev, refresh, c)
		t = in.Tokens
		return err
	})
	return t, err
}

// completeLogin issues the first ID token of a new device, and tells its person.
func (s *Service) completeLogin(ctx context.Context, tx *sqldb.Tx, dev device.Device, refresh string, c session.Client) (in Login, err error) {
	p, err := flow.LockActivePerson(ctx, tx, dev.PersonID)
	if err != nil {
		return in, err
	}
	id, expires, err := s.Tokens.SignToken(ctx, tx, idtoken.Claims{PersonID: p.ID, DeviceID: dev.ID})
	if err != nil {
		return in, err
	}
	if err := person.RecordSignIn(ctx, tx, p.ID); err != nil {
		return in, err
	}
	in = Login{Tokens: Tokens{id, refresh, expires}, DeviceID: dev.ID}
	if in.Profile, err = s.Profiles.ReadProfile(ctx, tx, principalOf(dev)); err != nil {
		return in, err
	}
	if err := s.notifyNewDevice(ctx, tx, p, dev); err != nil {
		return in, err
	}
	details := map[string]string{"device": dev.ID, "plugin_kind": dev.PluginKind}
	if dev.ClientID != "" {
		details["client"] = dev.ClientID
	}
	return in, flow.RecordOwnAct(ctx, tx, audit.DeviceSignedIn, p.ID, c.Address, details)
}

// principalOf returns the principal of requests that present an ID token of the
// device.
func principalOf(dev device.Device) principal.Principal {
	return principal.Principal{
		PersonID:   dev.PersonID,
		Credential: principal.Credential{Kind: principal.IDToken, ID: dev.ID, Provider: dev.Provider, App: dev.ClientID != ""},
		Plugin:     dev.PluginKind,
	}
}

// notifyNewDevice notifies a person about a new device. The mail contains a
// link that signs the device out.
func (s *Service) notifyNewDevice(ctx context.Context, tx *sqldb.Tx, p person.Person, dev device.Device) error {
	secret, err := person.CreateLink(ctx, tx, person.EndDeviceLink, person.Link{PersonID: p.ID, Target: dev.ID}, endLinkLifetime)
	if err != nil {
		return err
	}
	subject := "A new device"
	if dev.PluginKind != "" {
		subject = "A new device (" + dev.PluginKind + ")"
	}
	text := fmt.Sprintf("%s was signed in as you from %s at %s.", subject, dev.Address, dev.Created.Format("2006-01-02 15:04 UTC"))
	return s.Mail.NotifyPerson(ctx, tx, p, flow.Notice{
		Kind:    "device",
		Subject: "A new device was signed in",
		Text:    text,
		MailText: "If this was not you, sign the device out with this link: " + s.Mail.LinkURL("/drop", secret) +
			"\n\nThe link works once, within a day. All your devices: " + s.Mail.AppURL + "/devices",
	})
}

// RecordReplay adds an audit log entry about a device code that was presented
// again long after the device had received its tokens. The device has been
// revoked by then.
func RecordReplay(ctx context.Context, tx *sqldb.Tx, dev device.Device) error {
	return audit.Add(ctx, tx, audit.Entry{Act: audit.DeviceCodeReplayed, PersonID: dev.PersonID, Details: map[string]string{"device": dev.ID}})
}

// ListDevices returns at most limit devices on which a person is signed in,
// newest first, starting after the given position.
func (s *Service) ListDevices(ctx context.Context, personID string, after *device.After, limit int) (all []device.Device, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		all, err = s.Devices.ListSignedInPage(ctx, tx, personID, after, limit)
		return err
	})
	return all, err
}

// tryCode counts an attempt to enter a user code. If other people have used up
// the limit of the network, each person still has a few attempts of their own.
func (s *Service) tryCode(ctx context.Context, p principal.Principal) (attempt flow.Attempt, err error) {
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		attempt = flow.Attempt{}
		full, err := attempt.TakeWindow(ctx, tx, flow.PersonKey("code", p.PersonID), codesOfPerson...)
		if err != nil {
			return err
		}
		if err := flow.RefuseFull(full, flow.WaitMessage); err != nil {
			return err
		}

		full, err = attempt.TakeWindow(ctx, tx, flow.NetworkKey("code", session.NetworkOf(p.Address)), codesOfNetwork)
		if err != nil || full.Wait == 0 {
			return err
		}
		extra, err := attempt.TakeWindow(ctx, tx, flow.PersonKey(ratelimit.Daily+"code", p.PersonID), extraCodesOfPerson)
		if err != nil || extra.Wait == 0 {
			return err
		}
		if extra.Wait < full.Wait {
			full = extra
		}
		return flow.RefuseFull(full, "Too many wrong codes were entered from this network. Try again later.")
	})
	return attempt, err
}
