package directory

import (
	"context"
	"slices"
	"strings"

	"atelier/internal/base/audit"
	"atelier/internal/base/failpoint"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/principal"
)

// Members gives a company's members by address, from after on.
func (d *Directory) Members(ctx context.Context, a principal.Principal, companyID string, after company.Key, limit int) (all []company.Member, err error) {
	err = d.look(ctx, a, companyID, managesMembers, func(tx *sqldb.Tx, _ standing) error {
		all, err = company.Members(ctx, tx, companyID, after, limit)
		return err
	})
	return all, err
}

// SetMember gives a member of the company another role.
func (d *Directory) SetMember(ctx context.Context, a principal.Principal, companyID, personID, role string) (m company.Member, err error) {
	err = d.changeOf(ctx, a, companyID, personID, managesMembers, func(tx *sqldb.Tx, s standing) (audit.Entry, error) {
		if err := s.coversRole(ctx, tx, role); err != nil {
			return audit.Entry{}, err
		}
		was, err := s.roleNameOf(ctx, tx, personID)
		if err != nil {
			return audit.Entry{}, err
		}
		m, err = s.setMember(ctx, tx, personID, role)
		e := audit.Entry{Act: audit.CompanyMemberSet, PersonID: personID, Details: map[string]string{"role": role}}
		return e.Changing(was, role), err
	})
	return m, err
}

// SetMemberPermissions takes a person into the company, or keeps them there,
// with exactly these permissions. It is the operator's act.
func (d *Directory) SetMemberPermissions(ctx context.Context, a principal.Principal, companyID, email string, perms []company.Permission) (uid string, err error) {
	if uid, err = d.byEmail(ctx, a, email); err != nil {
		return "", err
	}
	err = d.changeOf(ctx, a, companyID, uid, managesMembers, func(tx *sqldb.Tx, s standing) (audit.Entry, error) {
		role, err := company.RoleWith(ctx, tx, companyID, perms)
		if err != nil {
			return audit.Entry{}, err
		}
		was, err := s.roleNameOf(ctx, tx, uid)
		if err != nil {
			return audit.Entry{}, err
		}
		_, err = s.setMember(ctx, tx, uid, role)
		e := audit.Entry{Act: audit.CompanyMemberSet, PersonID: uid, Details: map[string]string{"role": role, "permissions": names(perms)}}
		return e.Changing(was, role), err
	})
	return uid, err
}

// setMember does what the two acts above share. The role is one that the actor
// may give.
func (s standing) setMember(ctx context.Context, tx *sqldb.Tx, personID, role string) (company.Member, error) {
	p, err := known(ctx, tx, personID)
	if err != nil {
		return company.Member{}, err
	}
	if err := s.mayTakeIn(ctx, tx, personID); err != nil {
		return company.Member{}, err
	}
	if err := s.coversMember(ctx, tx, personID); err != nil {
		return company.Member{}, err
	}
	if _, err := company.SetMember(ctx, tx, s.Company.ID, personID, role); err != nil {
		return company.Member{}, err
	}
	if err := s.keepsAdmin(ctx, tx); err != nil {
		return company.Member{}, err
	}
	m, err := membership(ctx, tx, personID, s.Company.ID)
	if err != nil || m == nil {
		return company.Member{}, orElse(err, errNoMember)
	}
	return company.Member{PersonID: p.ID, Email: p.Email, Role: m.Role.Name, Joined: m.Joined}, nil
}

