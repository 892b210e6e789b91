package signin

import (
	"context"

	"atelier/internal/account/flow"
	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/credential"
	"atelier/internal/people/person"
	"atelier/internal/people/session"
)

// TakeOver ends all sign-ins of a person and replaces their password hash. The
// caller has proven ownership of the person's e-mail address. If the address was
// not verified before, TakeOver also deletes the person's access tokens and
// returns them.
func (s *Service) TakeOver(ctx context.Context, tx *sqldb.Tx, p person.Person, hash string) ([]credential.Token, error) {
	if err := flow.EndSignIns(ctx, tx, s.Devices, p.ID); err != nil {
		return nil, err
	}
	if err := setPassword(ctx, tx, p.ID, hash); err != nil || p.EmailVerified {
		return nil, err
	}
	return credential.DeleteOf(ctx, tx, p.ID, "")
}

// setPassword replaces a person's password hash and invalidates their
// password-reset links.
func setPassword(ctx context.Context, tx *sqldb.Tx, personID, hash string) error {
	if err := person.DeleteLinks(ctx, tx, person.ResetLink, personID); err != nil {
		return err
	}
	return person.SetPassword(ctx, tx, personID, hash)
}

// ChangePassword replaces a person's password, ends all their sessions, revokes
// all their devices, and returns a new session for the current browser.
func (s *Service) ChangePassword(ctx context.Context, in Session, old, password string, c session.Client) (NewSession, error) {
	if in.Person.Provider == person.Password {
		attempt, err := flow.StartAttempt(ctx, s.DB, ratelimit.Key{Name: "password/session/" + in.ID}, passwordsOfSession...)
		if err != nil {
			return NewSession{}, err
		}
		proof, err := person.CheckSignIn(ctx, s.DB, in.Person.Email, old)
		if err != nil {
			return NewSession{}, err
		}
		if proof.PersonID != in.PersonID {
			return NewSession{}, fault.New(fault.Invalid, "The current password is wrong.").On("old")
		}
		if err := s.DB.Write(ctx, func(tx *sqldb.Tx) error { return attempt.ReturnUnits(ctx, tx) }); err != nil {
			return NewSession{}, err
		}
	}
	if err := person.CheckNewPassword(password, in.Person.Email); err != nil {
		return NewSession{}, err
	}
	hash, err := person.HashPassword(ctx, password)
	if err != nil {
		return NewSession{}, err
	}
	var started NewSession
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		p, err := flow.LockActivePerson(ctx, tx, in.PersonID)
		if err != nil {
			return err
		}
		if err := flow.RequireSession(ctx, tx, in.ID); err != nil {
			return err
		}
		if err := setPassword(ctx, tx, p.ID, hash); err != nil {
			return err
		}
		if err := flow.EndSignIns(ctx, tx, s.Devices, p.ID); err != nil {
			return err
		}
		if err := flow.RecordOwnAct(ctx, tx, audit.PersonPasswordChanged, p.ID, c.Address, nil); err != nil {
			return err
		}
		started, err = s.StartSession(ctx, tx, p, in.Provider, c)
		return err
	})
	return started, err
}
