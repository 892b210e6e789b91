package company

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
)

// nameList is a list of names that is stored as JSON in a text column.
type nameList[T ~string] []T

// Scan implements sql.Scanner.
func (l *nameList[T]) Scan(src any) error {
	text, ok := src.(string)
	if !ok {
		return fmt.Errorf("scan list: the column has the type %T, not text", src)
	}
	return json.Unmarshal([]byte(text), (*[]T)(l))
}

// listText encodes a list as JSON for its column. Encoding cannot fail, and the
// names contain no characters that JSON escapes.
func listText[T ~string](l []T) string {
	if len(l) == 0 {
		return "[]"
	}
	b, _ := json.Marshal(l)
	return string(b)
}

// timeColumn is an sql.Scanner that reads a time column into a time.Time.
type timeColumn struct{ to *time.Time }

func scanTime(t *time.Time) *timeColumn { return &timeColumn{t} }

// Scan implements sql.Scanner.
func (m *timeColumn) Scan(src any) error {
	var t sqldb.Time
	err := t.Scan(src)
	*m.to = t.Time
	return err
}

// scanOne scans the only row of a query, and returns the error missing if the
// query has no rows.
func scanOne[T any](row sqldb.Scanner, scan func(sqldb.Scanner) (T, error), missing *fault.Error) (T, error) {
	one, err := scan(row)
	if errors.Is(err, sqldb.ErrNoRows) {
		var none T
		return none, missing
	}
	return one, err
}

// hasRows reports whether a query returns at least one row.
func hasRows(ctx context.Context, tx *sqldb.Tx, query string, args ...any) (is bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (`+query+`)`, args...).Scan(&is)
	return is, err
}

// execChanged runs a statement and reports whether it changed at least one row.
func execChanged(ctx context.Context, tx *sqldb.Tx, query string, args ...any) (bool, error) {
	n, err := tx.Exec(ctx, query, args...)
	return n > 0, err
}

func execQuery(ctx context.Context, tx *sqldb.Tx, query string, args ...any) error {
	_, err := tx.Exec(ctx, query, args...)
	return err
}

func scanText(row sqldb.Scanner) (s string, err error) {
	err = row.Scan(&s)
	return s, err
}

// Queries for companies.

// firstZone is the time zone of companies that have not set one.
const firstZone = "UTC"

const (
	companyColumns = `c.id, c.name, c.plan, coalesce(z.zone, '` + firstZone + `'), c.created`
	companyZone    = ` LEFT JOIN report_zone z ON z.company_id = c.id`
)

func (c *Company) scanColumns() []any {
	return []any{&c.ID, &c.Name, (*string)(&c.Plan), &c.Zone, scanTime(&c.Created)}
}

func scanCompany(row sqldb.Scanner) (c Company, err error) {
	err = row.Scan(c.scanColumns()...)
	return c, err
}

func insertCompany(ctx context.Context, tx *sqldb.Tx, c Company) error {
	return execSealed(ctx, tx, sealedCompanies, `id = $1`, []any{c.ID}, `INSERT INTO company (id, name, plan, created) VALUES ($1, $2, $3, $4)`, c.ID, c.Name, string(c.Plan), sqldb.At(c.Created))
}

func lockCompany(ctx context.Context, tx *sqldb.Tx, id string) error {
	_, err := scanOne(tx.QueryRow(ctx, `SELECT id FROM company WHERE id = $1`+tx.Dialect.ForUpdate, id), scanText, errNoCompany)
	return err
}

func lockCompanyOf(ctx context.Context, tx *sqldb.Tx, teamID string) error {
	_, err := scanOne(tx.QueryRow(ctx, `SELECT id FROM company WHERE id = (SELECT company_id FROM team WHERE id = $1)`+tx.Dialect.ForUpdate, teamID), scanText, errNoTeam)
	return err
}

func companyByID(ctx context.Context, tx *sqldb.Tx, id string) (Company, error) {
	return scanOne(tx.QueryRow(ctx, `SELECT `+companyColumns+` FROM company c`+companyZone+` WHERE c.id = $1`, id), scanCompany, errNoCompany)
}

// List returns at most limit companies, ordered by id, starting after afterID.
// It returns only companies whose name contains text; upper and lower case make
// no difference.
func List(ctx context.Context, tx *sqldb.Tx, text, afterID string, limit int) ([]Company, error) {
	var args sqldb.Args
	where := `c.id > ` + args.Add(afterID)
	if text != "" {
		where += ` AND lower(c.name) LIKE lower(` + args.Add(sqldb.ContainsPattern(text)) + `) ESCAPE '!'`
	}
	return sqldb.All(ctx, tx, `SELECT `+companyColumns+` FROM company c`+companyZone+` WHERE `+where+` ORDER BY c.id LIMIT `+args.Add(limit), args, scanCompany)
}

// TeamLabel has the names of a team and of its company.
type TeamLabel struct {
	Name        string
	CompanyID   string
	CompanyName string
}

// TeamLabels returns the names of teams by their ids, including removed teams.
func TeamLabels(ctx context.Context, tx *sqldb.Tx, teamIDs []string) (map[string]TeamLabel, error) {
	labels := map[string]TeamLabel{}
	if len(teamIDs) == 0 {
		return labels, nil
	}
	in, args := sqldb.In(teamIDs)
	err := tx.EachRow(ctx, `
		SELECT t.id, t.name, c.id, c.name FROM team t JOIN company c ON c.id = t.company_id WHERE t.id IN `+in, args, func(row sqldb.Scanner) error {
		var id string
		var label TeamLabel
		err := row.Scan(&id, &label.Name, &label.CompanyID, &label.CompanyName)
		labels[id] = label
		return err
	})
	return labels, err
}

// Count returns the number of members of a company and the number of its teams.
func Count(ctx context.Context, tx *sqldb.Tx, companyID string) (members, teams int, err error) {
	err = tx.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM company_member WHERE company_id = $1), (SELECT count(*) FROM team WHERE company_id = $1 AND NOT removed)`, companyID).
		Scan(&members, &teams)
	return members, teams, err
}

func renameCompany(ctx context.Context, tx *sqldb.Tx, id, name string) error {
	return execQuery(ctx, tx, `UPDATE company SET name = $2 WHERE id = $1`, id, name)
}

func setPlan(ctx context.Context, tx *sqldb.Tx, id string, plan Plan) error {
	return execSealed(ctx, tx, sealedCompanies, `id = $1`, []any{id}, `UPDATE company SET plan = $2 WHERE id = $1`, id, string(plan))
}

