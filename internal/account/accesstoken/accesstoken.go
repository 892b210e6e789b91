// Package accesstoken manages access tokens. Personal tokens act for a person's
// own account; company tokens act for a member in the company's teams.
package accesstoken

import (
	"context"
	"errors"
	"fmt"

	"atelier/internal/account/flow"
	"atelier/internal/base/audit"
	"atelier/internal/base/failpoint"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
)

// Service manages access tokens. It is safe for concurrent use.
type Service struct {
	DB   *sqldb.DB
	Mail flow.Mailer
}

// ListTokens returns a page of the tokens that act for a person, including
// company tokens, newest first.
func (s *Service) ListTokens(ctx context.Context, personID string, after *credential.After, limit int) (all []credential.Token, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		all, err = credential.List(ctx, tx, credential.Holder{PersonID: personID}, after, limit)
		return err
	})
	return all, err
}

// CreateAccessToken creates a personal access token and returns it with its
// value.
func (s *Service) CreateAccessToken(ctx context.Context, p principal.Principal, personID, name string) (t credential.Token, secret string, err error) {
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.Lock(ctx, tx, personID); err != nil {
			return err
		}
		t, secret, err = credential.Create(ctx, tx, credential.Draft{PersonID: personID, MintedBy: p.PersonID, Name: name})
		if err != nil {
			return err
		}
		return recordTokenAct(ctx, tx, audit.TokenCreated, p, t)
	})
	return t, secret, err
}

// RegenerateAccessToken replaces the value of a personal access token and
// returns the new value.
func (s *Service) RegenerateAccessToken(ctx context.Context, p principal.Principal, id string) (credential.Token, string, error) {
	return s.regenerateToken(ctx, p, credential.Holder{PersonID: p.PersonID}, id)
}

// DeleteAccessToken deletes an access token that acts for the caller.
func (s *Service) DeleteAccessToken(ctx context.Context, p principal.Principal, id string) error {
	return s.deleteToken(ctx, p, credential.Holder{PersonID: p.PersonID}, id)
}

// CreateTokenForEmail creates an access token for the person with the given
// e-mail address: a personal token, or, if companyID is set, a company token that
// acts for them as a member. Only the operator's commands use it.
func (s *Service) CreateTokenForEmail(ctx context.Context, email, companyID, name string) (t credential.Token, secret string, err error) {
	var owner person.Person
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		owner, err = person.ByEmail(ctx, tx, email)
		return err
	})
	if err != nil {
		return t, "", err
	}
	if companyID != "" {
		return s.CreateCompanyToken(ctx, principal.Operator(), companyID, owner.ID, name)
	}
	return s.CreateAccessToken(ctx, principal.Operator(), owner.ID, name)
}

// ListCompanyTokens returns a page of a company's access tokens, newest first.
// The caller must be allowed to manage them.
func (s *Service) ListCompanyTokens(ctx context.Context, p principal.Principal, companyID string, after *credential.After, limit int) (all []credential.Token, err error) {
	if err := s.checkMayManage(ctx, p, companyID); err != nil {
		return nil, err
	}
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		all, err = credential.List(ctx, tx, credential.Holder{CompanyID: companyID}, after, limit)
		return err
	})
	return all, err
}

// CreateCompanyToken creates an access token that acts for a member in the
// company's teams, and returns it with its value. The member is notified.
func (s *Service) CreateCompanyToken(ctx context.Context, p principal.Principal, companyID, personID, name string) (t credential.Token, secret string, err error) {
	if err := s.checkMayManage(ctx, p, companyID); err != nil {
		return t, "", err
	}
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		c, err := company.ByID(ctx, tx, companyID)
		if err != nil {
			return err
		}
		err = person.Lock(ctx, tx, personID) // lock the person before the membership, in the order that the deletion of a person uses
		if err == nil {
			err = company.LockMember(ctx, tx, companyID, personID)
		}
		if fault.Is(err, fault.NotFound) || errors.Is(err, person.ErrDeleted) {
			return fault.New(fault.Invalid, "The token must act for a member of the company.").On("uid")
		}
		if err != nil {
			return err
		}
		t, secret, err = credential.Create(ctx, tx, credential.Draft{PersonID: personID, CompanyID: companyID, MintedBy: p.PersonID, Name: name})
		if err != nil {
			return err
		}
		if personID != p.PersonID {
			member, err := person.ByID(ctx, tx, personID)
			if err != nil {
				return err
			}
			err = s.Mail.NotifyPerson(ctx, tx, member, flow.Notice{
				Kind:     "token",
				Subject:  "An access token was created for you",
				Text:     fmt.Sprintf("An admin of %q created the access token %q, which acts as you in the company's teams.", c.Name, name),
				MailText: "You can delete the token at " + s.Mail.AppURL + "/tokens",
			})
			if err != nil {
				return err
			}
		}
		return recordTokenAct(ctx, tx, audit.TokenCreated, p, t)
	})
	return t, secret, err
}

