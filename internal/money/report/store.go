package report

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"atelier/internal/base/sqldb"
)

// zoneName returns the name of a company's time zone. lock is the locking
// clause of the query, such as FOR UPDATE, or "".
func zoneName(ctx context.Context, tx *sqldb.Tx, companyID, lock string) (name string, err error) {
	err = tx.QueryRow(ctx, `SELECT zone FROM report_zone WHERE company_id = $1`+lock, companyID).Scan(&name)
	return name, err
}

// insertZone sets the time zone of a company to UTC if it has no time zone yet.
func insertZone(ctx context.Context, tx *sqldb.Tx, companyID string) error {
	_, err := tx.Exec(ctx, `INSERT INTO report_zone (company_id, zone) VALUES ($1, 'UTC') ON CONFLICT (company_id) DO NOTHING`, companyID)
	return err
}

func setZone(ctx context.Context, tx *sqldb.Tx, companyID, name string) error {
	_, err := tx.Exec(ctx, `UPDATE report_zone SET zone = $2 WHERE company_id = $1`, companyID, name)
	return err
}

// keys and counts are columns of report_sum: the properties that identify a
// group of runs, and the totals of the group. flowKeys are those of report_flow,
// which has the same counts.
const (
	keys     = `team_id, person_id, tool_id, plugin, credential, credential_id`
	flowKeys = `tool_id, team_id, person_id`
	counts   = `runs, succeeded, failed, cancelled, results, tokens_charged, allowance_used, took_ms`
)

// addCounts adds a run to one row of report_sum in each grain (level of
// detail). The statement locks the rows in the order of its values. Rows that
// all runs of a company share come last, so that other transactions wait only
// briefly.
func addCounts(ctx context.Context, tx *sqldb.Tx, e EndedRun, day int64) error {
	const sums = `1, CAST($10 AS BIGINT), CAST($11 AS BIGINT), CAST($12 AS BIGINT), CAST($13 AS BIGINT), CAST($14 AS BIGINT), CAST($15 AS BIGINT), CAST($16 AS BIGINT))`
	_, err := tx.Exec(ctx, `
		INSERT INTO report_sum (company_id, grain, slot, `+keys+`, `+counts+`) VALUES
			($1, 'all', $2, $4, $5, $6, $7, $8, $9, `+sums+`,
			($1, 'team', $2, $4, '', '', '', '', '', `+sums+`,
			($1, 'person', $2, '', $5, '', '', '', '', `+sums+`,
			($1, 'tool', $2, '', '', $6, '', '', '', `+sums+`,
			($1, 'plugin', $2, '', '', '', $7, '', '', `+sums+`,
			($1, 'credential', $2, '', '', '', '', $8, $9, `+sums+`,
			($1, 'day', $2, '', '', '', '', '', '', `+sums+`,
			($1, 'quarter', $3, '', '', '', '', '', '', `+sums+`
		ON CONFLICT (company_id, grain, slot, `+keys+`) DO UPDATE SET `+addExcluded("report_sum"),
		e.CompanyID, day, floorDiv(e.Finished.UnixMicro(), quarter), e.TeamID, e.PersonID, e.ToolID, e.Plugin, e.Credential, e.CredentialID,
		e.ended("succeeded"), e.ended("failed"), e.ended("cancelled"), e.Results, e.TokensCharged, e.AllowanceUsed, e.took(e.Started))
	return err
}

