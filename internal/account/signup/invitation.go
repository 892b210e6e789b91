package signup

import (
	"context"

	"atelier/internal/account/verification"
	"atelier/internal/base/audit"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
)

// acceptSecret accepts the invitation with the given secret for a person, and
// adds an audit log entry.
func acceptSecret(ctx context.Context, tx *sqldb.Tx, p person.Person, secret, address string) (company.Invitation, error) {
	inv, fresh, err := company.AcceptSecret(ctx, tx, secret, p.ID, p.Email)
	if err != nil || !fresh {
		return inv, err
	}
	return inv, recordAccepted(ctx, tx, p.ID, inv, address)
}

func recordAccepted(ctx context.Context, tx *sqldb.Tx, personID string, inv company.Invitation, address string) error {
	e := audit.Entry{
		Act:       audit.InvitationAccepted,
		ActorID:   personID,
		PersonID:  personID,
		CompanyID: inv.CompanyID,
		Address:   address,
		Details:   map[string]string{"invitation": inv.ID, "team": inv.TeamID},
	}
	to := inv.CompanyRole
	if inv.TeamID != "" {
		to = inv.TeamRole // a person who is already in the company keeps their company role
	}
	return audit.Add(ctx, tx, e.WithChange("", to))
}

// AcceptInvitation accepts an invitation, given the secret of its link. If the
// invitation was mailed to the person's e-mail address, this also verifies the
// address.
func (s *Service) AcceptInvitation(ctx context.Context, by principal.Principal, secret string) error {
	return s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.Lock(ctx, tx, by.PersonID); err != nil {
			return err
		}
		p, err := person.ByID(ctx, tx, by.PersonID)
		if err != nil {
			return err
		}
		inv, err := acceptSecret(ctx, tx, p, secret, by.Address)
		if err != nil || inv.Email == "" {
			return err
		}
		return verification.MarkVerified(ctx, tx, p.ID, p.Email, by.Address)
	})
}

// AcceptInvitationByID accepts an invitation that was sent to the caller's
// verified e-mail address.
func (s *Service) AcceptInvitationByID(ctx context.Context, by principal.Principal, id string) error {
	return s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.Lock(ctx, tx, by.PersonID); err != nil {
			return err
		}
		p, err := person.ByID(ctx, tx, by.PersonID)
		if err != nil {
			return err
		}
		inv, fresh, err := company.AcceptByID(ctx, tx, id, p.ID, p.Email, p.EmailVerified)
		if err != nil || !fresh {
			return err
		}
		return recordAccepted(ctx, tx, p.ID, inv, by.Address)
	})
}

// Invitation describes an invitation to a visitor who has opened its link and
// has not accepted it yet.
type Invitation struct {
	Company string // name of the company
	Team    string // name of the team, empty if the invitation is for the company only
	Email   string // e-mail address of the invited person, empty if any person may accept
}

// FindInvitation returns the description of the live invitation with the given
// secret.
func (s *Service) FindInvitation(ctx context.Context, secret string) (shown Invitation, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		inv, err := company.InvitationBySecret(ctx, tx, secret)
		if err != nil {
			return err
		}
		c, err := company.ByID(ctx, tx, inv.CompanyID)
		if err != nil {
			return err
		}
		shown = Invitation{Company: c.Name, Email: inv.Email}
		if inv.TeamID != "" {
			t, err := company.TeamByID(ctx, tx, inv.TeamID)
			if err != nil {
				return err
			}
			shown.Team = t.Name
		}
		return nil
	})
	return shown, err
}