// RegenerateCompanyToken replaces the value of a company access token and
// returns the new value.
func (s *Service) RegenerateCompanyToken(ctx context.Context, p principal.Principal, companyID, id string) (credential.Token, string, error) {
	if err := s.checkMayManage(ctx, p, companyID); err != nil {
		return credential.Token{}, "", err
	}
	return s.regenerateToken(ctx, p, credential.Holder{CompanyID: companyID}, id)
}

// DeleteCompanyToken deletes a company access token.
func (s *Service) DeleteCompanyToken(ctx context.Context, p principal.Principal, companyID, id string) error {
	if err := s.checkMayManage(ctx, p, companyID); err != nil {
		return err
	}
	return s.deleteToken(ctx, p, credential.Holder{CompanyID: companyID}, id)
}

// ListMembers returns the company's members, for whom the caller can create
// company access tokens.
func (s *Service) ListMembers(ctx context.Context, p principal.Principal, companyID string) (all []company.Member, err error) {
	if err := s.checkMayManage(ctx, p, companyID); err != nil {
		return nil, err
	}
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		all, err = company.Members(ctx, tx, companyID, company.Key{}, maxMembers)
		return err
	})
	return all, err
}

// maxMembers is the maximum number of members that ListMembers returns.
const maxMembers = 1000

// DeleteTokenValue deletes the access token with the given value, for example
// because the value leaked. Only the operator's commands use it.
func (s *Service) DeleteTokenValue(ctx context.Context, value string) (t credential.Token, err error) {
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if t, err = credential.DeleteValue(ctx, tx, value); err != nil {
			return err
		}
		return recordTokenAct(ctx, tx, audit.TokenDeleted, principal.Operator(), t)
	})
	return t, err
}

// checkMayManage refuses a caller who is not allowed to manage the company's
// access tokens. The operator is always allowed.
func (s *Service) checkMayManage(ctx context.Context, p principal.Principal, companyID string) error {
	if p.Operator {
		return nil
	}
	role, _, err := company.CompanyMembershipOf(ctx, s.DB, p.PersonID, companyID)
	if err == nil && !role.May(company.ManageAPITokens) {
		err = fault.New(fault.Forbidden, "Your role in this company does not allow managing access tokens.").With("reason", "permission")
	}
	return err
}

func (s *Service) regenerateToken(ctx context.Context, p principal.Principal, h credential.Holder, id string) (t credential.Token, secret string, err error) {
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if t, secret, err = credential.Regenerate(ctx, tx, h, id); err != nil {
			return err
		}
		return recordTokenAct(ctx, tx, audit.TokenRegenerated, p, t)
	})
	if err == nil {
		failpoint.Hit("revoke.after_commit_before_reply")
	}
	return t, secret, err
}

func (s *Service) deleteToken(ctx context.Context, p principal.Principal, h credential.Holder, id string) error {
	err := s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		t, err := credential.Delete(ctx, tx, h, id)
		if err != nil {
			return err
		}
		return recordTokenAct(ctx, tx, audit.TokenDeleted, p, t)
	})
	if err == nil {
		failpoint.Hit("revoke.after_commit_before_reply")
	}
	return err
}

func recordTokenAct(ctx context.Context, tx *sqldb.Tx, done audit.Act, p principal.Principal, t credential.Token) error {
	return audit.Add(ctx, tx, audit.Entry{
		Act:       done,
		ActorID:   p.PersonID,
		PersonID:  t.PersonID,
		CompanyID: t.CompanyID,
		Address:   p.Address,
		Details:   map[string]string{"token": t.ID, "name": t.Name},
	})
}

// RecordDeleted adds audit log entries for access tokens that were deleted as
// part of another action.
func RecordDeleted(ctx context.Context, tx *sqldb.Tx, p principal.Principal, tokens []credential.Token) error {
	for _, t := range tokens {
		if err := recordTokenAct(ctx, tx, audit.TokenDeleted, p, t); err != nil {
			return err
		}
	}
	return nil
}