// addFlow adds the run of a flow to its row of report_flow.
func addFlow(ctx context.Context, tx *sqldb.Tx, e EndedRun, day int64) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO report_flow (company_id, slot, `+flowKeys+`, `+counts+`) VALUES ($1, $2, $3, $4, $5, 1, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (company_id, slot, `+flowKeys+`) DO UPDATE SET `+addExcluded("report_flow"),
		e.CompanyID, day, e.ToolID, e.TeamID, e.PersonID,
		e.ended("succeeded"), e.ended("failed"), e.ended("cancelled"), e.Flow.Results, e.Flow.TokensCharged, e.Flow.AllowanceUsed, e.took(e.Flow.Started))
	return err
}

// addExcluded returns the assignments of an upsert that adds the columns counts
// of the new row to those of the existing row.
func addExcluded(table string) string {
	var sets []string
	for column := range strings.SplitSeq(counts, `, `) {
		sets = append(sets, column+` = `+table+`.`+column+` + excluded.`+column)
	}
	return strings.Join(sets, `, `)
}

// ended returns 1 if the run ended with the status, and 0 otherwise.
func (e EndedRun) ended(status string) int64 {
	if e.Status == status {
		return 1
	}
	return 0
}

// took returns the time from the start to the end of the run, in milliseconds.
// The clocks of the nodes that started and ended a flow may differ.
func (e EndedRun) took(started time.Time) int64 {
	if started.IsZero() {
		return 0
	}
	return max(0, e.Finished.Sub(started).Milliseconds())
}

// runCounts are SQL expressions for the columns counts of a single run, with
// the same values that addCounts adds.
const runCounts = `1 AS runs, CASE r.status WHEN 'succeeded' THEN 1 ELSE 0 END AS succeeded, CASE r.status WHEN 'failed' THEN 1 ELSE 0 END AS failed,
	CASE r.status WHEN 'cancelled' THEN 1 ELSE 0 END AS cancelled, r.results,
	r.tokens_charged, r.allowance_used, (r.finished - coalesce(r.started, r.finished)) / 1000 AS took_ms`

// flowCounts are SQL expressions for the columns counts of a single flow, with
// the same values that addFlow adds.
const flowCounts = `1 AS runs, CASE r.status WHEN 'succeeded' THEN 1 ELSE 0 END AS succeeded, CASE r.status WHEN 'failed' THEN 1 ELSE 0 END AS failed,
	CASE r.status WHEN 'cancelled' THEN 1 ELSE 0 END AS cancelled, f.results,
	f.tokens_charged, f.allowance_used, CASE WHEN f.started < r.finished THEN (r.finished - f.started) / 1000 ELSE 0 END AS took_ms`

// flowRuns is SQL for the runs of flows that clients started.
const flowRuns = `run r JOIN flow_run f ON f.run_id = r.id WHERE r.engine = 'flow' AND r.parent_id IS NULL`

const summed = `sum(runs), sum(succeeded), sum(failed), sum(cancelled), sum(results), sum(tokens_charged), sum(allowance_used), sum(took_ms)`

// recountQuarters recomputes the totals of a company in the grain "quarter".
func recountQuarters(ctx context.Context, tx *sqldb.Tx, companyID string) error {
	if _, err := tx.Exec(ctx, `DELETE FROM report_sum WHERE company_id = $1 AND grain = 'quarter'`, companyID); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO report_sum (company_id, grain, slot, `+keys+`, `+counts+`)
		SELECT company_id, 'quarter', slot, '', '', '', '', '', '', `+summed+` FROM (
			SELECT r.company_id, r.finished / `+formatNumber(quarter)+` AS slot, `+runCounts+` FROM run r WHERE r.company_id = $1 AND r.finished IS NOT NULL) AS ended
		GROUP BY company_id, slot`, companyID)
	return err
}

// recountDays recomputes the totals of flows of a company, and those of runs in
// all daily grains (levels of detail). Of the latter, only the grain "all" is computed from the runs; the coarser grains
// are computed from the grain "all".
func recountDays(ctx context.Context, tx *sqldb.Tx, companyID string, loc *time.Location) error {
	if _, err := tx.Exec(ctx, `DELETE FROM report_flow WHERE company_id = $1`, companyID); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM report_sum WHERE company_id = $1 AND grain <> 'quarter'`, companyID); err != nil {
		return err
	}
	var first, last *int64
	err := tx.QueryRow(ctx, `SELECT min(finished), max(finished) FROM run WHERE company_id = $1 AND finished IS NOT NULL`, companyID).Scan(&first, &last)
	if err != nil || first == nil || last == nil {
		return err
	}
	days := clockStretches(*first, *last, loc)
	if err := recountFlows(ctx, tx, companyID, days); err != nil {
		return err
	}
	var a sqldb.Args
	company := a.Add(companyID)
	if _, err := tx.Exec(ctx, `
		INSERT INTO report_sum (company_id, grain, slot, `+keys+`, `+counts+`)
		SELECT company_id, 'all', slot, `+keys+`, `+summed+` FROM (
			SELECT r.company_id, `+daySlot(&a, days)+` AS slot, `+keys+`, `+runCounts+` FROM run r
			WHERE r.company_id = `+company+` AND r.finished IS NOT NULL) AS ended
		GROUP BY company_id, slot, `+keys, a...); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO report_sum (company_id, grain, slot, `+keys+`, `+counts+`)
		SELECT company_id, grain, slot, `+keys+`, `+summed+` FROM (`+coarser+` WHERE s.company_id = $1 AND s.grain = 'all') AS coarse
		GROUP BY company_id, grain, slot, `+keys, companyID)
	return err
}

