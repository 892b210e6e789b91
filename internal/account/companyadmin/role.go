package companyadmin

import (
	"context"
	"slices"

	"atelier/internal/base/audit"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
)

// Roles manages the roles of companies.
type Roles struct {
	db auditedDB
}

// ListRoles returns a company's roles, ordered by name.
func (s *Roles) ListRoles(ctx context.Context, caller principal.Principal, companyID string) (all []company.Role, err error) {
	err = s.db.readCompany(ctx, caller, companyID, allowMembers, func(tx *sqldb.Tx, _ companyAccess) error {
		all, err = company.Roles(ctx, tx, companyID)
		return err
	})
	return all, err
}

// SetRole creates a role of a company or replaces its permissions.
func (s *Roles) SetRole(ctx context.Context, caller principal.Principal, companyID string, r company.Role) (stored company.Role, err error) {
	err = s.db.changeCompany(ctx, caller, companyID, requireManageMembers, func(tx *sqldb.Tx, c companyAccess) (e audit.Entry, err error) {
		before, err := findRole(ctx, tx, companyID, r.Name)
		if err != nil {
			return e, err
		}
		if err := c.requirePermissions(before.Permissions); err != nil {
			return e, err
		}

		// The role is stored before the new permissions are checked, so that an
		// unknown permission is reported as invalid, not as one that the caller
		// does not have.
		if err := company.SetRole(ctx, tx, companyID, r); err != nil {
			return e, err
		}
		if err := c.requirePermissions(r.Permissions); err != nil {
			return e, err
		}
		if err := c.requireAdminLeft(ctx, tx); err != nil {
			return e, err
		}

		stored, err = findRole(ctx, tx, companyID, r.Name)
		e = audit.Entry{Act: audit.CompanyRoleSet, Details: map[string]string{"role": r.Name, "permissions": joinPermissions(stored.Permissions)}}
		return e.WithChange(describeRole(before), describeRole(stored)), err
	})
	return stored, err
}

// DeleteRole deletes a role of a company. It refuses a role that a member or a
// live invitation has.
func (s *Roles) DeleteRole(ctx context.Context, caller principal.Principal, companyID, name string) error {
	return s.db.changeCompany(ctx, caller, companyID, requireManageMembers, func(tx *sqldb.Tx, c companyAccess) (e audit.Entry, err error) {
		before, err := findRole(ctx, tx, companyID, name)
		if err != nil {
			return e, err
		}
		if err := c.requirePermissions(before.Permissions); err != nil {
			return e, err
		}

		e = audit.Entry{Act: audit.CompanyRoleDeleted, Details: map[string]string{"role": name}}
		return e.WithChange(describeRole(before), ""), company.DeleteRole(ctx, tx, companyID, name)
	})
}

// findRole returns the named role of a company, or a role without permissions
// if the company does not have it.
func findRole(ctx context.Context, tx *sqldb.Tx, companyID, name string) (company.Role, error) {
	all, err := company.Roles(ctx, tx, companyID)
	if i := slices.IndexFunc(all, func(o company.Role) bool { return o.Name == name }); i >= 0 {
		return all[i], nil
	}
	return company.Role{}, err
}

// roleOrMember returns role, or the name of the role "member" if role is "".
func roleOrMember(role string) string {
	if role == "" {
		return company.RoleMember
	}
	return role
}
