package queue

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"atelier/internal/base/sqldb"
)

// insertJob adds a job and returns its id. If a waiting or running job has the
// same Unique key, it adds nothing and returns the id of that job.
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

// claimJobs leases up to n due jobs of a kind until the given time, and returns
// them. It prefers jobs that have been due for longest.
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

// nextRun returns the time when the next waiting job of a kind is due. It
// returns the zero time if no job waits.
func nextRun(ctx context.Context, tx *sqldb.Tx, kind string) (time.Time, error) {
	at, err := sqldb.One[sqldb.Time](ctx, tx, `SELECT min(run_at) FROM job WHERE kind = $1 AND state = 'waiting'`, kind)
	return at.Time, err
}

// renewLease extends the lease of an attempt. held is false if the attempt has
// ended or another worker has taken over the job.
func renewLease(ctx context.Context, tx *sqldb.Tx, w Work, until time.Time) (held bool, err error) {
	return sqldb.Changed(ctx, tx, `UPDATE job SET lease_until = $1 WHERE id = $2 AND attempt = $3 AND state = 'running'`,
		sqldb.At(until), w.ID, w.Attempt)
}

// settleJob stores the outcome of an attempt, unless another worker has taken
// over the job.
//
// If the attempt does not count, the attempt number is decreased again. The
// number still works as the fencing token: if a worker has lost the job at
// attempt n, the row still has n, and every later attempt has at least n+1
// while it runs.
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

// reclaimJobs returns the running jobs of a kind whose lease has expired to the
// waiting state, or marks them as failed if they have had the given number of
// attempts. It returns the number of these jobs.
func reclaimJobs(ctx context.Context, tx *sqldb.Tx, kind string, attempts int) (int64, error) {
	return tx.Exec(ctx, `
		UPDATE job SET
			state = CASE WHEN attempt >= $1 THEN 'failed' ELSE 'waiting' END,
			finished = CASE WHEN attempt >= $1 THEN $2 END,
			error = 'the worker was lost', lease_until = NULL
		WHERE kind = $3 AND state = 'running' AND lease_until < $2`,
		attempts, sqldb.At(tx.Now), kind)
}

// ReturnAll returns all running jobs to the waiting state, as if their attempts
// had not begun. It is for a copy of a SQLite database, because the workers
// that run these jobs use the original database.
func ReturnAll(ctx context.Context, tx *sqldb.Tx) error {
	_, err := tx.Exec(ctx, `UPDATE job SET state = 'waiting', attempt = attempt - 1, lease_until = NULL WHERE state = 'running'`)
	return err
}

// ListUnfinished returns the jobs that wait or run, oldest first, so that they
// can be added to the queue of another database. It omits periodic jobs, which
// a queue adds itself.
func ListUnfinished(ctx context.Context, tx *sqldb.Tx) (jobs []Job, err error) {
	if tx.Dialect.Name == "sqlite" {
		jobs, err = sqldb.All(ctx, tx, `
			SELECT kind, args, coalesce(unique_key, '') FROM job WHERE state IN ('waiting', 'running') ORDER BY created, rowid`, nil,
			func(row sqldb.Scanner) (j Job, err error) {
				var args string
				err = row.Scan(&j.Kind, &args, &j.Unique)
				j.Args = []byte(args)
				return j, err
			})
	} else {
		jobs, err = sqldb.All(ctx, tx, `
			SELECT kind, CAST(args AS TEXT) FROM river_job WHERE finalized_at IS NULL ORDER BY id`, nil, scanRiverJob)
	}
	if err != nil {
		return nil, fmt.Errorf("list unfinished jobs: %w", err)
	}
	return slices.DeleteFunc(jobs, func(j Job) bool { return j.Unique == everyKey }), nil
}

func scanRiverJob(row sqldb.Scanner) (Job, error) {
	var kind, text string
	if err := row.Scan(&kind, &text); err != nil {
		return Job{}, err
	}
	var stored payload
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return Job{}, fmt.Errorf("decode the arguments of a %s job: %w", kind, err)
	}
	return Job{Kind: kind, Args: []byte(stored.Args), Unique: stored.Key}, nil
}

// addPeriodic adds the next job of a periodic kind if it is due. The table
// job_every stores the time at which the next job is due. Thus only one process
// adds the job, and the schedule survives restarts.
func addPeriodic(ctx context.Context, tx *sqldb.Tx, kind string, every time.Duration) error {
	now := sqldb.At(tx.Now)
	next := sqldb.At(tx.Now.Add(every))
	// The first job is due immediately. A stored time that is much too late is
	// corrected, because it comes from a longer Every or a wrong clock. A time
	// that is only slightly too late is kept, because this transaction may have
	// waited for another writer.
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

// deleteFinished deletes up to limit jobs that finished before the given time,
// and returns the number of deleted jobs.
func deleteFinished(ctx context.Context, tx *sqldb.Tx, before time.Time, limit int) (int64, error) {
	return tx.Exec(ctx, `
		DELETE FROM job WHERE id IN (SELECT id FROM job WHERE finished < $1 LIMIT $2)`, sqldb.At(before), limit)
}

// readTable returns an error if the table of jobs cannot be read.
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

// countedJobs is the highest number that CountWaiting returns.
const countedJobs = 20_000

// CountWaiting returns the number of jobs of a kind that wait for their first
// or next attempt, on all nodes together, up to countedJobs. Both queries can
// use an index. On PostgreSQL the name of the River queue is the kind.
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

// Checks returns the invariants of the queue for one kind of database. The
// invariants about time are true only while at least one process runs the
// queue.
func Checks(d sqldb.Dialect) []sqldb.Check {
	if d.Name != "sqlite" {
		return []sqldb.Check{{
			Name: "no job runs for more than an hour", // no handler has a timeout of an hour
			Query: `SELECT 'job ' || id || ' ' || kind FROM river_job
				WHERE state = 'running' AND attempted_at < now() - interval '1 hour'`,
		}}
	}
	return []sqldb.Check{{
		Name: "no running job has an expired lease",
		Query: `SELECT 'job ' || id || ' ' || kind FROM job WHERE state = 'running'
			AND lease_until < ` + d.Clock + ` - 60000000`,
	}, {
		Name: "only running jobs have a lease, and each has one",
		Query: `SELECT 'job ' || id || ' ' || kind FROM job
			WHERE (state = 'running') <> (lease_until IS NOT NULL)`,
	}, {
		Name: "a running job has at least one attempt",
		Query: `SELECT 'job ' || id || ' ' || kind FROM job
			WHERE attempt < 0 OR state = 'running' AND attempt < 1`,
	}, {
		Name: "only finished jobs have an end time, and each has one",
		Query: `SELECT 'job ' || id || ' ' || kind FROM job
			WHERE (state IN ('waiting', 'running')) <> (finished IS NULL)`,
	}}
}