const membershipQuery = `
	SELECT ` + companyColumns + `, r.name, r.permissions, m.created
	FROM company_member m
	JOIN company c ON c.id = m.company_id
	JOIN company_role r ON r.company_id = m.company_id AND r.name = m.role` + companyZone + `
	WHERE m.person_id = $1`

func scanMembership(row sqldb.Scanner) (m Membership, err error) {
	err = row.Scan(append(m.Company.scanColumns(), &m.Role.Name, (*nameList[Permission])(&m.Role.Permissions), scanTime(&m.Joined))...)
	return m, err
}

// CompanyMemberships returns a person's memberships in companies, ordered by
// the company's name.
func CompanyMemberships(ctx context.Context, tx *sqldb.Tx, personID string) ([]Membership, error) {
	return sqldb.All(ctx, tx, membershipQuery+` ORDER BY c.name, c.id`, []any{personID}, scanMembership)
}

func companyMembership(ctx context.Context, q sqldb.Querier, personID, companyID string) (Membership, error) {
	return scanMembership(q.QueryRow(ctx, membershipQuery+` AND m.company_id = $2`+q.Locking("SHARE OF m, r"), personID, companyID))
}

// Queries for the roles of companies.

func scanRole(row sqldb.Scanner) (r Role, err error) {
	err = row.Scan(&r.Name, (*nameList[Permission])(&r.Permissions))
	return r, err
}

// Roles returns a company's roles, ordered by name.
func Roles(ctx context.Context, tx *sqldb.Tx, companyID string) ([]Role, error) {
	return sqldb.All(ctx, tx, `SELECT name, permissions FROM company_role WHERE company_id = $1 ORDER BY name`, []any{companyID}, scanRole)
}

func rolesHeld(ctx context.Context, tx *sqldb.Tx, companyID string) ([]Role, error) {
	return sqldb.All(ctx, tx, `
		SELECT r.name, r.permissions FROM company_role r WHERE r.company_id = $1
		AND EXISTS (SELECT 1 FROM company_member m WHERE m.company_id = r.company_id AND m.role = r.name)`, []any{companyID}, scanRole)
}

func hasRole(ctx context.Context, tx *sqldb.Tx, companyID, name string) (bool, error) {
	return hasRows(ctx, tx, `SELECT 1 FROM company_role WHERE company_id = $1 AND name = $2`, companyID, name)
}

func putRole(ctx context.Context, tx *sqldb.Tx, companyID string, r Role) error {
	return execSealed(ctx, tx, sealedRoles, `company_id = $1 AND name = $2`, []any{companyID, r.Name}, `
		INSERT INTO company_role (company_id, name, permissions) VALUES ($1, $2, $3)
		ON CONFLICT (company_id, name) DO UPDATE SET permissions = excluded.permissions`, companyID, r.Name, listText(r.Permissions))
}

// deleteRole deletes a role of a company unless a member or a live invitation
// has it. Expired and used-up invitations with the role are deleted first,
// because they would prevent the deletion.
func deleteRole(ctx context.Context, tx *sqldb.Tx, companyID, name string) (bool, error) {
	err := execQuery(ctx, tx, `DELETE FROM invitation WHERE company_id = $1 AND company_role = $2 AND (uses_left = 0 OR expires <= $3)`,
		companyID, name, sqldb.At(tx.Now))
	if err != nil {
		return false, err
	}
	return execChanged(ctx, tx, `
		DELETE FROM company_role WHERE company_id = $1 AND name = $2
		AND NOT EXISTS (SELECT 1 FROM company_member WHERE company_id = $1 AND role = $2)
		AND NOT EXISTS (SELECT 1 FROM invitation WHERE company_id = $1 AND company_role = $2)`, companyID, name)
}

// Queries for the roles of teams.

const teamRoleColumns = `r.name, r.permissions, r.tools_allowed, r.tools_blocked, r.plugin_kinds, r.spend_tokens, r.spend_seconds`

// readTeamRole scans a row: the last columns, which are teamRoleColumns, into
// r, and the columns in front of them into before.
func readTeamRole(row sqldb.Scanner, r *TeamRole, before ...any) error {
	var tokens, seconds sql.NullInt64
	err := row.Scan(append(before, &r.Name, (*nameList[Permission])(&r.Permissions), (*nameList[string])(&r.ToolsAllowed),
		(*nameList[string])(&r.ToolsBlocked), (*nameList[string])(&r.PluginKinds), &tokens, &seconds)...)
	if tokens.Valid {
		r.Spend = &Spend{tokens.Int64, time.Duration(seconds.Int64) * time.Second}
	}
	return err
}

func scanTeamRole(row sqldb.Scanner) (r TeamRole, err error) {
	err = readTeamRole(row, &r)
	return r, err
}

// TeamRoles returns a team's roles, ordered by name.
func TeamRoles(ctx context.Context, tx *sqldb.Tx, teamID string) ([]TeamRole, error) {
	return sqldb.All(ctx, tx, `SELECT `+teamRoleColumns+` FROM team_role r WHERE r.team_id = $1 ORDER BY r.name`, []any{teamID}, scanTeamRole)
}

func teamRole(ctx context.Context, tx *sqldb.Tx, teamID, name string) (TeamRole, error) {
	return scanOne(tx.QueryRow(ctx, `SELECT `+teamRoleColumns+` FROM team_role r WHERE r.team_id = $1 AND r.name = $2`, teamID, name), scanTeamRole, errNoRole)
}

func hasTeamRole(ctx context.Context, tx *sqldb.Tx, teamID, name string) (bool, error) {
	return hasRows(ctx, tx, `SELECT 1 FROM team_role WHERE team_id = $1 AND name = $2`, teamID, name)
}

func putTeamRole(ctx context.Context, tx *sqldb.Tx, teamID string, r TeamRole) error {
	var tokens, seconds sql.NullInt64
	if r.Spend != nil {
		tokens = sql.NullInt64{Int64: r.Spend.Tokens, Valid: true}
		seconds = sql.NullInt64{Int64: int64(r.Spend.Window / time.Second), Valid: true}
	}
	return execSealed(ctx, tx, sealedTeamRoles, `team_id = $1 AND name = $2`, []any{teamID, r.Name}, `
		INSERT INTO team_role (team_id, name, permissions, tools_allowed, tools_blocked, plugin_kinds, spend_tokens, spend_seconds)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (team_id, name) DO UPDATE SET permissions = excluded.permissions,
			tools_allowed = excluded.tools_allowed, tools_blocked = excluded.tools_blocked, plugin_kinds = excluded.plugin_kinds,
			spend_tokens = excluded.spend_tokens, spend_seconds = excluded.spend_seconds`,
		teamID, r.Name, listText(r.Permissions), listText(r.ToolsAllowed), listText(r.ToolsBlocked), listText(r.PluginKinds), tokens, seconds)
}