// recountFlows computes report_flow from the runs of flows.
func recountFlows(ctx context.Context, tx *sqldb.Tx, companyID string, days []stretch) error {
	var a sqldb.Args
	company := a.Add(companyID)
	_, err := tx.Exec(ctx, `
		INSERT INTO report_flow (company_id, slot, `+flowKeys+`, `+counts+`)
		SELECT company_id, slot, `+flowKeys+`, `+summed+` FROM (
			SELECT r.company_id, `+daySlot(&a, days)+` AS slot, `+flowKeys+`, `+flowCounts+` FROM `+flowRuns+`
				AND r.company_id = `+company+` AND r.finished IS NOT NULL) AS ended
		GROUP BY company_id, slot, `+flowKeys, a...)
	return err
}

// coarser is SQL that selects, for every row of the grain "all", the
// corresponding rows of all coarser daily grains.
const coarser = `
	SELECT s.company_id, c.grain, s.slot, CASE c.grain WHEN 'team' THEN s.team_id ELSE '' END AS team_id,
		CASE c.grain WHEN 'person' THEN s.person_id ELSE '' END AS person_id, CASE c.grain WHEN 'tool' THEN s.tool_id ELSE '' END AS tool_id,
		CASE c.grain WHEN 'plugin' THEN s.plugin ELSE '' END AS plugin, CASE c.grain WHEN 'credential' THEN s.credential ELSE '' END AS credential,
		CASE c.grain WHEN 'credential' THEN s.credential_id ELSE '' END AS credential_id, ` + counts + `
	FROM report_sum s CROSS JOIN (SELECT 'team' AS grain UNION ALL SELECT 'person' UNION ALL SELECT 'tool' UNION ALL SELECT 'plugin'
		UNION ALL SELECT 'credential' UNION ALL SELECT 'day') AS c`

// daySlot returns an SQL expression that is equivalent to dayOf: the day of a
// run in a time zone whose UTC offset changes.
func daySlot(a *sqldb.Args, all []stretch) string {
	var b strings.Builder
	b.WriteString(`CASE`)
	for _, s := range all {
		// One day is added before the division and subtracted after it. The
		// dividend is then never negative: SQL rounds negative quotients
		// towards zero instead of down.
		slot := `(r.finished + ` + a.Add(s.offset+day) + `) / ` + formatNumber(day) + ` - 1`
		until := a.Add(s.until)
		first := a.Add(s.first)
		b.WriteString(` WHEN r.finished < ` + until + ` AND ` + slot + ` < ` + first + ` THEN CAST(` + first + ` AS BIGINT) WHEN r.finished < ` + until + ` THEN ` + slot)
	}
	b.WriteString(` END`)
	return b.String()
}

func formatNumber(n int64) string { return strconv.FormatInt(n, 10) }

func personBy(ctx context.Context, tx *sqldb.Tx, key string) (id string, err error) {
	err = tx.QueryRow(ctx, `SELECT id FROM person WHERE email_key = $1 AND deleted IS NULL`, key).Scan(&id)
	return id, err
}

// endedSince reports whether any run of a company ended at or after a moment,
// given in microseconds since 1970. It reads the newest one from the index: for
// EXISTS, PostgreSQL would look for a match in the whole table if it expects
// many.
func endedSince(ctx context.Context, tx *sqldb.Tx, companyID string, moment int64) (any bool, err error) {
	err = tx.QueryRow(ctx, `SELECT coalesce(max(finished) >= $2, FALSE) FROM run WHERE company_id = $1 AND finished IS NOT NULL`, companyID, moment).Scan(&any)
	return any, err
}

