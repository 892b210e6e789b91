// Package signin signs people in and out in browsers. It checks passwords,
// manages browser sessions, and sends password-reset links.
package signin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"atelier/internal/account/accesstoken"
	"atelier/internal/account/flow"
	"atelier/internal/base/audit"
	"atelier/internal/base/failpoint"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/credential"
	"atelier/internal/people/device"
	"atelier/internal/people/idtoken"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
)

// Service signs people in and out in browsers. It is safe for concurrent use.
type Service struct {
	DB              *sqldb.DB
	Devices         *device.Devices
	Tokens          *idtoken.Issuer
	Mail            flow.Mailer
	SessionLifetime time.Duration
	// KnownLifetime is how long after a sign-in a browser counts as known,
	// which means that the person has used it before.
	KnownLifetime time.Duration
	Now           func() time.Time
}

// NewSession is a browser session that has just been started.
type NewSession struct {
	Person  person.Person
	Cookie  string // session cookie
	Browser string // cookie that identifies a known browser
}

// StartSession starts a session for a person whose row the caller has locked.
// The browser becomes a known browser of the person.
func (s *Service) StartSession(ctx context.Context, tx *sqldb.Tx, p person.Person, provider string, c session.Client) (NewSession, error) {
	draft := session.Session{PersonID: p.ID, Provider: provider, Agent: c.UserAgent, Address: c.Address}
	_, cookie, err := session.Start(ctx, tx, draft, s.SessionLifetime)
	if err != nil {
		return NewSession{}, fmt.Errorf("start session: %w", err)
	}
	browser, err := session.RememberBrowser(ctx, tx, p.ID, c.KnownBrowser, s.KnownLifetime)
	if err != nil {
		return NewSession{}, fmt.Errorf("remember browser: %w", err)
	}
	started := NewSession{Person: p, Cookie: cookie, Browser: browser}
	return started, flow.RecordOwnAct(ctx, tx, audit.SessionSignedIn, p.ID, c.Address, map[string]string{"provider": provider})
}

// errWrongPassword is returned both for an unknown e-mail address and for a wrong
// password.
var errWrongPassword = fault.New(fault.Unauthenticated, "The address or the password is wrong.")

// SignIn signs a person in on a browser with an e-mail address and a password.
func (s *Service) SignIn(ctx context.Context, email, password string, c session.Client) (NewSession, error) {
	if person.CheckEmail(email) != nil { // no account has such an address, and it may be too long for a rate-limit key
		return NewSession{}, errWrongPassword
	}
	attempt, err := s.tryPassword(ctx, email, c)
	if err != nil {
		return NewSession{}, err
	}
	proof, err := person.CheckSignIn(ctx, s.DB, email, password)
	if err != nil {
		return NewSession{}, err
	}
	var in NewSession
	var refusal error // returned after the audit log entry is committed
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		in = NewSession{}
		refusal = nil
		refuse := func(why error) error {
			refusal = why
			e := audit.Entry{Act: audit.SessionSignInFailed, Address: c.Address}
			p, err := person.ByEmail(ctx, tx, email)
			switch {
			case fault.Is(err, fault.NotFound):
				e.Details = map[string]string{"email": person.MaskEmail(email)}
			case err != nil:
				return err
			default:
				e.PersonID = p.ID
			}
			return audit.Add(ctx, tx, e)
		}
		if proof.PersonID == "" {
			return refuse(errWrongPassword)
		}
		p, err := flow.LockActivePerson(ctx, tx, proof.PersonID)
		if fault.Is(err, fault.Forbidden) {
			return refuse(err)
		}
		if err != nil {
			return err
		}
		if ok, err := proof.IsCurrent(ctx, tx); err != nil {
			return err
		} else if !ok { // a concurrent request changed the password
			return refuse(errWrongPassword)
		}
		if err := attempt.ReturnUnits(ctx, tx); err != nil {
			return err
		}
		in, err = s.StartSession(ctx, tx, p, person.Password, c)
		return err
	})
	if err == nil {
		err = refusal
	}
	return in, err
}

// Session is a browser session and the person who is signed in.
type Session struct {
	session.Session
	Person person.Person
}

// Principal returns the caller that the session authenticates, with the IP
// address of the request.
func (s Session) Principal(address string) principal.Principal {
	return principal.ForSession(s.PersonID, s.ID, s.Provider, address)
}

// usedPrecision is the minimum time between two updates of the last use of a
// session.
const usedPrecision = time.Minute

// FindSession returns the session with the given cookie and its person, or
// session.ErrSignedOut if there is no such session.
func (s *Service) FindSession(ctx context.Context, cookie, address string) (Session, error) {
	live, err := session.Find(ctx, s.DB, cookie, s.Now())
	if err != nil {
		return Session{}, err
	}
	if s.Now().Sub(live.LastUsed) >= usedPrecision {
		if err := s.DB.Write(ctx, func(tx *sqldb.Tx) error { return session.Touch(ctx, tx, live.ID, address) }); err != nil {
			return Session{}, err
		}
	}
	found := Session{Session: live}
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		found.Person, err = person.ByID(ctx, tx, live.PersonID)
		return err
	})
	return found, err
}

// SessionGuard returns the check that runs at the beginning of every write
// transaction of a browser's request (sqldb.WithGuard): the session must not
// have ended. The rows of the session and the person stay locked until the
// transaction ends.
func (s *Service) SessionGuard(cookie string) sqldb.Guard {
	return func(ctx context.Context, tx *sqldb.Tx) error {
		if tx.ReadOnly {
			return nil
		}
		_, err := session.Find(ctx, tx, cookie, tx.Now)
		return err
	}
}

