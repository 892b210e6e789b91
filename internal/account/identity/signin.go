package identity

import (
	"context"
	"errors"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/failpoint"
	"atelier/internal/base/fault"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/notify/mail"
	"atelier/internal/people/credential"
	"atelier/internal/people/person"
	"atelier/internal/people/session"
)

// errWrong is one answer for an unknown address and a wrong password.
var errWrong = fault.New(fault.Unauthenticated, "The address or the password is wrong.")

// SignIn signs a browser in with a password.
func (d *Desk) SignIn(ctx context.Context, email, password string, v Visitor) (Entered, error) {
	if person.CheckEmail(email) != nil { // nobody has it, and it may not fit a key
		return Entered{}, errWrong
	}
	taken, err := d.tryPassword(ctx, email, v)
	if err != nil {
		return Entered{}, err
	}
	proof, err := person.SignIn(ctx, d.DB, email, password)
	if err != nil {
		return Entered{}, err
	}
	var in Entered
	var no error // why nobody was signed in
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		in = Entered{}
		no = nil
		refuse := func(why error) error {
			no = why
			e := audit.Entry{Act: audit.SessionSignInFailed, Address: v.Address}
			p, err := person.ByEmail(ctx, tx, email)
			switch {
			case fault.Is(err, fault.NotFound):
				e.Details = map[string]string{"email": person.Hint(email)}
			case err != nil:
				return err
			default:
				e.PersonID = p.ID
			}
			return audit.Add(ctx, tx, e)
		}
		if proof.PersonID == "" {
			return refuse(errWrong)
		}
		p, err := locked(ctx, tx, proof.PersonID)
		if fault.Is(err, fault.Forbidden) {
			return refuse(err)
		}
		if err != nil {
			return err
		}
		if ok, err := proof.Holds(ctx, tx); err != nil {
			return err
		} else if !ok { // it was changed while we looked at it
			return refuse(errWrong)
		}
		if err := taken.giveBack(ctx, tx); err != nil {
			return err
		}
		in, err = d.enter(ctx, tx, p, person.Password, v)
		return err
	})
	if err == nil {
		err = no
	}
	return in, err
}

// locked gives a person who may sign in, and keeps others from deciding about
// them until tx ends.
func locked(ctx context.Context, tx *sqldb.Tx, id string) (person.Person, error) {
	if err := person.Lock(ctx, tx, id); err != nil {
		return person.Person{}, err
	}
	p, err := person.ByID(ctx, tx, id)
	if err == nil && p.Suspended {
		err = fault.New(fault.Forbidden, "This account is suspended. Ask the operator.").With("reason", "suspended")
	}
	return p, err
}

// Session is a browser that is signed in, with its person.
type Session struct {
	session.Session
	Person person.Person
}

// usedEvery is how exact "last used" is.
const usedEvery = time.Minute

// Session finds who has a cookie. Nobody is session.ErrNone.
func (d *Desk) Session(ctx context.Context, cookie, address string) (Session, error) {
	s, err := session.Find(ctx, d.DB, cookie, d.Now())
	if err != nil {
		return Session{}, err
	}
	if d.Now().Sub(s.LastUsed) >= usedEvery {
		if err := d.DB.Write(ctx, func(tx *sqldb.Tx) error { return session.Touch(ctx, tx, s.ID, address) }); err != nil {
			return Session{}, err
		}
	}
	found := Session{Session: s}
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		found.Person, err = person.ByID(ctx, tx, s.PersonID)
		return err
	})
	return found, err
}

// SessionGuard returns the check that every change begins with that a browser
// makes (sqldb.WithGuard): its session must still be there when the change is
// made. The rows of the session and of the person stay locked until then.
func (d *Desk) SessionGuard(cookie string) sqldb.Guard {
	return func(ctx context.Context, tx *sqldb.Tx) error {
		if tx.ReadOnly {
			return nil
		}
		_, err := session.Find(ctx, tx, cookie, tx.Now)
		return err
	}
}

// SignOut ends one session of a person.
func (d *Desk) SignOut(ctx context.Context, personID, sessionID string, v Visitor) error {
	return d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		ended, err := session.End(ctx, tx, personID, sessionID)
		if err != nil || !ended {
			return err
		}
		return act(ctx, tx, audit.SessionSignedOut, personID, v.Address, nil)
	})
}