// deleteTeamRole is deleteRole for the roles of a team. A mail domain that
// assigns the role prevents the deletion too.
func deleteTeamRole(ctx context.Context, tx *sqldb.Tx, teamID, name string) (bool, error) {
	err := execQuery(ctx, tx, `DELETE FROM invitation WHERE team_id = $1 AND team_role = $2 AND (uses_left = 0 OR expires <= $3)`,
		teamID, name, sqldb.At(tx.Now))
	if err != nil {
		return false, err
	}
	return execChanged(ctx, tx, `
		DELETE FROM team_role WHERE team_id = $1 AND name = $2
		AND NOT EXISTS (SELECT 1 FROM team_member WHERE team_id = $1 AND role = $2)
		AND NOT EXISTS (SELECT 1 FROM invitation WHERE team_id = $1 AND team_role = $2)
		AND NOT EXISTS (SELECT 1 FROM company_domain WHERE team_id = $1 AND team_role = $2)`, teamID, name)
}

// Queries for the members of companies and teams.

func isMember(ctx context.Context, tx *sqldb.Tx, companyID, personID string) (bool, error) {
	return hasRows(ctx, tx, `SELECT 1 FROM company_member WHERE company_id = $1 AND person_id = $2`, companyID, personID)
}

// addMember adds a person to the company unless they are already a member. A
// user whom the company's identity provider had deactivated is marked as active
// again.
func addMember(ctx context.Context, tx *sqldb.Tx, companyID, personID, role string) (fresh bool, err error) {
	fresh, err = execChanged(ctx, tx, `
		INSERT INTO company_member (company_id, person_id, role, created) VALUES ($1, $2, $3, $4)
		ON CONFLICT (company_id, person_id) DO NOTHING`, companyID, personID, role, sqldb.At(tx.Now))
	if err != nil || !fresh {
		return fresh, err
	}
	if err := sealedMembers.RenewSeals(ctx, tx, `company_id = $1 AND person_id = $2`, companyID, personID); err != nil {
		return fresh, err
	}
	off, err := execChanged(ctx, tx, `UPDATE scim_user SET active = TRUE, role = '', updated = $3 WHERE company_id = $1 AND person_id = $2 AND NOT active`,
		companyID, personID, sqldb.At(tx.Now))
	if err == nil && off {
		err = dropSeats(ctx, tx, companyID, personID)
	}
	return fresh, err
}

func setMemberRole(ctx context.Context, tx *sqldb.Tx, companyID, personID, role string) error {
	return execSealed(ctx, tx, sealedMembers, `company_id = $1 AND person_id = $2`, []any{companyID, personID}, `UPDATE company_member SET role = $3 WHERE company_id = $1 AND person_id = $2`, companyID, personID, role)
}

func deleteMember(ctx context.Context, tx *sqldb.Tx, companyID, personID string) (bool, error) {
	return execChanged(ctx, tx, `DELETE FROM company_member WHERE company_id = $1 AND person_id = $2`, companyID, personID)
}

// Members returns at most limit members of a company, ordered by e-mail address,
// starting after the given position.
func Members(ctx context.Context, tx *sqldb.Tx, companyID string, after Key, limit int) ([]Member, error) {
	return sqldb.All(ctx, tx, `
		SELECT p.id, p.email, m.role, m.created FROM company_member m JOIN person p ON p.id = m.person_id
		WHERE m.company_id = $1 AND (p.email_key, p.id) > ($2, $3) ORDER BY p.email_key, p.id LIMIT $4`,
		[]any{companyID, after.Text, after.ID, limit}, func(row sqldb.Scanner) (m Member, err error) {
			err = row.Scan(&m.PersonID, &m.Email, &m.Role, scanTime(&m.Joined))
			return m, err
		})
}

func isTeamMember(ctx context.Context, tx *sqldb.Tx, teamID, personID string) (bool, error) {
	return hasRows(ctx, tx, `SELECT 1 FROM team_member WHERE team_id = $1 AND person_id = $2`, teamID, personID)
}

// addTeamMember adds a person to the team unless they are already a member.
func addTeamMember(ctx context.Context, tx *sqldb.Tx, teamID, personID, role string, how How) (fresh bool, err error) {
	fresh, err = execChanged(ctx, tx, `
		INSERT INTO team_member (team_id, person_id, role, how, joined) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (team_id, person_id) DO NOTHING`, teamID, personID, role, string(how), sqldb.At(tx.Now))
	if err != nil || !fresh {
		return fresh, err
	}
	return fresh, sealedTeamMembers.RenewSeals(ctx, tx, `team_id = $1 AND person_id = $2`, teamID, personID)
}

func setTeamMemberRole(ctx context.Context, tx *sqldb.Tx, teamID, personID, role string) error {
	return execSealed(ctx, tx, sealedTeamMembers, `team_id = $1 AND person_id = $2`, []any{teamID, personID}, `UPDATE team_member SET role = $3 WHERE team_id = $1 AND person_id = $2`, teamID, personID, role)
}

func deleteTeamMember(ctx context.Context, tx *sqldb.Tx, teamID, personID string) (bool, error) {
	return execChanged(ctx, tx, `DELETE FROM team_member WHERE team_id = $1 AND person_id = $2`, teamID, personID)
}

// leaveTeams removes a person from all teams of a company and returns the ids
// of these teams.
func leaveTeams(ctx context.Context, tx *sqldb.Tx, companyID, personID string) ([]string, error) {
	return sqldb.All(ctx, tx, `
		DELETE FROM team_member WHERE person_id = $2 AND team_id IN (SELECT id FROM team WHERE company_id = $1)
		RETURNING team_id`, []any{companyID, personID}, scanText)
}

// TeamMembers returns at most limit members of a team, ordered by e-mail address,
// starting after the given position.
func TeamMembers(ctx context.Context, tx *sqldb.Tx, teamID string, after Key, limit int) ([]TeamMember, error) {
	return sqldb.All(ctx, tx, `
		SELECT p.id, p.email, m.role, m.joined, m.how FROM team_member m JOIN person p ON p.id = m.person_id
		WHERE m.team_id = $1 AND (p.email_key, p.id) > ($2, $3) ORDER BY p.email_key, p.id LIMIT $4`,
		[]any{teamID, after.Text, after.ID, limit}, func(row sqldb.Scanner) (m TeamMember, err error) {
			err = row.Scan(&m.PersonID, &m.Email, &m.Role, scanTime(&m.Joined), (*string)(&m.How))
			return m, err
		})
}

// Queries for teams.

const teamColumns = `t.id, t.company_id, t.name, t.created`

