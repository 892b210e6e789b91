package companyadmin

import (
	"context"
	"strings"

	"atelier/internal/base/audit"
	"atelier/internal/base/failpoint"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/principal"
)

// Members manages the members of companies.
type Members struct {
	db auditedDB
}

// ListMembers returns at most limit members of a company, ordered by mail
// address, starting after the given position.
func (s *Members) ListMembers(ctx context.Context, caller principal.Principal, companyID string, after company.Key, limit int) (all []company.Member, err error) {
	err = s.db.readCompany(ctx, caller, companyID, requireManageMembers, func(tx *sqldb.Tx, _ companyAccess) error {
		all, err = company.Members(ctx, tx, companyID, after, limit)
		return err
	})
	return all, err
}

// SetMember assigns another role to a member of the company.
func (s *Members) SetMember(ctx context.Context, caller principal.Principal, companyID, personID, role string) (m company.Member, err error) {
	err = s.db.changeCompanyAndPerson(ctx, caller, companyID, personID, requireManageMembers, func(tx *sqldb.Tx, c companyAccess) (audit.Entry, error) {
		if err := c.requireRole(ctx, tx, role); err != nil {
			return audit.Entry{}, err
		}
		before, err := c.roleNameOf(ctx, tx, personID)
		if err != nil {
			return audit.Entry{}, err
		}

		m, err = c.setMemberRole(ctx, tx, personID, role)
		e := audit.Entry{Act: audit.CompanyMemberSet, PersonID: personID, Details: map[string]string{"role": role}}
		return e.WithChange(before, role), err
	})
	return m, err
}

// SetMemberPermissions gives the person with the given e-mail address exactly
// these permissions in the company. A person who is not a member is added. Only
// the operator may call it.
func (s *Members) SetMemberPermissions(ctx context.Context, caller principal.Principal, companyID, email string, perms []company.Permission) (personID string, err error) {
	if personID, err = s.db.findIDByEmail(ctx, caller, email); err != nil {
		return "", err
	}

	err = s.db.changeCompanyAndPerson(ctx, caller, companyID, personID, requireManageMembers, func(tx *sqldb.Tx, c companyAccess) (audit.Entry, error) {
		role, err := company.EnsureRole(ctx, tx, companyID, perms)
		if err != nil {
			return audit.Entry{}, err
		}
		before, err := c.roleNameOf(ctx, tx, personID)
		if err != nil {
			return audit.Entry{}, err
		}

		_, err = c.setMemberRole(ctx, tx, personID, role)
		e := audit.Entry{Act: audit.CompanyMemberSet, PersonID: personID, Details: map[string]string{"role": role, "permissions": joinPermissions(perms)}}
		return e.WithChange(before, role), err
	})
	return personID, err
}

// setMemberRole assigns a role to a person if the caller is allowed to grant
// the role.
func (c companyAccess) setMemberRole(ctx context.Context, tx *sqldb.Tx, personID, role string) (company.Member, error) {
	p, err := lockPerson(ctx, tx, personID)
	if err != nil {
		return company.Member{}, err
	}
	if err := c.requireMember(ctx, tx, personID); err != nil {
		return company.Member{}, err
	}
	if err := c.requireRoleOf(ctx, tx, personID); err != nil {
		return company.Member{}, err
	}

	if _, err := company.SetMember(ctx, tx, c.Company.ID, personID, role); err != nil {
		return company.Member{}, err
	}
	if err := c.requireAdminLeft(ctx, tx); err != nil {
		return company.Member{}, err
	}

	m, err := FindMembership(ctx, tx, personID, c.Company.ID)
	if err != nil {
		return company.Member{}, err
	}
	if m == nil {
		return company.Member{}, errNoMember
	}
	return company.Member{PersonID: p.ID, Email: p.Email, Role: m.Role.Name, Joined: m.Joined}, nil
}

// RemoveMember removes a person from the company and its teams, and deletes the
// company's access tokens that act for them. Every member can remove
// themselves.
func (s *Members) RemoveMember(ctx context.Context, caller principal.Principal, companyID, personID string) error {
	rule := requireManageMembers
	if personID == caller.PersonID {
		rule = allowMembers
	}

	err := s.db.changeCompany(ctx, caller, companyID, rule, func(tx *sqldb.Tx, c companyAccess) (e audit.Entry, err error) {
		if err := c.requireRoleOf(ctx, tx, personID); err != nil {
			return e, err
		}
		before, err := c.roleNameOf(ctx, tx, personID)
		if err != nil {
			return e, err
		}

		teams, err := company.RemoveMember(ctx, tx, companyID, personID)
		if err != nil {
			return e, err
		}
		tokens, err := credential.DeleteOf(ctx, tx, personID, companyID)
		if err != nil {
			return e, err
		}
		if err := c.requireAdminLeft(ctx, tx); err != nil {
			return e, err
		}

		for _, t := range tokens {
			e := audit.Entry{Act: audit.TokenDeleted, PersonID: personID, Details: map[string]string{"token": t.ID, "name": t.Name}}
			if err := recordEntry(ctx, tx, caller, companyID, e); err != nil {
				return e, err
			}
		}
		e = audit.Entry{Act: audit.CompanyMemberRemoved, PersonID: personID, Details: map[string]string{"teams": strings.Join(teams, " ")}}
		return e.WithChange(before, ""), nil
	})
	if err == nil {
		failpoint.Hit("revoke.after_commit_before_reply")
	}
	return err
}

// RemoveMemberByEmail is RemoveMember for the person with the given mail
// address. Only the operator may call it.
func (s *Members) RemoveMemberByEmail(ctx context.Context, caller principal.Principal, companyID, email string) error {
	personID, err := s.db.findIDByEmail(ctx, caller, email)
	if err != nil {
		return err
	}
	return s.RemoveMember(ctx, caller, companyID, personID)
}
