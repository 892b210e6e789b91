package companyadmin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"atelier/internal/base/audit"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
)

// Domains manages the mail domains of companies.
type Domains struct {
	db       auditedDB
	resolver *net.Resolver
}

// ListDomains returns a company's mail domains, ordered by name.
func (s *Domains) ListDomains(ctx context.Context, caller principal.Principal, companyID string) (all []company.Domain, err error) {
	err = s.db.readCompany(ctx, caller, companyID, requireManageMembers, func(tx *sqldb.Tx, _ companyAccess) error {
		all, err = company.Domains(ctx, tx, companyID)
		return err
	})
	return all, err
}

// AddDomain adds a domain that is not verified yet. Once it is verified, people
// with an e-mail address in it join the company, and the team teamID unless that
// is "".
func (s *Domains) AddDomain(ctx context.Context, caller principal.Principal, companyID, name, teamID, teamRole string) (added company.Domain, err error) {
	err = s.db.changeCompany(ctx, caller, companyID, requireManageMembers, func(tx *sqldb.Tx, c companyAccess) (e audit.Entry, err error) {
		if err := c.requireRole(ctx, tx, company.RoleMember); err != nil {
			return e, err
		}
		if err := c.authorizeTeamEntry(ctx, tx, teamID, roleOrMember(teamRole)); err != nil {
			return e, err
		}

		added, err = company.AddDomain(ctx, tx, companyID, name, teamID, teamRole)
		return audit.Entry{Act: audit.DomainAdded, Details: map[string]string{"domain": added.Name, "team": added.TeamID, "team_role": added.TeamRole}}, err
	})
	return added, err
}

// VerifyDomain looks up the DNS record with which the company proves that it
// owns a domain. If the record exists, the domain is marked as verified, and
// people with a verified e-mail address in it join the company. The operator can
// set trust to skip the DNS lookup.
func (s *Domains) VerifyDomain(ctx context.Context, caller principal.Principal, companyID, name string, trust bool) (domain company.Domain, err error) {
	err = s.db.readCompany(ctx, caller, companyID, requireManageMembers, func(tx *sqldb.Tx, _ companyAccess) error {
		domain, err = company.DomainByName(ctx, tx, companyID, name)
		return err
	})
	if err != nil || domain.Verified != nil {
		return domain, err
	}

	if !(trust && caller.Operator) {
		proven, err := company.HasDomainProof(ctx, s.resolver, domain)
		if err != nil {
			return domain, err
		}
		if !proven {
			return domain, newUnprovenFault(domain)
		}
	}

	proof := domain.Proof
	err = s.db.changeCompany(ctx, caller, companyID, requireManageMembers, func(tx *sqldb.Tx, _ companyAccess) (e audit.Entry, err error) {
		if domain, err = company.DomainByName(ctx, tx, companyID, name); err != nil {
			return e, err
		}
		if domain.Proof != proof { // the domain was removed and added again during the DNS lookup
			return e, newUnprovenFault(domain)
		}
		// A concurrent request has already verified the domain and added its
		// people. Adding them again would re-add a person whom an admin has
		// removed since.
		if domain.Verified != nil {
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

// errVerified rolls back the transaction if a concurrent request has already
// verified the domain.
var errVerified = errors.New("domain is already verified")

func newUnprovenFault(d company.Domain) error {
	return fault.New(fault.Invalid, fmt.Sprintf("The domain has no TXT record %s with the value %s. A new record can take a while to become visible.",
		company.DomainRecord(d.Name), d.Proof)).On("domain")
}

// RemoveDomain removes a domain. Members who joined through it stay members.
func (s *Domains) RemoveDomain(ctx context.Context, caller principal.Principal, companyID, name string) error {
	return s.db.changeCompany(ctx, caller, companyID, requireManageMembers, func(tx *sqldb.Tx, _ companyAccess) (audit.Entry, error) {
		return audit.Entry{Act: audit.DomainRemoved, Details: map[string]string{"domain": name}}, company.RemoveDomain(ctx, tx, companyID, name)
	})
}
