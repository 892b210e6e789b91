package identity

import (
	"context"
	"errors"
	"fmt"

	"atelier/internal/base/audit"
	"atelier/internal/base/failpoint"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
)

// AccessTokens gives the tokens that stand for a person, those of companies
// included: they speak in the person's name.
func (d *Desk) AccessTokens(ctx context.Context, personID string, after *credential.After, limit int) (all []credential.Token, err error) {
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		all, err = credential.List(ctx, tx, credential.Holder{PersonID: personID}, after, limit)
		return err
	})
	return all, err
}

// CreateAccessToken makes a personal token.
func (d *Desk) CreateAccessToken(ctx context.Context, a principal.Principal, personID, name string) (t credential.Token, secret string, err error) {
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := person.Lock(ctx, tx, personID); err != nil {
			return err
		}
		t, secret, err = credential.Create(ctx, tx, credential.Draft{PersonID: personID, MintedBy: a.PersonID, Name: name})
		if err != nil {
			return err
		}
		return tokenAct(ctx, tx, audit.TokenCreated, a, t)
	})
	return t, secret, err
}

// RegenerateAccessToken gives a personal token a new value.
func (d *Desk) RegenerateAccessToken(ctx context.Context, a principal.Principal, id string) (credential.Token, string, error) {
	return d.regenerate(ctx, a, credential.Holder{PersonID: a.PersonID}, id)
}

// DeleteAccessToken ends a token that stands for the person.
func (d *Desk) DeleteAccessToken(ctx context.Context, a principal.Principal, id string) error {
	return d.delete(ctx, a, credential.Holder{PersonID: a.PersonID}, id)
}

// CreateTokenFor makes a token for the person with an address; with a company,
// one for its teams. It is the operator's act.
func (d *Desk) CreateTokenFor(ctx context.Context, email, companyID, name string) (t credential.Token, secret string, err error) {
	p, err := d.byEmail(ctx, email)
	if err != nil {
		return t, "", err
	}
	if companyID != "" {
		return d.CreateCompanyToken(ctx, principal.Operator(), companyID, p.ID, name)
	}
	return d.CreateAccessToken(ctx, principal.Operator(), p.ID, name)
}

func (d *Desk) byEmail(ctx context.Context, email string) (p person.Person, err error) {
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		p, err = person.ByEmail(ctx, tx, email)
		return err
	})
	return p, err
}

// CompanyTokens gives the tokens of a company to an admin of it.
func (d *Desk) CompanyTokens(ctx context.Context, a principal.Principal, companyID string, after *credential.After, limit int) (all []credential.Token, err error) {
	if err := d.managesTokens(ctx, a, companyID); err != nil {
		return nil, err
	}
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		all, err = credential.List(ctx, tx, credential.Holder{CompanyID: companyID}, after, limit)
		return err
	})
	return all, err
}

// CreateCompanyToken makes a token that stands for a member in the company's
// teams. The member is told: it speaks in their name.
func (d *Desk) CreateCompanyToken(ctx context.Context, a principal.Principal, companyID, personID, name string) (t credential.Token, secret string, err error) {
	if err := d.managesTokens(ctx, a, companyID); err != nil {
		return t, "", err
	}
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		c, err := company.ByID(ctx, tx, companyID)
		if err != nil {
			return err
		}
		err = person.Lock(ctx, tx, personID) // before the membership, as whoever deletes them does
		if err == nil {
			err = company.HoldMember(ctx, tx, companyID, personID)
		}
		if fault.Is(err, fault.NotFound) || errors.Is(err, person.ErrDeleted) {
			return fault.New(fault.Invalid, "The token must stand for a member of the company.").On("uid")
		}
		if err != nil {
			return err
		}
		t, secret, err = credential.Create(ctx, tx, credential.Draft{PersonID: personID, CompanyID: companyID, MintedBy: a.PersonID, Name: name})
		if err != nil {
			return err
		}
		if personID != a.PersonID {
			member, err := person.ByID(ctx, tx, personID)
			if err != nil {
				return err
			}
			err = d.tell(ctx, tx, member, "token", "An access token speaks for you",
				fmt.Sprintf("An admin of %q made the access token %q, which acts as you in the company's teams.", c.Name, name),
				"You can see and delete it at "+d.Settings.AppURL+"/tokens")
			if err != nil {
				return err
			}
		}
		return tokenAct(ctx, tx, audit.TokenCreated, a, t)
	})
	return t, secret, err
}