func (t *Team) scanColumns() []any { return []any{&t.ID, &t.CompanyID, &t.Name, scanTime(&t.Created)} }

func scanTeam(row sqldb.Scanner) (t Team, err error) {
	err = row.Scan(t.scanColumns()...)
	return t, err
}

func insertTeam(ctx context.Context, tx *sqldb.Tx, t Team) error {
	return execQuery(ctx, tx, `INSERT INTO team (id, company_id, name, removed, created) VALUES ($1, $2, $3, FALSE, $4)`,
		t.ID, t.CompanyID, t.Name, sqldb.At(t.Created))
}

func teamByID(ctx context.Context, tx *sqldb.Tx, id string) (Team, error) {
	return scanOne(tx.QueryRow(ctx, `SELECT `+teamColumns+` FROM team t WHERE t.id = $1 AND NOT t.removed`, id), scanTeam, errNoTeam)
}

func renameTeam(ctx context.Context, tx *sqldb.Tx, id, name string) error {
	return execQuery(ctx, tx, `UPDATE team SET name = $2 WHERE id = $1`, id, name)
}

func removeTeam(ctx context.Context, tx *sqldb.Tx, id string) error {
	for _, query := range []string{
		`UPDATE team SET removed = TRUE WHERE id = $1`,
		`DELETE FROM team_member WHERE team_id = $1`,
		`DELETE FROM scim_seat WHERE team_id = $1`,
		`DELETE FROM scim_group WHERE team_id = $1`,
		`DELETE FROM invitation WHERE team_id = $1`,
	} {
		if err := execQuery(ctx, tx, query, id); err != nil {
			return err
		}
	}
	domains := `company_id = (SELECT company_id FROM team WHERE id = $1)`
	return sealedDomains.ChangeRows(ctx, tx, domains, []any{id}, func() error {
		return execQuery(ctx, tx, `UPDATE company_domain SET team_id = NULL, team_role = '' WHERE team_id = $1`, id)
	})
}

// ListTeams returns at most limit teams of a company, or of all companies if
// companyID is "", ordered by id, starting after afterID.
func ListTeams(ctx context.Context, tx *sqldb.Tx, companyID, afterID string, limit int) ([]Team, error) {
	where := `NOT t.removed AND t.id > $1`
	args := []any{afterID, limit}
	if companyID != "" {
		where += ` AND t.company_id = $3`
		args = append(args, companyID)
	}
	return sqldb.All(ctx, tx, `SELECT `+teamColumns+` FROM team t WHERE `+where+` ORDER BY t.id LIMIT $2`, args, scanTeam)
}

// CountTeamMembers returns the number of members of a team.
func CountTeamMembers(ctx context.Context, tx *sqldb.Tx, teamID string) (int, error) {
	return scanCount(tx.QueryRow(ctx, `SELECT count(*) FROM team_member WHERE team_id = $1`, teamID))
}

// Teams returns at most limit teams of a company, ordered by name, starting
// after the given position.
func Teams(ctx context.Context, tx *sqldb.Tx, companyID string, after Key, limit int) ([]Team, error) {
	return sqldb.All(ctx, tx, `
		SELECT `+teamColumns+` FROM team t WHERE t.company_id = $1 AND NOT t.removed
		AND (t.name, t.id) > ($2, $3) ORDER BY t.name, t.id LIMIT $4`,
		[]any{companyID, after.Text, after.ID, limit}, scanTeam)
}

// Queries for a person's memberships in teams.

const accountQuery = `
	SELECT ` + teamColumns + `, c.plan, m.joined, m.how, ` + teamRoleColumns + `
	FROM team_member m
	JOIN team t ON t.id = m.team_id
	JOIN company c ON c.id = t.company_id
	JOIN team_role r ON r.team_id = m.team_id AND r.name = m.role
	WHERE m.person_id = $1 AND NOT t.removed`

func scanAccount(row sqldb.Scanner) (a TeamMembership, err error) {
	err = readTeamRole(row, &a.Role, append(a.Team.scanColumns(), (*string)(&a.Plan), scanTime(&a.Joined), (*string)(&a.How))...)
	return a, err
}

func teamMembership(ctx context.Context, q sqldb.Querier, personID, teamID string) (TeamMembership, error) {
	return scanAccount(q.QueryRow(ctx, accountQuery+` AND m.team_id = $2`+q.Locking("SHARE OF m, t, r"), personID, teamID))
}

// TeamMemberships returns a person's team memberships, ordered by the names of
// the company and the team.
func TeamMemberships(ctx context.Context, tx *sqldb.Tx, personID string) ([]TeamMembership, error) {
	return sqldb.All(ctx, tx, accountQuery+` ORDER BY c.name, t.name, t.id`, []any{personID}, scanAccount)
}

// JoinedSince returns the teams that a person joined by invitation or mail
// domain after the time since, in the order of joining. Teams to which an admin
// added the person are not included.
func JoinedSince(ctx context.Context, tx *sqldb.Tx, personID string, since time.Time) ([]Team, error) {
	return sqldb.All(ctx, tx, `
		SELECT `+teamColumns+` FROM team_member m JOIN team t ON t.id = m.team_id
		WHERE m.person_id = $1 AND NOT t.removed AND m.joined > $2 AND m.how <> $3 ORDER BY m.joined, t.id`,
		[]any{personID, since.UnixMicro(), string(Added)}, scanTeam)
}

// Queries for invitations.

const (
	invitationColumns = `id, company_id, company_role, coalesce(team_id, ''), team_role, email, uses_left, invited_by, created, expires`
	// liveInvitations selects the invitations that are live at time $1.
	liveInvitations = `SELECT ` + invitationColumns + ` FROM invitation WHERE uses_left > 0 AND expires > $1`
	maxForAddress   = 100
)

func scanInvitation(row sqldb.Scanner) (i Invitation, err error) {
	err = row.Scan(&i.ID, &i.CompanyID, &i.CompanyRole, &i.TeamID, &i.TeamRole, &i.Email, &i.UsesLeft, &i.InvitedBy, scanTime(&i.Created), scanTime(&i.Expires))
	return i, err
}

func insertInvitation(ctx context.Context, tx *sqldb.Tx, i Invitation, hash string) error {
	return execSealed(ctx, tx, sealedInvitations, `id = $1`, []any{i.ID}, `
		INSERT INTO invitation (id, hash, company_id, company_role, team_id, team_role, email, email_key, uses_left, invited_by, created, expires)
		VALUES ($1, $2, $3, $4, nullif($5, ''), $6, $7, $8, $9, $10, $11, $12)`,
		i.ID, hash, i.CompanyID, i.CompanyRole, i.TeamID, i.TeamRole, i.Email, emailKey(i.Email), i.UsesLeft, i.InvitedBy, sqldb.At(i.Created), sqldb.At(i.Expires))
}