// RemoveMember takes a person out of the company and its teams. The access
// tokens that the company made for them die with it. Everybody may leave.
func (d *Directory) RemoveMember(ctx context.Context, a principal.Principal, companyID, personID string) error {
	may := managesMembers
	if personID == a.PersonID {
		may = anyMember
	}
	err := d.change(ctx, a, companyID, may, func(tx *sqldb.Tx, s standing) (e audit.Entry, err error) {
		if err := s.coversMember(ctx, tx, personID); err != nil {
			return e, err
		}
		was, err := s.roleNameOf(ctx, tx, personID)
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
		if err := s.keepsAdmin(ctx, tx); err != nil {
			return e, err
		}
		for _, t := range tokens {
			e := audit.Entry{Act: audit.TokenDeleted, PersonID: personID, Details: map[string]string{"token": t.ID, "name": t.Name}}
			if err := record(ctx, tx, a, companyID, e); err != nil {
				return e, err
			}
		}
		e = audit.Entry{Act: audit.CompanyMemberRemoved, PersonID: personID, Details: map[string]string{"teams": strings.Join(teams, " ")}}
		return e.Changing(was, ""), nil
	})
	if err == nil {
		failpoint.Hit("revoke.after_commit_before_reply")
	}
	return err
}

// RemoveMemberByEmail is RemoveMember for the operator, who has addresses.
func (d *Directory) RemoveMemberByEmail(ctx context.Context, a principal.Principal, companyID, email string) error {
	uid, err := d.byEmail(ctx, a, email)
	if err != nil {
		return err
	}
	return d.RemoveMember(ctx, a, companyID, uid)
}

// Roles gives a company's roles by name.
func (d *Directory) Roles(ctx context.Context, a principal.Principal, companyID string) (all []company.Role, err error) {
	err = d.look(ctx, a, companyID, anyMember, func(tx *sqldb.Tx, _ standing) error {
		all, err = company.Roles(ctx, tx, companyID)
		return err
	})
	return all, err
}

// SetRole makes a role or replaces what it allows.
func (d *Directory) SetRole(ctx context.Context, a principal.Principal, companyID string, r company.Role) (stored company.Role, err error) {
	err = d.change(ctx, a, companyID, managesMembers, func(tx *sqldb.Tx, s standing) (e audit.Entry, err error) {
		was, err := roleOf(ctx, tx, companyID, r.Name)
		if err != nil {
			return e, err
		}
		if err := s.covers(was.Permissions); err != nil {
			return e, err
		}
		// First what makes it no role at all: an unknown permission is not one
		// that the actor lacks.
		if err := company.SetRole(ctx, tx, companyID, r); err != nil {
			return e, err
		}
		if err := s.covers(r.Permissions); err != nil {
			return e, err
		}
		if err := s.keepsAdmin(ctx, tx); err != nil {
			return e, err
		}
		stored, err = roleOf(ctx, tx, companyID, r.Name)
		e = audit.Entry{Act: audit.CompanyRoleSet, Details: map[string]string{"role": r.Name, "permissions": names(stored.Permissions)}}
		return e.Changing(describeRole(was), describeRole(stored)), err
	})
	return stored, err
}

// roleOf finds a role of a company by its name. One that does not exist allows
// nothing.
func roleOf(ctx context.Context, tx *sqldb.Tx, companyID, name string) (company.Role, error) {
	all, err := company.Roles(ctx, tx, companyID)
	if i := slices.IndexFunc(all, func(o company.Role) bool { return o.Name == name }); i >= 0 {
		return all[i], nil
	}
	return company.Role{}, err
}

// DeleteRole takes a role away that nobody has.
func (d *Directory) DeleteRole(ctx context.Context, a principal.Principal, companyID, name string) error {
	return d.change(ctx, a, companyID, managesMembers, func(tx *sqldb.Tx, s standing) (e audit.Entry, err error) {
		was, err := roleOf(ctx, tx, companyID, name)
		if err != nil {
			return e, err
		}
		if err := s.covers(was.Permissions); err != nil {
			return e, err
		}
		e = audit.Entry{Act: audit.CompanyRoleDeleted, Details: map[string]string{"role": name}}
		return e.Changing(describeRole(was), ""), company.DeleteRole(ctx, tx, companyID, name)
	})
}

// orElse gives the accident where there was one and else the decision.
func orElse(err error, decided error) error {
	if err != nil {
		return err
	}
	return decided
}