// RegenerateCompanyToken gives a token of a company a new value.
func (d *Desk) RegenerateCompanyToken(ctx context.Context, a principal.Principal, companyID, id string) (credential.Token, string, error) {
	if err := d.managesTokens(ctx, a, companyID); err != nil {
		return credential.Token{}, "", err
	}
	return d.regenerate(ctx, a, credential.Holder{CompanyID: companyID}, id)
}

// DeleteCompanyToken ends a token of a company.
func (d *Desk) DeleteCompanyToken(ctx context.Context, a principal.Principal, companyID, id string) error {
	if err := d.managesTokens(ctx, a, companyID); err != nil {
		return err
	}
	return d.delete(ctx, a, credential.Holder{CompanyID: companyID}, id)
}

// CompanyMembers gives the members that an admin can make tokens for.
func (d *Desk) CompanyMembers(ctx context.Context, a principal.Principal, companyID string) (all []company.Member, err error) {
	if err := d.managesTokens(ctx, a, companyID); err != nil {
		return nil, err
	}
	err = d.DB.Read(ctx, func(tx *sqldb.Tx) error {
		all, err = company.Members(ctx, tx, companyID, company.Key{}, membersShown)
		return err
	})
	return all, err
}

// membersShown bounds the list of members on a page.
const membersShown = 1000

// DeleteTokenValue ends the token with this value, wherever it was found. It is
// the operator's act.
func (d *Desk) DeleteTokenValue(ctx context.Context, value string) (t credential.Token, err error) {
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if t, err = credential.DeleteValue(ctx, tx, value); err != nil {
			return err
		}
		return tokenAct(ctx, tx, audit.TokenDeleted, principal.Operator(), t)
	})
	return t, err
}

// managesTokens refuses whoever may not manage the tokens of a company. The
// operator may.
func (d *Desk) managesTokens(ctx context.Context, a principal.Principal, companyID string) error {
	if a.Operator {
		return nil
	}
	role, _, err := company.CompanyStanding(ctx, d.DB, a.PersonID, companyID)
	if err == nil && !role.May(company.ManageAPITokens) {
		err = fault.New(fault.Forbidden, "Your role in this company does not allow managing access tokens.").With("reason", "permission")
	}
	return err
}

func (d *Desk) regenerate(ctx context.Context, a principal.Principal, h credential.Holder, id string) (t credential.Token, secret string, err error) {
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if t, secret, err = credential.Regenerate(ctx, tx, h, id); err != nil {
			return err
		}
		return tokenAct(ctx, tx, audit.TokenRegenerated, a, t)
	})
	if err == nil {
		failpoint.Hit("revoke.after_commit_before_reply")
	}
	return t, secret, err
}

func (d *Desk) delete(ctx context.Context, a principal.Principal, h credential.Holder, id string) error {
	err := d.DB.Write(ctx, func(tx *sqldb.Tx) error {
		t, err := credential.Delete(ctx, tx, h, id)
		if err != nil {
			return err
		}
		return tokenAct(ctx, tx, audit.TokenDeleted, a, t)
	})
	if err == nil {
		failpoint.Hit("revoke.after_commit_before_reply")
	}
	return err
}

func tokenAct(ctx context.Context, tx *sqldb.Tx, done audit.Act, a principal.Principal, t credential.Token) error {
	return audit.Add(ctx, tx, audit.Entry{
		Act:       done,
		ActorID:   a.PersonID,
		PersonID:  t.PersonID,
		CompanyID: t.CompanyID,
		Address:   a.Address,
		Details:   map[string]string{"token": t.ID, "name": t.Name},
	})
}

func tokensEnded(ctx context.Context, tx *sqldb.Tx, a principal.Principal, all []credential.Token) error {
	for _, t := range all {
		if err := tokenAct(ctx, tx, audit.TokenDeleted, a, t); err != nil {
			return err
		}
	}
	return nil
}