func invitationByHash(ctx context.Context, tx *sqldb.Tx, hash string) (Invitation, error) {
	return scanOne(tx.QueryRow(ctx, liveInvitations+` AND hash = $2`, sqldb.At(tx.Now), hash), scanInvitation, errNoInvitation)
}

func invitationByID(ctx context.Context, tx *sqldb.Tx, id string) (Invitation, error) {
	return scanOne(tx.QueryRow(ctx, liveInvitations+` AND id = $2`, sqldb.At(tx.Now), id), scanInvitation, errNoInvitation)
}

// Invitations returns at most limit live invitations of a company, newest
// first, starting after the given position.
func Invitations(ctx context.Context, tx *sqldb.Tx, companyID string, after *After, limit int) ([]Invitation, error) {
	query := liveInvitations + ` AND company_id = $2`
	args := []any{sqldb.At(tx.Now), companyID, limit}
	if after != nil {
		query += ` AND (created, id) < ($4, $5)`
		args = append(args, sqldb.At(after.Created), after.ID)
	}
	return sqldb.All(ctx, tx, query+` ORDER BY created DESC, id DESC LIMIT $3`, args, scanInvitation)
}

func invitationsFor(ctx context.Context, tx *sqldb.Tx, key string) ([]Invitation, error) {
	return sqldb.All(ctx, tx, liveInvitations+` AND email_key = $2 AND email_key <> '' ORDER BY created DESC, id DESC LIMIT $3`,
		[]any{sqldb.At(tx.Now), key, maxForAddress}, scanInvitation)
}

// useInvitation decreases the number of uses left of a live invitation by one
// and returns the new number.
func useInvitation(ctx context.Context, tx *sqldb.Tx, id string) (int64, error) {
	var left int64
	err := sealedInvitations.ChangeRows(ctx, tx, `id = $1`, []any{id}, func() (err error) {
		left, err = scanOne(tx.QueryRow(ctx, `
			UPDATE invitation SET uses_left = uses_left - 1 WHERE id = $1 AND uses_left > 0 AND expires > $2
			RETURNING uses_left`, id, sqldb.At(tx.Now)), func(row sqldb.Scanner) (left int64, err error) {
			err = row.Scan(&left)
			return left, err
		}, errNoInvitation)
		return err
	})
	return left, err
}

func deleteInvitation(ctx context.Context, tx *sqldb.Tx, companyID, id string) (bool, error) {
	return execChanged(ctx, tx, `DELETE FROM invitation WHERE company_id = $1 AND id = $2`, companyID, id)
}

// DeleteInvitationsFor deletes the invitations of all companies that were sent
// to the given e-mail address.
func DeleteInvitationsFor(ctx context.Context, tx *sqldb.Tx, email string) error {
	_, err := tx.Exec(ctx, `DELETE FROM invitation WHERE email_key = $1 AND email_key <> ''`, emailKey(email))
	return err
}

// HasMembers reports whether the company has at least one member.
func HasMembers(ctx context.Context, tx *sqldb.Tx, companyID string) (bool, error) {
	return hasRows(ctx, tx, `SELECT 1 FROM company_member WHERE company_id = $1`, companyID)
}

// DeleteExpiredInvitations deletes the invitations that expired before the
// given time, and returns their number.
func DeleteExpiredInvitations(ctx context.Context, tx *sqldb.Tx, before time.Time) (int64, error) {
	return tx.Exec(ctx, `DELETE FROM invitation WHERE expires < $1`, sqldb.At(before))
}

// Queries for mail domains.

const domainQuery = `
	SELECT company_id, domain, proof, verified, coalesce(team_id, ''), team_role, created
	FROM company_domain WHERE company_id = $1`

func scanDomain(row sqldb.Scanner) (d Domain, err error) {
	var verified time.Time
	err = row.Scan(&d.CompanyID, &d.Name, &d.Proof, scanTime(&verified), &d.TeamID, &d.TeamRole, scanTime(&d.Created))
	if !verified.IsZero() {
		d.Verified = &verified
	}
	return d, err
}

// Domains returns a company's mail domains, ordered by name.
func Domains(ctx context.Context, tx *sqldb.Tx, companyID string) ([]Domain, error) {
	return sqldb.All(ctx, tx, domainQuery+` ORDER BY domain`, []any{companyID}, scanDomain)
}

func domainByName(ctx context.Context, tx *sqldb.Tx, companyID, name string) (Domain, error) {
	return scanOne(tx.QueryRow(ctx, domainQuery+` AND domain = $2`, companyID, name), scanDomain, errNoDomain)
}

func insertDomain(ctx context.Context, tx *sqldb.Tx, d Domain) (fresh bool, err error) {
	fresh, err = execChanged(ctx, tx, `
		INSERT INTO company_domain (company_id, domain, proof, team_id, team_role, created)
		VALUES ($1, $2, $3, nullif($4, ''), $5, $6)
		ON CONFLICT (company_id, domain) DO NOTHING`, d.CompanyID, d.Name, d.Proof, d.TeamID, d.TeamRole, sqldb.At(d.Created))
	if err != nil || !fresh {
		return fresh, err
	}
	return fresh, sealedDomains.RenewSeals(ctx, tx, `company_id = $1 AND domain = $2`, d.CompanyID, d.Name)
}

func deleteDomain(ctx context.Context, tx *sqldb.Tx, companyID, name string) error {
	return execQuery(ctx, tx, `DELETE FROM company_domain WHERE company_id = $1 AND domain = $2`, companyID, name)
}

// verifyDomain marks the company's domain as verified. It returns a
// duplicate-key error if another company has already verified the domain.
func verifyDomain(ctx context.Context, tx *sqldb.Tx, companyID, name string) (bool, error) {
	var verified bool
	err := sealedDomains.ChangeRows(ctx, tx, `company_id = $1 AND domain = $2`, []any{companyID, name}, func() (err error) {
		verified, err = execChanged(ctx, tx, `UPDATE company_domain SET verified = $3 WHERE company_id = $1 AND domain = $2`, companyID, name, sqldb.At(tx.Now))
		return err
	})
	return verified, err
}

// lockOwner locks the rows of a domain in all companies and returns the id of
// the company that has verified the domain, or "" if there is none. It locks
// unverified rows too, so that concurrent verifications of an e-mail address and
// of its domain run one after the other, and the later one sees the result of
// the earlier one.
func lockOwner(ctx context.Context, tx *sqldb.Tx, name string) (owner string, err error) {
	err = tx.EachRow(ctx, `SELECT company_id, verified FROM company_domain WHERE domain = $1 ORDER BY company_id`+tx.Dialect.ForUpdate,
		[]any{name}, func(row sqldb.Scanner) error {
			var id string
			var verified sqldb.Time
			err := row.Scan(&id, &verified)
			if !verified.IsZero() {
				owner = id
			}
			return err
		})
	return owner, err
}