// sumCharged returns the number of tokens that a team was charged from the day
// first up to, but not including, the day end. The query lists the days one by
// one: the day comes before the team in the primary key, so a range of days
// would read the rows of all teams.
func sumCharged(ctx context.Context, tx *sqldb.Tx, companyID, teamID string, first, end int64) (tokens int64, err error) {
	var a sqldb.Args
	company := a.Add(companyID)
	team := a.Add(teamID)
	var days []string
	for d := first; d < end; d++ {
		days = append(days, a.Add(d))
	}
	err = tx.QueryRow(ctx, `
		SELECT CAST(coalesce(sum(tokens_charged), 0) AS BIGINT) FROM report_sum
		WHERE company_id = `+company+` AND grain = 'team' AND slot IN (`+strings.Join(days, `, `)+`) AND team_id = `+team, a...).Scan(&tokens)
	return tokens, err
}

// whereClause returns the filter as SQL conditions, with prefix in front of
// each column name.
func (f filter) whereClause(a *sqldb.Args, prefix string) string {
	var b strings.Builder
	for _, one := range [...]struct{ column, id string }{{"team_id", f.teamID}, {"tool_id", f.toolID}, {"person_id", f.personID}} {
		if one.id != "" {
			b.WriteString(` AND ` + prefix + one.column + ` = ` + a.Add(one.id))
		}
	}
	return b.String()
}

// rowsQuery returns a query for the totals and runs that the plan needs. Its
// result columns are day, keys or flowKeys, and counts.
func (p plan) rowsQuery(a *sqldb.Args) string {
	company := a.Add(p.companyID)
	var parts []string
	for _, one := range p.pieces {
		within := func(column string) string {
			return column + ` >= ` + a.Add(one.from) + ` AND ` + column + ` < ` + a.Add(one.until)
		}
		switch {
		case one.of == ofDays && p.flows:
			parts = append(parts, `SELECT slot AS day, `+flowKeys+`, `+counts+` FROM report_flow s
				WHERE company_id = `+company+` AND `+within(`slot`)+p.whereClause(a, `s.`))
		case one.of == ofDays:
			parts = append(parts, `SELECT slot AS day, `+keys+`, `+counts+` FROM report_sum s
				WHERE company_id = `+company+` AND grain = `+a.Add(p.grain)+` AND `+within(`slot`)+p.whereClause(a, `s.`))
		case one.of == ofQuarters: // used only for reports by day
			parts = append(parts, `SELECT CAST(`+a.Add(one.day)+` AS BIGINT) AS day, `+keys+`, `+counts+` FROM report_sum
				WHERE company_id = `+company+` AND grain = 'quarter' AND `+within(`slot`))
		case p.flows:
			parts = append(parts, `SELECT CAST(`+a.Add(one.day)+` AS BIGINT) AS day, `+flowKeys+`, `+flowCounts+` FROM `+flowRuns+`
				AND r.company_id = `+company+` AND `+within(`r.finished`)+p.whereClause(a, `r.`))
		default:
			parts = append(parts, `SELECT CAST(`+a.Add(one.day)+` AS BIGINT) AS day, `+keys+`, `+runCounts+` FROM run r
				WHERE r.company_id = `+company+` AND `+within(`r.finished`)+p.whereClause(a, `r.`))
		}
	}
	return strings.Join(parts, ` UNION ALL `)
}

// sums are SQL expressions for the totals, as 64-bit integers in both
// PostgreSQL and SQLite. The aliases differ from the column names, because
// SQLite could resolve a name in ORDER BY to either one.
const sums = `CAST(coalesce(sum(runs), 0) AS BIGINT) AS n1, CAST(coalesce(sum(succeeded), 0) AS BIGINT) AS n2, CAST(coalesce(sum(failed), 0) AS BIGINT) AS n3,
	CAST(coalesce(sum(cancelled), 0) AS BIGINT) AS n4, CAST(coalesce(sum(results), 0) AS BIGINT) AS n5, CAST(coalesce(sum(tokens_charged), 0) AS BIGINT) AS n6,
	CAST(coalesce(sum(allowance_used), 0) AS BIGINT) AS n7, CAST(coalesce(sum(took_ms), 0) AS BIGINT) AS n8`

