package directory

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
)

// Domains gives a company's mail domains by name.
func (d *Directory) Domains(ctx context.Context, a principal.Principal, companyID string) (all []company.Domain, err error) {
	err = d.look(ctx, a, companyID, managesMembers, func(tx *sqldb.Tx, _ standing) error {
		all, err = company.Domains(ctx, tx, companyID)
		return err
	})
	return all, err
}

// AddDomain notes a domain, to be verified. Its people will join the company,
// and the team where teamID is not "".
func (d *Directory) AddDomain(ctx context.Context, a principal.Principal, companyID, name, teamID, teamRole string) (added company.Domain, err error) {
	err = d.change(ctx, a, companyID, managesMembers, func(tx *sqldb.Tx, s standing) (e audit.Entry, err error) {
		if err := s.coversRole(ctx, tx, company.RoleMember); err != nil {
			return e, err
		}
		if err := s.mayLeadTo(ctx, tx, teamID, orMember(teamRole)); err != nil {
			return e, err
		}
		added, err = company.AddDomain(ctx, tx, companyID, name, teamID, teamRole)
		return audit.Entry{Act: audit.DomainAdded, Details: map[string]string{"domain": added.Name, "team": added.TeamID, "team_role": added.TeamRole}}, err
	})
	return added, err
}

// VerifyDomain looks whether the company owns a domain, and if so lets its
// people in. With trust the operator says so, and nobody is asked.
func (d *Directory) VerifyDomain(ctx context.Context, a principal.Principal, companyID, name string, trust bool) (domain company.Domain, err error) {
	err = d.look(ctx, a, companyID, managesMembers, func(tx *sqldb.Tx, _ standing) error {
		domain, err = company.DomainByName(ctx, tx, companyID, name)
		return err
	})
	if err != nil || domain.Verified != nil {
		return domain, err
	}
	if !(trust && a.Operator) {
		proven, err := company.Proves(ctx, d.Resolver, domain)
		if err != nil {
			return domain, err
		}
		if !proven {
			return domain, errUnproven(domain)
		}
	}
	proof := domain.Proof
	err = d.change(ctx, a, companyID, managesMembers, func(tx *sqldb.Tx, _ standing) (e audit.Entry, err error) {
		if domain, err = company.DomainByName(ctx, tx, companyID, name); err != nil {
			return e, err
		}
		if domain.Proof != proof { // removed and added anew
			return e, errUnproven(domain)
		}
		if domain.Verified != nil { // its people joined: whom an admin took out since stays out
			return e, errVerified
		}
		if domain, err = company.VerifyDomain(ctx, tx, companyID, name); err != nil {
			return e, err
		}
		joined, err := company.JoinAllByDomain(ctx, tx, companyID, name)
		return audit.Entry{Act: audit.DomainVerified, Details: map[string]string{"domain": domain.Name, "joined": strconv.Itoa(joined)}}, err
	})
	if errors.Is(err, errVerified) {
		err = nil
	}
	return domain, err
}

// errVerified ends an act that somebody else was quicker with.
var errVerified = errors.New("verified already")

func errUnproven(d company.Domain) error {
	return fault.New(fault.Invalid, fmt.Sprintf("The domain has no TXT record %s that says %s. A new one can take a while to be seen.",
		company.DomainRecord(d.Name), d.Proof)).On("domain")
}

// RemoveDomain forgets a domain. Who joined by it stays.
func (d *Directory) RemoveDomain(ctx context.Context, a principal.Principal, companyID, name string) error {
	return d.change(ctx, a, companyID, managesMembers, func(tx *sqldb.Tx, _ standing) (audit.Entry, error) {
		return audit.Entry{Act: audit.DomainRemoved, Details: map[string]string{"domain": name}}, company.RemoveDomain(ctx, tx, companyID, name)
	})
}