// joinAll adds all people with a verified e-mail address in a domain to the
// company and to the domain's team, if it has one, except users whom the
// company's identity provider has deactivated. It returns the number of new
// members of the team, or of the company if there is no team.
func joinAll(ctx context.Context, tx *sqldb.Tx, d Domain) (int, error) {
	people := ` FROM person p WHERE p.email_verified AND p.email_key LIKE '%@' || $1
		AND NOT EXISTS (SELECT 1 FROM scim_user u JOIN company_domain o ON o.company_id = u.company_id AND o.domain = $1 AND o.verified IS NOT NULL
			WHERE u.person_id = p.id AND NOT u.active) `
	// Only the inserted rows are sealed, because a seal certifies that this
	// service wrote the row.
	newcomers, err := sqldb.All(ctx, tx, `
		INSERT INTO company_member (company_id, person_id, role, created)
		SELECT CAST($2 AS TEXT), p.id, CAST($3 AS TEXT), CAST($4 AS BIGINT)`+people+`
		ON CONFLICT (company_id, person_id) DO NOTHING RETURNING person_id`, []any{d.Name, d.CompanyID, RoleMember, sqldb.At(tx.Now)}, scanText)
	if err != nil {
		return 0, err
	}
	for _, id := range newcomers {
		if err := sealedMembers.RenewSeals(ctx, tx, `company_id = $1 AND person_id = $2`, d.CompanyID, id); err != nil {
			return 0, err
		}
	}
	n := int64(len(newcomers))
	// The insertion may have waited for a transaction that deleted a person.
	// Such deleted people are removed again here.
	late, err := tx.Exec(ctx, `
		DELETE FROM company_member WHERE company_id = $1 AND EXISTS (SELECT 1 FROM person p WHERE p.id = person_id AND p.deleted IS NOT NULL)`, d.CompanyID)
	n -= late
	if err != nil || d.TeamID == "" {
		return int(n), err
	}
	newcomers, err = sqldb.All(ctx, tx, `
		INSERT INTO team_member (team_id, person_id, role, how, joined)
		SELECT CAST($2 AS TEXT), p.id, CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS BIGINT)`+people+`
		ON CONFLICT (team_id, person_id) DO NOTHING RETURNING person_id`, []any{d.Name, d.TeamID, d.TeamRole, string(ByDomain), sqldb.At(tx.Now)}, scanText)
	if err != nil {
		return 0, err
	}
	for _, id := range newcomers {
		if err := sealedTeamMembers.RenewSeals(ctx, tx, `team_id = $1 AND person_id = $2`, d.TeamID, id); err != nil {
			return 0, err
		}
	}
	return len(newcomers), nil
}

// Queries for the users and groups of a company's identity provider (SCIM).

const profileColumns = `p.id, p.email, m.person_id IS NOT NULL, u.person_id IS NOT NULL, coalesce(u.external_id, ''), coalesce(u.attributes, ''),
	coalesce(u.created, m.created), coalesce(u.updated, m.created)`

// profileRows joins a subquery w of person ids with the tables that contain the
// people's profiles in the company $1. everyProfile selects the company's
// members and the users of its identity provider.
const (
	profileRows = `
	JOIN person p ON p.id = w.person_id AND p.deleted IS NULL
	LEFT JOIN company_member m ON m.company_id = $1 AND m.person_id = w.person_id
	LEFT JOIN scim_user u ON u.company_id = $1 AND u.person_id = w.person_id`
	everyProfile = ` FROM (SELECT person_id FROM company_member WHERE company_id = $1 UNION SELECT person_id FROM scim_user WHERE company_id = $1) w` + profileRows
)

func scanProfile(row sqldb.Scanner) (p Profile, err error) {
	err = row.Scan(&p.PersonID, &p.Email, &p.Active, &p.Kept, &p.ExternalID, &p.Attributes, scanTime(&p.Created), scanTime(&p.Updated))
	return p, err
}

// Profiles returns at most limit profiles of a company, ordered by mail
// address, after skipping the first skip profiles.
func Profiles(ctx context.Context, tx *sqldb.Tx, companyID string, skip, limit int) ([]Profile, error) {
	return sqldb.All(ctx, tx, `SELECT `+profileColumns+everyProfile+` ORDER BY p.email_key, p.id LIMIT $2 OFFSET $3`,
		[]any{companyID, limit, skip}, scanProfile)
}

func scanCount(row sqldb.Scanner) (n int, err error) {
	err = row.Scan(&n)
	return n, err
}

// CountProfiles returns the number of profiles in a company.
func CountProfiles(ctx context.Context, tx *sqldb.Tx, companyID string) (int, error) {
	return scanCount(tx.QueryRow(ctx, `SELECT count(*)`+everyProfile, companyID))
}

func profileOf(ctx context.Context, tx *sqldb.Tx, companyID, personID string) (Profile, error) {
	return scanOne(tx.QueryRow(ctx, `SELECT `+profileColumns+` FROM (SELECT CAST($2 AS TEXT) AS person_id) w`+profileRows+`
		WHERE m.person_id IS NOT NULL OR u.person_id IS NOT NULL`, companyID, personID), scanProfile, errNoProfile)
}

// ProfilesByExternalID returns the profiles with the given external id, which
// is the id of the user at the company's identity provider.
func ProfilesByExternalID(ctx context.Context, tx *sqldb.Tx, companyID, externalID string) ([]Profile, error) {
	return sqldb.All(ctx, tx, `SELECT `+profileColumns+`
		FROM (SELECT person_id FROM scim_user WHERE company_id = $1 AND external_id = $2 AND external_id <> '') w`+profileRows+`
		ORDER BY p.email_key, p.id`, []any{companyID, externalID}, scanProfile)
}

// StoreProfile stores the attributes that the company's identity provider has
// sent about a person. It does not change whether an existing profile is
// active.
func StoreProfile(ctx context.Context, tx *sqldb.Tx, companyID string, p Profile) error {
	return execQuery(ctx, tx, `
		INSERT INTO scim_user (company_id, person_id, external_id, active, role, attributes, created, updated)
		VALUES ($1, $2, $3, EXISTS (SELECT 1 FROM company_member WHERE company_id = $1 AND person_id = $2), '', $4, $5, $6)
		ON CONFLICT (company_id, person_id) DO UPDATE SET external_id = excluded.external_id, attributes = excluded.attributes, updated = excluded.updated`,
		companyID, p.PersonID, p.ExternalID, p.Attributes, sqldb.At(p.Created), sqldb.At(tx.Now))
}

