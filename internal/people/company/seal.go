package company

import (
	"context"

	"atelier/internal/base/seal"
	"atelier/internal/base/sqldb"
)

// Sealed lists the tables of this package whose rows are protected against
// manipulation by a keyed hash, because they determine permissions.
var (
	sealedCompanies   = seal.Table{Name: "company", Key: []string{"id"}, Columns: []string{"plan"}}
	sealedRoles       = seal.Table{Name: "company_role", Key: []string{"company_id", "name"}, Columns: []string{"permissions"}}
	sealedMembers     = seal.Table{Name: "company_member", Key: []string{"company_id", "person_id"}, Columns: []string{"role"}}
	sealedTeamRoles   = seal.Table{Name: "team_role", Key: []string{"team_id", "name"}, Columns: []string{"permissions", "tools_allowed", "tools_blocked", "plugin_kinds", "spend_tokens", "spend_seconds"}}
	sealedTeamMembers = seal.Table{Name: "team_member", Key: []string{"team_id", "person_id"}, Columns: []string{"role"}}
	sealedInvitations = seal.Table{Name: "invitation", Key: []string{"id"}, Columns: []string{"hash", "company_id", "company_role", "team_id", "team_role", "email_key", "uses_left", "expires"}}
	sealedDomains     = seal.Table{Name: "company_domain", Key: []string{"company_id", "domain"}, Columns: []string{"proof", "team_id", "team_role", "verified"}}

	Sealed = []seal.Table{sealedCompanies, sealedRoles, sealedMembers, sealedTeamRoles, sealedTeamMembers, sealedInvitations, sealedDomains}
)

// execSealed runs a statement that writes rows of a table, and renews the seals
// (keyed hashes) of the rows that match the SQL condition where.
func execSealed(ctx context.Context, tx *sqldb.Tx, t seal.Table, where string, keys []any, query string, args ...any) error {
	if err := execQuery(ctx, tx, query, args...); err != nil {
		return err
	}
	return t.RenewSeals(ctx, tx, where, keys...)
}