// scanTargets returns pointers to the fields of c for a row that selects sums.
// ms receives the duration in milliseconds.
func (c *Count) scanTargets(ms *int64) []any {
	return []any{&c.Runs, &c.Succeeded, &c.Failed, &c.Cancelled, &c.Results, &c.TokensCharged, &c.AllowanceUsed, ms}
}

func sumTotal(ctx context.Context, tx *sqldb.Tx, p plan) (c Count, err error) {
	var a sqldb.Args
	var ms int64
	err = tx.QueryRow(ctx, `SELECT `+sums+` FROM (`+p.rowsQuery(&a)+`) AS pieces`, a...).Scan(c.scanTargets(&ms)...)
	c.Took = time.Duration(ms) * time.Millisecond
	return c, err
}

// columns maps each dimension to its columns of report_sum or, for Flow, of
// report_flow.
var columns = map[Dimension][]string{
	Day:        {"day"},
	Team:       {"team_id"},
	Person:     {"person_id"},
	Tool:       {"tool_id"},
	Plugin:     {"plugin"},
	Credential: {"credential", "credential_id"},
	Flow:       {"tool_id"},
}

// names maps a dimension to the name columns that are shown in addition to its
// id, and to the SQL joins for these columns.
var names = map[Dimension]struct{ columns, from string }{
	Team:   {`coalesce(t.name, '')`, ` LEFT JOIN team t ON t.id = g.team_id`},
	Person: {address, ` LEFT JOIN person p ON p.id = g.person_id`},
	Credential: {label, ` LEFT JOIN access_token a ON g.credential <> 'id_token' AND a.id = g.credential_id
		LEFT JOIN device d ON g.credential = 'id_token' AND d.id = g.credential_id`},
}

const (
	address = `CASE WHEN p.deleted IS NULL THEN coalesce(p.email, '') ELSE '' END`
	label   = `coalesce(a.name, d.plugin_kind, '')`
)

func listUsage(ctx context.Context, tx *sqldb.Tx, p plan, by []Dimension, after []string, limit int) ([]Row, error) {
	var a sqldb.Args
	pieces := p.rowsQuery(&a)
	var grouped, shown []string
	joined := ``
	for _, d := range by {
		grouped = append(grouped, columns[d]...)
		for _, c := range columns[d] {
			shown = append(shown, `g.`+c)
		}
	}
	list := strings.Join(grouped, `, `)
	order := strings.Join(shown, `, `)
	for _, d := range by {
		if n, ok := names[d]; ok {
			shown = append(shown, n.columns)
			joined += n.from
		}
	}
	where := ``
	if len(after) > 0 {
		if len(after) != len(grouped) {
			return nil, fmt.Errorf("report usage: the cursor has %d keys, but the report is grouped by %d columns", len(after), len(grouped))
		}
		var values []string
		for i, c := range grouped {
			if c != "day" {
				values = append(values, a.Add(after[i]))
				continue
			}
			d, err := dayNamed(after[i])
			if err != nil {
				return nil, fmt.Errorf("report usage: %w", err)
			}
			values = append(values, `CAST(`+a.Add(d)+` AS BIGINT)`)
		}
		where = ` WHERE (` + list + `) > (` + strings.Join(values, `, `) + `)`
	}
	return sqldb.All(ctx, tx, `
		SELECT g.n1, g.n2, g.n3, g.n4, g.n5, g.n6, g.n7, g.n8, `+strings.Join(shown, `, `)+` FROM (
			SELECT `+list+`, `+sums+` FROM (`+pieces+`) AS pieces`+where+`
			GROUP BY `+list+` ORDER BY `+list+` LIMIT `+a.Add(int64(limit))+`) AS g`+joined+`
		ORDER BY `+order, a, func(row sqldb.Scanner) (r Row, err error) {
		var ms, day int64
		fields := r.scanTargets(&ms)
		for _, d := range by {
			switch d {
			case Day:
				fields = append(fields, &day)
			case Team:
				fields = append(fields, &r.TeamID)
			case Person:
				fields = append(fields, &r.PersonID)
			case Tool:
				fields = append(fields, &r.ToolID)
			case Plugin:
				fields = append(fields, &r.Plugin)
			case Credential:
				fields = append(fields, &r.Credential, &r.CredentialID)
			case Flow:
				fields = append(fields, &r.FlowID)
			}
		}
		for _, d := range by {
			switch d {
			case Team:
				fields = append(fields, &r.TeamName)
			case Person:
				fields = append(fields, &r.Email)
			case Credential:
				fields = append(fields, &r.CredentialName)
			case Day, Tool, Plugin, Flow: // these dimensions have no name in addition to their key
			}
		}
		err = row.Scan(fields...)
		r.Took = time.Duration(ms) * time.Millisecond
		if slices.Contains(by, Day) {
			r.Day = dayName(day)
		}
		return r, err
	})
}