func deleteProfile(ctx context.Context, tx *sqldb.Tx, companyID, personID string) error {
	return execQuery(ctx, tx, `DELETE FROM scim_user WHERE company_id = $1 AND person_id = $2`, companyID, personID)
}

// DeleteProfiles deletes a person's SCIM attributes and seats in all companies.
func DeleteProfiles(ctx context.Context, tx *sqldb.Tx, personID string) error {
	if err := execQuery(ctx, tx, `DELETE FROM scim_seat WHERE person_id = $1`, personID); err != nil {
		return err
	}
	return execQuery(ctx, tx, `DELETE FROM scim_user WHERE person_id = $1`, personID)
}

// storeMembership stores a member's company role and team roles for a later
// activation, and marks their profile as inactive.
func storeMembership(ctx context.Context, tx *sqldb.Tx, companyID, personID string) error {
	err := execQuery(ctx, tx, `
		UPDATE scim_user SET active = FALSE, updated = $3,
			role = coalesce((SELECT m.role FROM company_member m WHERE m.company_id = $1 AND m.person_id = $2), '')
		WHERE company_id = $1 AND person_id = $2`, companyID, personID, sqldb.At(tx.Now))
	if err != nil {
		return err
	}
	return execQuery(ctx, tx, `
		INSERT INTO scim_seat (team_id, person_id, role)
		SELECT m.team_id, m.person_id, m.role FROM team_member m JOIN team t ON t.id = m.team_id
		WHERE t.company_id = $1 AND m.person_id = $2
		ON CONFLICT (team_id, person_id) DO UPDATE SET role = excluded.role`, companyID, personID)
}

func rememberedRole(ctx context.Context, tx *sqldb.Tx, companyID, personID string) (role string, err error) {
	err = tx.QueryRow(ctx, `
		SELECT coalesce((SELECT r.name FROM scim_user u JOIN company_role r ON r.company_id = u.company_id AND r.name = u.role
			WHERE u.company_id = $1 AND u.person_id = $2), '`+RoleMember+`')`, companyID, personID).Scan(&role)
	return role, err
}

func seatsOf(ctx context.Context, tx *sqldb.Tx, companyID, personID string) ([]seat, error) {
	return sqldb.All(ctx, tx, `
		SELECT s.team_id, coalesce((SELECT r.name FROM team_role r WHERE r.team_id = s.team_id AND r.name = s.role), '`+RoleMember+`')
		FROM scim_seat s JOIN team t ON t.id = s.team_id
		WHERE t.company_id = $1 AND s.person_id = $2 AND NOT t.removed ORDER BY t.name, t.id`, []any{companyID, personID},
		func(row sqldb.Scanner) (s seat, err error) {
			err = row.Scan(&s.teamID, &s.role)
			return s, err
		})
}

func insertSeat(ctx context.Context, tx *sqldb.Tx, teamID, personID, role string) (bool, error) {
	return execChanged(ctx, tx, `INSERT INTO scim_seat (team_id, person_id, role) VALUES ($1, $2, $3) ON CONFLICT (team_id, person_id) DO NOTHING`, teamID, personID, role)
}

// DeleteSeat deletes a deactivated person's stored membership in a team.
func DeleteSeat(ctx context.Context, tx *sqldb.Tx, teamID, personID string) error {
	return execQuery(ctx, tx, `DELETE FROM scim_seat WHERE team_id = $1 AND person_id = $2`, teamID, personID)
}

func dropSeats(ctx context.Context, tx *sqldb.Tx, companyID, personID string) error {
	return execQuery(ctx, tx, `DELETE FROM scim_seat WHERE person_id = $2 AND team_id IN (SELECT id FROM team WHERE company_id = $1)`, companyID, personID)
}

func switchOff(ctx context.Context, tx *sqldb.Tx, companyID, personID string) (bool, error) {
	return execChanged(ctx, tx, `UPDATE scim_user SET active = FALSE WHERE company_id = $1 AND person_id = $2`, companyID, personID)
}

func isOff(ctx context.Context, tx *sqldb.Tx, companyID, personID string) (bool, error) {
	return hasRows(ctx, tx, `SELECT 1 FROM scim_user WHERE company_id = $1 AND person_id = $2 AND NOT active`, companyID, personID)
}

const groupQuery = `
	SELECT ` + teamColumns + `, coalesce(g.external_id, ''), coalesce(g.updated, t.created)
	FROM team t LEFT JOIN scim_group g ON g.team_id = t.id WHERE t.company_id = $1 AND NOT t.removed`

func scanGroup(row sqldb.Scanner) (g Group, err error) {
	err = row.Scan(append(g.Team.scanColumns(), &g.ExternalID, scanTime(&g.Updated))...)
	return g, err
}

// Groups returns at most limit groups of a company, ordered by name, after
// skipping the first skip groups.
func Groups(ctx context.Context, tx *sqldb.Tx, companyID string, skip, limit int) ([]Group, error) {
	return sqldb.All(ctx, tx, groupQuery+` ORDER BY t.name, t.id LIMIT $2 OFFSET $3`, []any{companyID, limit, skip}, scanGroup)
}

// CountGroups returns the number of groups in a company, which is the number of
// its teams.
func CountGroups(ctx context.Context, tx *sqldb.Tx, companyID string) (int, error) {
	return scanCount(tx.QueryRow(ctx, `SELECT count(*) FROM team WHERE company_id = $1 AND NOT removed`, companyID))
}

func groupByID(ctx context.Context, tx *sqldb.Tx, companyID, teamID string) (Group, error) {
	return scanOne(tx.QueryRow(ctx, groupQuery+` AND t.id = $2`, companyID, teamID), scanGroup, errNoGroup)
}

// GroupsByName returns the company's groups with exactly this name.
func GroupsByName(ctx context.Context, tx *sqldb.Tx, companyID, name string) ([]Group, error) {
	return sqldb.All(ctx, tx, groupQuery+` AND t.name = $2 ORDER BY t.id`, []any{companyID, name}, scanGroup)
}

// GroupsByExternalID returns the groups with the given external id, which is
// the id of the group at the company's identity provider.
func GroupsByExternalID(ctx context.Context, tx *sqldb.Tx, companyID, externalID string) ([]Group, error) {
	return sqldb.All(ctx, tx, groupQuery+` AND t.id IN (SELECT team_id FROM scim_group WHERE company_id = $1 AND external_id = $2 AND external_id <> '')
		ORDER BY t.name, t.id`, []any{companyID, externalID}, scanGroup)
}

