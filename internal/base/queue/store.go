package queue

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"atelier/internal/base/sqldb"
)

// insertJob adds a job, or returns the id of the live job with its unique key.
func insertJob(ctx context.Context, tx *sqldb.Tx, j Job) (id string, err error) {
	id = rand.Text()
	added, err := sqldb.Changed(ctx, tx, `
		INSERT INTO job (id, kind, args, unique_key, state, attempt, run_at, cancel, error, created)
		VALUES ($1, $2, $3, nullif($4, ''), 'waiting', 0, $5, FALSE, '', $5)
		ON CONFLICT (kind, unique_key) WHERE state IN ('waiting', 'running') DO NOTHING`,
		id, j.Kind, string(j.Args), j.Unique, sqldb.At(tx.Now))
	if err != nil || added {
		return id, err
	}
	return sqldb.One[string](ctx, tx, `
		SELECT id FROM job WHERE kind = $1 AND unique_key = $2 AND state IN ('waiting', 'running')`, j.Kind, j.Unique)
}

// claimJobs leases up to n waiting jobs until a time, longest due first.
func claimJobs(ctx context.Context, tx *sqldb.Tx, kind string, n int, until time.Time) ([]Work, error) {
	return sqldb.All(ctx, tx, `
		UPDATE job SET state = 'running', attempt = attempt + 1, lease_until = $1
		WHERE id IN (
			SELECT id FROM job WHERE kind = $2 AND state = 'waiting' AND run_at <= $3
			ORDER BY run_at, rowid LIMIT $4)
		RETURNING id, args, attempt`,
		[]any{sqldb.At(until), kind, sqldb.At(tx.Now), n},
		func(row sqldb.Scanner) (Work, error) {
			w := Work{Kind: kind}
			var args string
			err := row.Scan(&w.ID, &args, &w.Attempt)
			w.Args = []byte(args)
			return w, err
		})
}

// nextRun returns the time at which the first waiting job of a kind is due, or
// zero if no job waits.
func nextRun(ctx context.Context, tx *sqldb.Tx, kind string) (time.Time, error) {
	at, err := sqldb.One[sqldb.Time](ctx, tx, `SELECT min(run_at) FROM job WHERE kind = $1 AND state = 'waiting'`, kind)
	return at.Time, err
}

// renewLease extends a lease. held is false when the attempt is over or another
// worker has the job.
func renewLease(ctx context.Context, tx *sqldb.Tx, w Work, until time.Time) (held bool, err error) {
	return sqldb.Changed(ctx, tx, `UPDATE job SET lease_until = $1 WHERE id = $2 AND attempt = $3 AND state = 'running'`,
		sqldb.At(until), w.ID, w.Attempt)
}

// settleJob stores the outcome of an attempt, unless another worker has the job.
//
// A free attempt is subtracted again and the fence still holds: a worker that
// lost the job with attempt n left n in the row, so every later one has at
// least n+1 while it runs.
func settleJob(ctx context.Context, tx *sqldb.Tx, w Work, o outcome) error {
	if o.state != waiting {
		_, err := tx.Exec(ctx, `
			UPDATE job SET state = $1, error = $2, finished = $3, lease_until = NULL
			WHERE id = $4 AND attempt = $5 AND state = 'running'`,
			o.state, o.errorText(), sqldb.At(tx.Now), w.ID, w.Attempt)
		return err
	}

	back := 0
	if o.free {
		back = 1
	}
	_, err := tx.Exec(ctx, `
		UPDATE job SET state = 'waiting', run_at = $1, attempt = attempt - $2, error = $3, lease_until = NULL
		WHERE id = $4 AND attempt = $5 AND state = 'running'`,
		sqldb.At(tx.Now.Add(o.wait)), back, o.errorText(), w.ID, w.Attempt)
	return err
}

// reclaimJobs takes the jobs of a kind from workers whose lease has ended.
func reclaimJobs(ctx context.Context, tx *sqldb.Tx, kind string, attempts int) (int64, error) {
	return tx.Exec(ctx, `
		UPDATE job SET
			state = CASE WHEN attempt >= $1 THEN 'failed' ELSE 'waiting' END,
			finished = CASE WHEN attempt >= $1 THEN $2 END,
			error = 'the worker was lost', lease_until = NULL
		WHERE kind = $3 AND state = 'running' AND lease_until < $2`,
		attempts, sqldb.At(tx.Now), kind)
}

// ReturnAll makes running jobs wait again, as if their attempts had not begun.
// It is for a copy of an embedded database, whose workers belong to the
// original.
func ReturnAll(ctx context.Context, tx *sqldb.Tx) error {
	_, err := tx.Exec(ctx, `UPDATE job SET state = 'waiting', attempt = attempt - 1, lease_until = NULL WHERE state = 'running'`)
	return err
}