func listRuns(ctx context.Context, tx *sqldb.Tx, q Query, f filter, after *Cursor, limit int) ([]Run, error) {
	var a sqldb.Args
	where := `r.company_id = ` + a.Add(q.CompanyID) + ` AND r.finished >= ` + a.Add(toMicroseconds(q.From))
	if !q.Until.IsZero() {
		where += ` AND r.finished < ` + a.Add(toMicroseconds(q.Until))
	}
	if after != nil {
		where += ` AND (r.finished, r.id) < (` + a.Add(sqldb.At(after.Finished)) + `, ` + a.Add(after.ID) + `)`
	}
	where += f.whereClause(&a, `r.`)
	return sqldb.All(ctx, tx, `
		SELECT r.id, r.status, r.error_code, r.team_id, coalesce(t.name, ''), r.person_id, `+address+`, r.tool_id, r.plugin, r.credential, r.credential_id, `+label+`,
			r.num_results, r.results, r.tokens_charged, r.allowance_used, r.created, r.started, r.finished
		FROM run r LEFT JOIN team t ON t.id = r.team_id LEFT JOIN person p ON p.id = r.person_id
			LEFT JOIN access_token a ON r.credential <> 'id_token' AND a.id = r.credential_id LEFT JOIN device d ON r.credential = 'id_token' AND d.id = r.credential_id
		WHERE `+where+` ORDER BY r.finished DESC, r.id DESC LIMIT `+a.Add(int64(limit)), a, func(row sqldb.Scanner) (r Run, err error) {
		var created, started, finished sqldb.Time
		err = row.Scan(&r.ID, &r.Status, &r.ErrorCode, &r.TeamID, &r.TeamName, &r.PersonID, &r.Email, &r.ToolID, &r.Plugin, &r.Credential, &r.CredentialID, &r.CredentialName,
			&r.Asked, &r.Results, &r.TokensCharged, &r.AllowanceUsed, &created, &started, &finished)
		r.Created = created.Time
		r.Started = started.Time
		r.Finished = finished.Time
		return r, err
	})
}

// differ is an SQL condition that is true if two totals are different. One of
// the two must be negated (see less), so that equal totals sum to zero.
const differ = `sum(runs) <> 0 OR sum(succeeded) <> 0 OR sum(failed) <> 0 OR sum(cancelled) <> 0 OR sum(results) <> 0 OR sum(tokens_charged) <> 0
	OR sum(allowance_used) <> 0 OR sum(took_ms) <> 0`

// less lists the columns counts with a minus sign, so that the checks can
// subtract totals.
const less = `-runs, -succeeded, -failed, -cancelled, -results, -tokens_charged, -allowance_used, -took_ms`

// impossible is an SQL condition that is true if a row of totals cannot be
// right.
const impossible = `runs <= 0 OR runs <> succeeded + failed + cancelled OR succeeded < 0 OR failed < 0 OR cancelled < 0 OR results < 0 OR tokens_charged < 0
	OR allowance_used < 0 OR took_ms < 0`

// Storage returns the storage that each team of a company uses, largest first,
// or only that of one team if teamID is set. Teams that use no storage are not
// included.
func Storage(ctx context.Context, tx *sqldb.Tx, companyID, teamID string) ([]TeamStorage, error) {
	return sqldb.All(ctx, tx, `
		SELECT t.id, t.name, s.used_bytes, s.limit_bytes FROM team t JOIN storage_account s ON s.account_id = t.id
		WHERE t.company_id = $1 AND ($2 = '' OR t.id = $2) AND s.used_bytes > 0 ORDER BY s.used_bytes DESC, t.id LIMIT $3`,
		[]any{companyID, teamID, int64(maxStorageTeams)}, func(row sqldb.Scanner) (s TeamStorage, err error) {
			err = row.Scan(&s.TeamID, &s.Name, &s.Used, &s.Limit)
			return s, err
		})
}