// StoreGroup stores the external id of a group, and the current time as the
// time of its last change.
func StoreGroup(ctx context.Context, tx *sqldb.Tx, g Group) error {
	return execQuery(ctx, tx, `
		INSERT INTO scim_group (team_id, company_id, external_id, updated) VALUES ($1, $2, $3, $4)
		ON CONFLICT (team_id) DO UPDATE SET external_id = excluded.external_id, updated = excluded.updated`,
		g.ID, g.CompanyID, g.ExternalID, sqldb.At(tx.Now))
}

// groupSeats returns the team memberships and SCIM seats whose column (a team
// id or person id) is one of ids, or all of them if ids is empty. A negative
// limit means no limit.
func groupSeats(ctx context.Context, tx *sqldb.Tx, companyID, column string, ids []string, limit int) ([]TeamSeat, error) {
	args := []any{companyID}
	among := ""
	most := ""
	if len(ids) > 0 {
		among, args = sqldb.In(ids, companyID)
		among = ` AND ` + column + ` IN ` + among
	}
	if limit >= 0 {
		args = append(args, limit)
		most = fmt.Sprintf(` LIMIT $%d`, len(args))
	}
	from := func(table, active string) string {
		return `SELECT t.id, t.name, p.id AS person_id, p.email, p.email_key, ` + active + ` AS active
		FROM team t JOIN ` + table + ` m ON m.team_id = t.id JOIN person p ON p.id = m.person_id AND p.deleted IS NULL
		WHERE t.company_id = $1 AND NOT t.removed` + among
	}
	return sqldb.All(ctx, tx, `
		SELECT id, name, person_id, email, active FROM (`+from("team_member", "TRUE")+` UNION ALL `+from("scim_seat", "FALSE")+`) w
		ORDER BY name, id, email_key, person_id`+most, args,
		func(row sqldb.Scanner) (pl TeamSeat, err error) {
			err = row.Scan(&pl.TeamID, &pl.Team, &pl.PersonID, &pl.Email, &pl.Active)
			return pl, err
		})
}

// Checks are the invariants of this package's tables, as queries for the rows
// that violate them.
var Checks = []sqldb.Check{
	{Name: "a deactivated SCIM user is not a member", Query: `
		SELECT 'scim_user ' || u.company_id || ' ' || u.person_id FROM scim_user u WHERE NOT u.active
			AND EXISTS (SELECT 1 FROM company_member m WHERE m.company_id = u.company_id AND m.person_id = u.person_id)`},
	{Name: "only deactivated SCIM users have reserved seats", Query: `
		SELECT 'scim_seat ' || s.team_id || ' ' || s.person_id FROM scim_seat s JOIN team t ON t.id = s.team_id
		WHERE t.removed OR NOT EXISTS (SELECT 1 FROM scim_user u WHERE u.company_id = t.company_id AND u.person_id = s.person_id AND NOT u.active)`},
	{Name: "the team of a SCIM group belongs to its company", Query: `
		SELECT 'scim_group ' || g.team_id FROM scim_group g JOIN team t ON t.id = g.team_id WHERE t.removed OR t.company_id <> g.company_id`},
	{Name: "every company has the role admin with all permissions", Query: `
		SELECT 'company ' || c.id FROM company c WHERE NOT EXISTS (
			SELECT 1 FROM company_role r WHERE r.company_id = c.id AND r.name = '` + RoleAdmin + `' AND r.permissions = '` + listText(sortUnique(CompanyPermissions)) + `')`},
	{Name: "every company has the role member", Query: `
		SELECT 'company ' || c.id FROM company c
		WHERE NOT EXISTS (SELECT 1 FROM company_role r WHERE r.company_id = c.id AND r.name = '` + RoleMember + `')`},
	{Name: "every team has the role member", Query: `
		SELECT 'team ' || t.id FROM team t
		WHERE NOT EXISTS (SELECT 1 FROM team_role r WHERE r.team_id = t.id AND r.name = '` + RoleMember + `')`},
	{Name: "a spending limit has an amount and a window", Query: `
		SELECT 'team_role ' || team_id || ' ' || name FROM team_role
		WHERE (spend_tokens IS NULL) <> (spend_seconds IS NULL) OR spend_tokens < 0 OR spend_seconds <= 0`},
	{Name: "every member of a team is a member of its company", Query: `
		SELECT 'team_member ' || m.team_id || ' ' || m.person_id FROM team_member m JOIN team t ON t.id = m.team_id
		WHERE NOT EXISTS (SELECT 1 FROM company_member c WHERE c.company_id = t.company_id AND c.person_id = m.person_id)`},
	{Name: "a deleted person is not a member of a company", Query: `
		SELECT 'company_member ' || m.company_id || ' ' || m.person_id FROM company_member m JOIN person p ON p.id = m.person_id WHERE p.deleted IS NOT NULL`},
	{Name: "a removed team has no members", Query: `
		SELECT 'team_member ' || m.team_id || ' ' || m.person_id FROM team_member m JOIN team t ON t.id = m.team_id WHERE t.removed`},
	{Name: "secrets of invitations are stored only as SHA-256", Query: `
		SELECT 'invitation ' || id FROM invitation WHERE length(hash) <> 64`},
	{Name: "an invitation for one e-mail address can be used once", Query: `
		SELECT 'invitation ' || id FROM invitation WHERE (email = '') <> (email_key = '') OR email <> '' AND uses_left > 1`},
	{Name: "the role of an invitation is a role of its company", Query: `
		SELECT 'invitation ' || i.id FROM invitation i
		WHERE NOT EXISTS (SELECT 1 FROM company_role r WHERE r.company_id = i.company_id AND r.name = i.company_role)`},
	{Name: "the team of an invitation belongs to its company", Query: `SELECT 'invitation ' || w.id FROM invitation w WHERE ` + brokenEntry},
	{Name: "the team of a domain belongs to its company", Query: `SELECT 'company_domain ' || w.company_id || ' ' || w.domain FROM company_domain w WHERE ` + brokenEntry},
	{Name: "a verified domain belongs to one company", Query: `
		SELECT 'company_domain ' || domain FROM company_domain WHERE verified IS NOT NULL GROUP BY domain HAVING count(*) > 1`},
}

// brokenEntry is the SQL condition for a row w of the invitation or domain
// table whose team is removed, belongs to another company, or does not have the
// row's role.
const brokenEntry = `(w.team_id IS NULL AND w.team_role <> '' OR w.team_id IS NOT NULL AND NOT EXISTS (
	SELECT 1 FROM team t JOIN team_role r ON r.team_id = t.id AND r.name = w.team_role
	WHERE t.id = w.team_id AND t.company_id = w.company_id AND NOT t.removed))`