// WebToken is a short-lived ID token of a browser session, for the scripts of
// the service's own pages.
type WebToken struct {
	ID       string // the token
	PersonID string
	Expires  time.Time
}

// IssueWebToken returns a web token for the session with a cookie. allow is
// called with the session's id before anything is written and can refuse, for
// example because of a rate limit.
func (s *Service) IssueWebToken(ctx context.Context, cookie string, allow func(sessionID string) error) (WebToken, error) {
	live, err := session.Find(ctx, s.DB, cookie, s.Now())
	if err != nil {
		return WebToken{}, err
	}
	if err := allow(live.ID); err != nil {
		return WebToken{}, err
	}
	token := WebToken{PersonID: live.PersonID}
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
		if _, err := session.Find(ctx, tx, cookie, tx.Now); err != nil {
			return err
		}
		token.ID, token.Expires, err = s.Tokens.SignToken(ctx, tx, idtoken.Claims{PersonID: live.PersonID, SessionID: live.ID})
		return err
	})
	return token, err
}

// ListSessions returns at most limit live browser sessions of a person, newest
// first, starting after the given position.
func (s *Service) ListSessions(ctx context.Context, personID string, after *session.After, limit int) (page []session.Session, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		page, err = session.ListPage(ctx, tx, personID, after, limit)
		return err
	})
	return page, err
}

// SignOut ends one browser session of the principal's person. It does nothing
// if the session has already ended.
func (s *Service) SignOut(ctx context.Context, p principal.Principal, sessionID string) error {
	err := s.EndSession(ctx, p, sessionID)
	if errors.Is(err, errNoSession) {
		return nil
	}
	return err
}

var errNoSession = fault.New(fault.NotFound, "There is no such browser session.")

// EndSession ends one browser session of the principal's person. It returns a
// fault.NotFound if there is no such session.
func (s *Service) EndSession(ctx context.Context, p principal.Principal, sessionID string) error {
	return s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		ended, err := session.End(ctx, tx, p.PersonID, sessionID)
		if err != nil {
			return err
		}
		if !ended {
			return errNoSession
		}
		return flow.RecordOwnAct(ctx, tx, audit.SessionSignedOut, p.PersonID, p.Address, nil)
	})
}

// SignOutEverywhere ends all browser sessions of a person and revokes all their
// devices. It also voids approved device sign-ins whose device has not received
// its tokens yet. Access tokens stay valid.
func (s *Service) SignOutEverywhere(ctx context.Context, p principal.Principal, personID string) error {
	err := s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.Lock(ctx, tx, personID); err != nil {
			return err
		}
		if err := flow.EndSignIns(ctx, tx, s.Devices, personID); err != nil {
			return err
		}
		return audit.Add(ctx, tx, audit.Entry{Act: audit.SessionSignedOutEverywhere, ActorID: p.PersonID, PersonID: personID, Address: p.Address})
	})
	if err == nil {
		failpoint.Hit("revoke.after_commit_before_reply")
	}
	return err
}

// SignOutEveryone ends all browser sessions, revokes all devices and deletes
// all access tokens, and returns the number of people. Only the operator's
// commands use it.
func (s *Service) SignOutEveryone(ctx context.Context) (people int, err error) {
	const page = 100
	for last := ""; ; {
		var ids []string
		err := s.DB.Read(ctx, func(tx *sqldb.Tx) (err error) { ids, err = person.ListIDs(ctx, tx, last, page); return err })
		if err != nil || len(ids) == 0 {
			return people, err
		}
		for _, id := range ids {
			last = id
			err := s.endCredentials(ctx, id)
			if errors.Is(err, person.ErrDeleted) { // deleted by a concurrent request
				continue
			}
			if err != nil {
				return people, err
			}
			people++
		}
	}
}

// endCredentials ends all browser sessions of a person, revokes their devices
// and deletes their access tokens.
func (s *Service) endCredentials(ctx context.Context, personID string) error {
	return s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.Lock(ctx, tx, personID); err != nil {
			return err
		}
		if err := flow.EndSignIns(ctx, tx, s.Devices, personID); err != nil {
			return err
		}
		tokens, err := credential.DeleteAll(ctx, tx, personID)
		if err != nil {
			return err
		}
		if err := accesstoken.RecordDeleted(ctx, tx, principal.Operator(), tokens); err != nil {
			return err
		}
		return audit.Add(ctx, tx, audit.Entry{Act: audit.SessionSignedOutEverywhere, PersonID: personID})
	})
}

// SetSuspended suspends the person with the given e-mail address and ends their
// sign-ins, or reinstates them. Only the operator's commands use it.
func (s *Service) SetSuspended(ctx context.Context, email string, suspended bool) error {
	return s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		p, err := person.ByEmail(ctx, tx, email)
		if err != nil {
			return err
		}
		if err := person.Lock(ctx, tx, p.ID); err != nil {
			return err
		}
		if err := person.SetSuspended(ctx, tx, p.ID, suspended); err != nil {
			return err
		}
		done := audit.PersonRestored
		if suspended {
			done = audit.PersonSuspended
			if err := flow.EndSignIns(ctx, tx, s.Devices, p.ID); err != nil {
				return err
			}
		}
		e := audit.Entry{Act: done, PersonID: p.ID}
		return audit.Add(ctx, tx, e.WithChange(accountState(p.Suspended), accountState(suspended)))
	})
}

// accountState returns the name of an account's state for the audit log.
func accountState(suspended bool) string {
	if suspended {
		return "suspended"
	}
	return "active"
}

// IsSignedOut reports whether an error means that the browser is not signed in.
func IsSignedOut(err error) bool { return errors.Is(err, session.ErrSignedOut) }