// Checks are SQL queries that find violated invariants of reports. The first
// three compare the totals of every grain (level of detail) with the runs. They
// do not check whether a run is counted on the right day, because SQL cannot
// compute the day.
var Checks = []sqldb.Check{
	{Name: "the finest totals match the runs", Query: `
		SELECT 'company ' || company_id || ' team ' || team_id || ' person ' || person_id || ' tool ' || tool_id || ' plugin ' || plugin || ' ' || credential || ' ' || credential_id FROM (
			SELECT company_id, ` + keys + `, ` + counts + ` FROM report_sum WHERE grain = 'all'
			UNION ALL
			SELECT company_id, ` + keys + `, ` + less + ` FROM (SELECT company_id, ` + keys + `, ` + runCounts + ` FROM run r WHERE company_id IS NOT NULL AND finished IS NOT NULL) AS ended) AS compared
		GROUP BY company_id, ` + keys + ` HAVING ` + differ},
	{Name: "the totals of quarter hours match the runs", Query: `
		SELECT 'company ' || company_id || ' quarter ' || CAST(slot AS TEXT) FROM (
			SELECT company_id, slot, ` + counts + ` FROM report_sum WHERE grain = 'quarter'
			UNION ALL
			SELECT company_id, slot, ` + less + ` FROM (
				SELECT company_id, finished / ` + formatNumber(quarter) + ` AS slot, ` + runCounts + ` FROM run r WHERE company_id IS NOT NULL AND finished IS NOT NULL) AS ended) AS compared
		GROUP BY company_id, slot HAVING ` + differ},
	{Name: "the coarser totals match the finest", Query: `
		SELECT 'company ' || company_id || ' ' || grain || ' ' || team_id || person_id || tool_id || plugin || credential || credential_id || ' day ' || CAST(slot AS TEXT) FROM (
			SELECT company_id, grain, slot, ` + keys + `, ` + counts + ` FROM report_sum WHERE grain NOT IN ('all', 'quarter')
			UNION ALL
			SELECT company_id, grain, slot, ` + keys + `, ` + less + ` FROM (` + coarser + ` WHERE s.grain = 'all') AS coarse) AS compared
		GROUP BY company_id, grain, slot, ` + keys + ` HAVING ` + differ},
	{Name: "a total has only the keys of its grain", Query: `
		SELECT 'company ' || company_id || ' ' || grain || ' slot ' || CAST(slot AS TEXT) FROM report_sum WHERE grain <> 'all' AND (
			grain <> 'team' AND team_id <> '' OR grain <> 'person' AND person_id <> '' OR grain <> 'tool' AND tool_id <> '' OR grain <> 'plugin' AND plugin <> ''
			OR grain <> 'credential' AND (credential <> '' OR credential_id <> ''))`},
	{Name: "a total counts runs, each with one final state", Query: `
		SELECT 'company ' || company_id || ' ' || grain || ' slot ' || CAST(slot AS TEXT) FROM report_sum
		WHERE ` + impossible},
	{Name: "the totals of flows match the flows", Query: `
		SELECT 'company ' || company_id || ' flow ' || tool_id || ' team ' || team_id || ' person ' || person_id FROM (
			SELECT company_id, ` + flowKeys + `, ` + counts + ` FROM report_flow
			UNION ALL
			SELECT company_id, ` + flowKeys + `, ` + less + ` FROM (SELECT company_id, ` + flowKeys + `, ` + flowCounts + ` FROM ` + flowRuns + `
				AND r.company_id IS NOT NULL AND r.finished IS NOT NULL) AS ended) AS compared
		GROUP BY company_id, ` + flowKeys + ` HAVING ` + differ},
	{Name: "a total counts flows, each with one final state", Query: `
		SELECT 'company ' || company_id || ' flow ' || tool_id || ' slot ' || CAST(slot AS TEXT) FROM report_flow
		WHERE ` + impossible},
	{Name: "a run has the company of its team", Query: `
		SELECT 'run ' || r.id FROM run r LEFT JOIN team t ON t.id = r.team_id WHERE coalesce(r.company_id, '') <> coalesce(t.company_id, '')`},
}