// SignOutEverywhere ends every device and browser of a person, and what was
// approved and not fetched yet. Access tokens go on.
func (d *Desk) SignOutEverywhere(ctx context.Context, a Actor, personID string) error {
	err := d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.Lock(ctx, tx, personID); err != nil {
			return err
		}
		if err := d.endAll(ctx, tx, personID); err != nil {
			return err
		}
		return audit.Add(ctx, tx, audit.Entry{Act: audit.SessionSignedOutEverywhere, ActorID: a.PersonID, PersonID: personID, Address: a.Address})
	})
	if err == nil {
		failpoint.Hit("revoke.after_commit_before_reply")
	}
	return err
}

func (d *Desk) endAll(ctx context.Context, tx *sqldb.Tx, personID string) error {
	if _, err := d.Devices.RevokeAll(ctx, tx, personID, "signed out everywhere"); err != nil {
		return err
	}
	_, err := session.EndAll(ctx, tx, personID)
	return err
}

// resetLifetime is how long a link to choose a new password works.
const resetLifetime = time.Hour

// RequestReset mails a link to choose a new password to whoever has the
// address, or leaves it at the one that was sent lately. The caller learns nothing about whether somebody has.
func (d *Desk) RequestReset(ctx context.Context, email string, v Visitor) error {
	if err := person.CheckEmail(email); err != nil {
		return err
	}
	send, err := d.tryReset(ctx, email, v)
	if err != nil || !send {
		return err
	}
	return d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		p, err := person.ByEmail(ctx, tx, email)
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		secret, err := person.OfferLink(ctx, tx, person.ResetLink, person.Link{PersonID: p.ID, Target: p.Email}, resetLifetime)
		if errors.Is(err, person.ErrDeleted) { // meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		err = d.Post.Send(ctx, tx, mail.Message{To: p.Email, Subject: "Choose a new password",
			Text: "Open this link to choose a new password:\n\n" + d.link("/reset", secret) +
				"\n\nIt works once, for an hour. If you did not ask for it, do nothing: your password stays as it is."})
		if err != nil {
			return err
		}
		return audit.Add(ctx, tx, audit.Entry{Act: audit.PersonResetRequested, PersonID: p.ID, Address: v.Address})
	})
}

// MayReset tells whether a link to choose a new password works.
func (d *Desk) MayReset(ctx context.Context, secret string) error {
	_, err := d.resetLink(ctx, secret)
	return err
}

// resetLink looks a link to choose a new password up.
func (d *Desk) resetLink(ctx context.Context, secret string) (l person.Link, err error) {
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		l, err = person.LookLink(ctx, tx, person.ResetLink, secret)
		return err
	})
	return l, err
}

// Reset chooses a new password with a link, ends every device and browser, and
// proves the address that the link went to. Whoever had the account without a
// proven address may have been a stranger: their access tokens end too.
//
// The browser that does it is known to the person from then on: what it gives
// is the cookie for that.
func (d *Desk) Reset(ctx context.Context, secret, password string, v Visitor) (browser string, err error) {
	l, err := d.resetLink(ctx, secret) // before the slow part
	if err != nil {
		return "", err
	}
	if err := person.CheckNewPassword(password, l.Target); err != nil {
		return "", err
	}
	hash, err := person.HashPassword(ctx, password)
	if err != nil {
		return "", err
	}
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		l, err := person.UseLink(ctx, tx, person.ResetLink, secret)
		if err != nil {
			return err
		}
		p, err := locked(ctx, tx, l.PersonID)
		if err != nil {
			return err
		}
		ended, err := d.takeOver(ctx, tx, p, hash)
		if err != nil {
			return err
		}
		if err := verified(ctx, tx, p.ID, l.Target, v.Address); err != nil {
			return err
		}
		if err := d.tell(ctx, tx, p, "password", "Your password was changed", "Your password was changed and you were signed out everywhere.",
			"If this was not you, ask for a new one at "+d.Settings.AppURL+"/forgot"); err != nil {
			return err
		}
		if err := tokensEnded(ctx, tx, Actor{PersonID: p.ID, Address: v.Address}, ended); err != nil {
			return err
		}
		// The links are gone, so the next one must not wait for them.
		if err := ratelimit.Drop(ctx, tx, resetKey(p.Email)); err != nil {
			return err
		}
		if browser, err = session.Remember(ctx, tx, p.ID, v.Browser, d.Settings.KnownLifetime); err != nil {
			return err
		}
		return act(ctx, tx, audit.PersonPasswordChanged, p.ID, v.Address, nil)
	})
	if err != nil {
		return "", err
	}
	return browser, nil
}

