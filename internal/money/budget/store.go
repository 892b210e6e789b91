package budget

import (
	"context"
	"time"

	"atelier/internal/base/sqldb"
)

// budgetRow is a row of the budget table, with the name and the company of the
// team.
type budgetRow struct {
	Draft
	month               string
	alerted             int64
	created, updated    time.Time
	companyID, teamName string
}

// readBudget returns the budget of a team, unless the team has been removed.
// lock is the locking clause of the query, such as FOR UPDATE, or "".
func readBudget(ctx context.Context, tx *sqldb.Tx, teamID, lock string) (k budgetRow, err error) {
	var created, updated sqldb.Time
	err = tx.QueryRow(ctx, `
		SELECT b.tokens, b.hard, b.webhook_url, b.month, b.told, b.created, b.updated, t.company_id, t.name
		FROM (SELECT team_id, tokens, hard, webhook_url, month, told, created, updated FROM budget WHERE team_id = $1`+lock+`) AS b
		JOIN team t ON t.id = b.team_id WHERE NOT t.removed`, teamID).
		Scan(&k.Tokens, &k.Hard, &k.WebhookURL, &k.month, &k.alerted, &created, &updated, &k.companyID, &k.teamName)
	k.created = created.Time
	k.updated = updated.Time
	return k, err
}

// putBudget inserts the budget of a team, or replaces all columns of an
// existing budget except its creation time.
func putBudget(ctx context.Context, tx *sqldb.Tx, teamID string, k budgetRow) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO budget (team_id, tokens, hard, webhook_url, month, told, created, updated) VALUES ($1, $2, $3, $4, $5, $6, $7, $7)
		ON CONFLICT (team_id) DO UPDATE SET tokens = excluded.tokens, hard = excluded.hard, webhook_url = excluded.webhook_url,
			month = excluded.month, told = excluded.told, updated = excluded.updated`,
		teamID, k.Tokens, k.Hard, k.WebhookURL, k.month, k.alerted, sqldb.At(tx.Now))
	if err != nil {
		return err
	}
	return Sealed.RenewSeals(ctx, tx, `team_id = $1`, teamID)
}

// setAlerted records the highest threshold for which an alert was sent in a
// month.
func setAlerted(ctx context.Context, tx *sqldb.Tx, teamID, month string, told int64) error {
	_, err := tx.Exec(ctx, `UPDATE budget SET month = $2, told = $3 WHERE team_id = $1`, teamID, month, told)
	return err
}

func deleteBudget(ctx context.Context, tx *sqldb.Tx, teamID string) (bool, error) {
	n, err := tx.Exec(ctx, `DELETE FROM budget WHERE team_id = $1`, teamID)
	return n == 1, err
}

// AnyHard reports whether any team of the company has a hard budget, which is
// one that rejects further runs.
func AnyHard(ctx context.Context, tx *sqldb.Tx, companyID string) (bool, error) {
	return sqldb.Exists(ctx, tx, `SELECT 1 FROM budget b JOIN team t ON t.id = b.team_id WHERE t.company_id = $1 AND NOT t.removed AND b.hard`, companyID)
}

// listAddresses returns at most limit verified e-mail addresses, without
// duplicates, of people who have one of the roles in the company or one of the
// teamRoles in the team.
func listAddresses(ctx context.Context, tx *sqldb.Tx, companyID string, roles []string, teamID string, teamRoles []string, limit int) ([]string, error) {
	args := sqldb.Args{companyID, teamID, limit}
	in := func(names []string) string {
		return sqldb.AddList(&args, append([]string{""}, names...)) // no role has an empty name
	}
	return sqldb.All(ctx, tx, `
		SELECT email FROM person WHERE email_verified AND NOT suspended AND deleted IS NULL AND id IN (
			SELECT person_id FROM company_member WHERE company_id = $1 AND role IN `+in(roles)+`
			UNION
			SELECT person_id FROM team_member WHERE team_id = $2 AND role IN `+in(teamRoles)+`)
		ORDER BY email_key LIMIT $3`, args, func(row sqldb.Scanner) (email string, err error) {
		err = row.Scan(&email)
		return email, err
	})
}

// Checks are SQL queries that find violated invariants of budgets.
var Checks = []sqldb.Check{{
	Name: "a budget has a valid month",
	Query: `SELECT 'budget ' || team_id FROM budget
		WHERE length(month) <> 7 OR month NOT BETWEEN '2000-01' AND '9999-12' OR substr(month, 5, 1) <> '-' OR substr(month, 6) NOT BETWEEN '01' AND '12'`,
}, {
	Name:  "the tokens of a budget are within the limits",
	Query: `SELECT 'budget ' || team_id FROM budget WHERE tokens NOT BETWEEN 1 AND 1000000000000000`,
}, {
	Name:  "the webhook of a budget uses https",
	Query: `SELECT 'budget ' || team_id FROM budget WHERE webhook_url <> '' AND substr(webhook_url, 1, 8) <> 'https://'`,
}, {
	Name: "alerts were sent only for thresholds that the team has reached",
	Query: `SELECT 'budget ' || b.team_id FROM budget b
		WHERE b.told * b.tokens > 100 * (SELECT coalesce(sum(r.tokens_charged), 0) FROM run r WHERE r.account_id = b.team_id)`,
}, {
	Name:  "a budget was not changed before it was created",
	Query: `SELECT 'budget ' || team_id FROM budget WHERE updated < created`,
}}
