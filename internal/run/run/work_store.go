package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"atelier/internal/base/sqldb"
)

// Work is a run of any account without the data that people entered or
// received: what an operator may see of it.
type Work struct {
	ID             string
	ToolID         string
	Engine         string
	PersonID       string
	AccountID      string
	TeamID         string // empty if the personal account pays
	CompanyID      string // empty if there is no team
	Worker         string // name of the worker that executes the run, or ""
	State          State
	Attempt        int64
	Cancel         bool // cancellation was requested
	Progress       *int64
	ServerPosition *int64
	TokensHeld     int64
	Created        time.Time
	Started        time.Time // zero if never claimed
}

const workColumns = `id, tool_id, engine, person_id, account_id, coalesce(team_id, ''), coalesce(company_id, ''),
	CASE WHEN stage = 'running' THEN worker ELSE '' END, coalesce(stage, status), attempt, cancel, progress, server_position,
	CASE WHEN stage IS NULL THEN 0 ELSE tokens_held END, created, started`

func scanWork(row sqldb.Scanner) (w Work, err error) {
	var created, started sqldb.Time
	err = row.Scan(&w.ID, &w.ToolID, &w.Engine, &w.PersonID, &w.AccountID, &w.TeamID, &w.CompanyID,
		&w.Worker, (*string)(&w.State), &w.Attempt, &w.Cancel, &w.Progress, &w.ServerPosition, &w.TokensHeld, &created, &started)
	w.Created = created.Time
	w.Started = started.Time
	return w, err
}

const (
	listWorkQuery  = `SELECT ` + workColumns + ` FROM run WHERE stage = $1 AND (created, id) > ($2, $3) ORDER BY created, id LIMIT $4`
	sampleQuery    = `SELECT created FROM run WHERE engine = $1 AND stage = 'queued' LIMIT $2`
	maxSample      = 1_000 // queued runs of an engine that are read for the median of their waiting times
	maxCounted     = 1_000 // runs of a person or company that are counted
	countRunsQuery = `(SELECT count(*) FROM (SELECT 1 AS one FROM run r WHERE r.person_id = w.column1 LIMIT $1) AS counted)`
	countCompanies = `(SELECT count(*) FROM (SELECT 1 AS one FROM run r WHERE r.company_id = w.column1 AND r.finished IS NOT NULL LIMIT $1) AS counted)`
	newestFinished = `(SELECT max(r.finished) FROM run r WHERE r.company_id = w.column1 AND r.finished IS NOT NULL)`
)

// ListWork returns at most limit runs of all accounts in one of the states
// Queued and Running, oldest first, starting after the cursor.
func ListWork(ctx context.Context, tx *sqldb.Tx, state State, after Cursor, limit int) ([]Work, error) {
	return sqldb.All(ctx, tx, listWorkQuery, []any{string(state), sqldb.At(after.Created), after.ID, int64(limit)}, scanWork)
}

// GetWork returns a run of any account, even if it has ended.
func GetWork(ctx context.Context, tx *sqldb.Tx, id string) (Work, error) {
	all, err := sqldb.All(ctx, tx, `SELECT `+workColumns+` FROM run WHERE id = $1`, []any{id}, scanWork)
	if err != nil {
		return Work{}, err
	}
	if len(all) == 0 {
		return Work{}, ErrNotFound
	}
	return all[0], nil
}

// SampleWaiting returns the creation times of at most a thousand queued runs of
// an engine, in no particular order.
func SampleWaiting(ctx context.Context, tx *sqldb.Tx, engine string) ([]time.Time, error) {
	return sqldb.All(ctx, tx, sampleQuery, []any{engine, int64(maxSample)}, func(row sqldb.Scanner) (time.Time, error) {
		var created sqldb.Time
		err := row.Scan(&created)
		return created.Time, err
	})
}

// CountByPerson returns the number of runs that people have started, by person
// id. It counts at most a thousand runs of a person. There must be at least one
// id.
func CountByPerson(ctx context.Context, tx *sqldb.Tx, personIDs []string) (map[string]int64, error) {
	args := sqldb.Args{int64(maxCounted)}
	return sqldb.Map[string, int64](ctx, tx, `SELECT w.column1, `+countRunsQuery+` FROM `+valueRows(&args, personIDs), args)
}

// CompanyActivity is the number of runs of a company that have ended, at most a
// thousand, and the end of the newest one.
type CompanyActivity struct {
	Runs    int64
	LastRun time.Time // zero if no run has ended
}

// ActivityByCompany returns the activity of companies by their ids. There must
// be at least one id.
func ActivityByCompany(ctx context.Context, tx *sqldb.Tx, companyIDs []string) (map[string]CompanyActivity, error) {
	args := sqldb.Args{int64(maxCounted)}
	all := map[string]CompanyActivity{}
	err := tx.EachRow(ctx, `SELECT w.column1, `+countCompanies+`, `+newestFinished+` FROM `+valueRows(&args, companyIDs), args, func(row sqldb.Scanner) error {
		var id string
		var activity CompanyActivity
		var last sqldb.Time
		if err := row.Scan(&id, &activity.Runs, &last); err != nil {
			return fmt.Errorf("count runs of companies: %w", err)
		}
		activity.LastRun = last.Time
		all[id] = activity
		return nil
	})
	return all, err
}

// valueRows returns a subquery named w with one row for each id. Both databases
// name its column column1.
func valueRows(args *sqldb.Args, ids []string) string {
	rows := make([]string, len(ids))
	for i, id := range ids {
		rows[i] = `(CAST(` + args.Add(id) + ` AS TEXT))`
	}
	return `(VALUES ` + strings.Join(rows, `, `) + `) AS w`
}