// addPeriodic adds the job of a kind with Every when it is due. The row of
// job_every makes one of many processes add it, and keeps the time over restarts.
func addPeriodic(ctx context.Context, tx *sqldb.Tx, kind string, every time.Duration) error {
	now := sqldb.At(tx.Now)
	next := sqldb.At(tx.Now.Add(every))
	// The first job is due at once. A time much too far in the future comes from
	// a longer Every or a wrong clock; a time slightly too far means that this
	// transaction waited for the writer.
	if _, err := tx.Exec(ctx, `
		INSERT INTO job_every (kind, next) VALUES ($1, $2)
		ON CONFLICT (kind) DO UPDATE SET next = $3 WHERE job_every.next > $4`,
		kind, now, next, sqldb.At(tx.Now.Add(2*every))); err != nil {
		return err
	}
	due, err := sqldb.Changed(ctx, tx, `UPDATE job_every SET next = $1 WHERE kind = $2 AND next <= $3`, next, kind, now)
	if err != nil || !due {
		return err
	}
	_, err = insertJob(ctx, tx, Job{Kind: kind, Unique: everyKey})
	return err
}

// deleteFinished deletes up to limit jobs that finished before a time.
func deleteFinished(ctx context.Context, tx *sqldb.Tx, before time.Time, limit int) (int64, error) {
	return tx.Exec(ctx, `
		DELETE FROM job WHERE id IN (SELECT id FROM job WHERE finished < $1 LIMIT $2)`, sqldb.At(before), limit)
}

// readTable checks that the table of jobs can be read.
func readTable(ctx context.Context, db *sqldb.DB) error {
	query := `SELECT count(*) FROM (SELECT id FROM job LIMIT 1) AS one`
	if db.Pool() != nil {
		query = `SELECT count(*) FROM (SELECT id FROM river_job LIMIT 1) AS one`
	}
	if _, err := sqldb.One[int64](ctx, db, query); err != nil {
		return fmt.Errorf("read queue: %w", err)
	}
	return nil
}

// countedJobs is the largest number that CountWaiting returns.
const countedJobs = 20_000

// CountWaiting counts the jobs of a kind that wait for their first or their next
// attempt, on all nodes together, up to countedJobs. The indexes of both tables
// begin with the columns of its condition: River's queue of a kind has the
// kind's name.
func CountWaiting(ctx context.Context, tx *sqldb.Tx, kind string) (n int64, err error) {
	query := `SELECT count(*) FROM (SELECT 1 AS one FROM job WHERE kind = $1 AND state = 'waiting' LIMIT $2) AS counted`
	if tx.Dialect.Name == "postgres" {
		query = `SELECT count(*) FROM (
			SELECT 1 AS one FROM river_job WHERE state IN ('available', 'retryable', 'scheduled') AND queue = $1 LIMIT $2) AS counted`
	}
	n, err = sqldb.One[int64](ctx, tx, query, kind, int64(countedJobs))
	if err != nil {
		return 0, fmt.Errorf("count waiting jobs: %w", err)
	}
	return n, nil
}

// Checks are the invariants of the queue on one kind of database. Invariants
// about time hold while at least one process runs the queue.
func Checks(d sqldb.Dialect) []sqldb.Check {
	if d.Name != "sqlite" {
		return []sqldb.Check{{
			Name: "no job runs for more than an hour", // no handler has such a timeout
			Query: `SELECT 'job ' || id || ' ' || kind FROM river_job
				WHERE state = 'running' AND attempted_at < now() - interval '1 hour'`,
		}}
	}
	return []sqldb.Check{{
		Name: "a job whose lease has ended is taken over",
		Query: `SELECT 'job ' || id || ' ' || kind FROM job WHERE state = 'running'
			AND lease_until < ` + d.Clock + ` - 60000000`,
	}, {
		Name: "running jobs, and only they, have a lease",
		Query: `SELECT 'job ' || id || ' ' || kind FROM job
			WHERE (state = 'running') <> (lease_until IS NOT NULL)`,
	}, {
		Name: "a running job was started",
		Query: `SELECT 'job ' || id || ' ' || kind FROM job
			WHERE attempt < 0 OR state = 'running' AND attempt < 1`,
	}, {
		Name: "finished jobs, and only they, have a time of finish",
		Query: `SELECT 'job ' || id || ' ' || kind FROM job
			WHERE (state IN ('waiting', 'running')) <> (finished IS NULL)`,
	}}
}