// takeOver signs a person out everywhere for somebody who proved that the
// address is theirs, and sets the password. It gives the access tokens that
// ended.
func (d *Desk) takeOver(ctx context.Context, tx *sqldb.Tx, p person.Person, hash string) ([]credential.Token, error) {
	if err := d.endAll(ctx, tx, p.ID); err != nil {
		return nil, err
	}
	if err := setPassword(ctx, tx, p.ID, hash); err != nil || p.EmailVerified {
		return nil, err
	}
	return credential.DeleteOf(ctx, tx, p.ID, "")
}

// setPassword replaces a password. Links that would replace it once more end.
func setPassword(ctx context.Context, tx *sqldb.Tx, personID, hash string) error {
	if err := person.DropLinks(ctx, tx, person.ResetLink, personID); err != nil {
		return err
	}
	return person.SetPassword(ctx, tx, personID, hash)
}

// ChangePassword replaces a password by another. The session that does it goes
// on; every other browser and device ends.
func (d *Desk) ChangePassword(ctx context.Context, s Session, old, password string, v Visitor) (Entered, error) {
	if s.Person.Provider == person.Password {
		taken, err := d.try(ctx, ratelimit.Key{Name: "password/session/" + s.ID}, passwordsOfSession...)
		if err != nil {
			return Entered{}, err
		}
		proof, err := person.SignIn(ctx, d.DB, s.Person.Email, old)
		if err != nil {
			return Entered{}, err
		}
		if proof.PersonID != s.PersonID {
			return Entered{}, fault.New(fault.Invalid, "The current password is wrong.").On("old")
		}
		if err := d.DB.Write(ctx, func(tx *sqldb.Tx) error { return taken.giveBack(ctx, tx) }); err != nil {
			return Entered{}, err
		}
	}
	if err := person.CheckNewPassword(password, s.Person.Email); err != nil {
		return Entered{}, err
	}
	hash, err := person.HashPassword(ctx, password)
	if err != nil {
		return Entered{}, err
	}
	var in Entered
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		p, err := locked(ctx, tx, s.PersonID)
		if err != nil {
			return err
		}
		if err := stillIn(ctx, tx, s); err != nil {
			return err
		}
		if err := setPassword(ctx, tx, p.ID, hash); err != nil {
			return err
		}
		if err := d.endAll(ctx, tx, p.ID); err != nil {
			return err
		}
		if err := act(ctx, tx, audit.PersonPasswordChanged, p.ID, v.Address, nil); err != nil {
			return err
		}
		in, err = d.enter(ctx, tx, p, s.Provider, v)
		return err
	})
	return in, err
}

// stillIn refuses what a session asks for once it has been ended: the person's
// row is locked, so that cannot happen any more until tx ends.
func stillIn(ctx context.Context, tx *sqldb.Tx, s Session) error {
	live, err := session.Live(ctx, tx, s.ID)
	if err == nil && !live {
		err = session.ErrNone
	}
	return err
}

// Suspend shuts a person out of everything or lets them in again. It is the
// operator's act.
func (d *Desk) Suspend(ctx context.Context, email string, suspended bool) error {
	return d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		p, err := person.ByEmail(ctx, tx, email)
		if err != nil {
			return err
		}
		if err := person.Lock(ctx, tx, p.ID); err != nil {
			return err
		}
		if err := person.Suspend(ctx, tx, p.ID, suspended); err != nil {
			return err
		}
		done := audit.PersonRestored
		if suspended {
			done = audit.PersonSuspended
			if err := d.endAll(ctx, tx, p.ID); err != nil {
				return err
			}
		}
		e := audit.Entry{Act: done, PersonID: p.ID}
		return audit.Add(ctx, tx, e.Changing(accountState(p.Suspended), accountState(suspended)))
	})
}

// accountState is what the audit log calls it.
func accountState(suspended bool) string {
	if suspended {
		return "suspended"
	}
	return "active"
}

// SignedOut tells whether an error means that nobody is signed in.
func SignedOut(err error) bool { return errors.Is(err, session.ErrNone) }
