package run

import (
	"context"
	"errors"
	"time"

	"atelier/internal/base/sqldb"
)

// ServedLately is how long after a claim the turn of a person follows from the
// time of the claim. A person who was not served lately comes before all who
// were, and in the order of arrival among the others; so a stream of new people
// cannot make anyone wait forever.
const ServedLately = 10 * time.Minute

// addWaiting adds n to the number of queued runs of a person for an engine.
// headStart is the longest head start of these runs. If no run of the person was
// queued, their turn begins.
//
// A transaction must call addWaiting only once per row. If PostgreSQL updates a
// row a second time, it checks the foreign key of the row again and waits for
// the lock of the person, which must be acquired before the lock of run_turn.
func addWaiting(ctx context.Context, tx *sqldb.Tx, engine, personID string, n int64, headStart time.Duration) error {
	return tx.DeferExec(ctx, `
		INSERT INTO run_turn (engine, person_id, served, waiting, since, head_start) VALUES ($1, $2, 0, $3, $4, $5)
		ON CONFLICT (engine, person_id) DO UPDATE SET
			waiting = run_turn.waiting + excluded.waiting,
			since = CASE WHEN run_turn.waiting > 0 THEN run_turn.since WHEN run_turn.served > excluded.since THEN run_turn.served ELSE excluded.since END,
			head_start = CASE WHEN run_turn.waiting > 0 AND run_turn.head_start > excluded.head_start THEN run_turn.head_start ELSE excluded.head_start END`,
		[]any{engine, personID, n, sqldb.At(tx.Now.Add(-ServedLately)), headStart.Microseconds()}, nil)
}

// The queries with which a claim finds its run, without their locks. The runs of
// one person are sorted; limits.active_runs bounds their number.
const (
	nextPersonQuery = `
		SELECT person_id FROM run_turn WHERE engine = $1 AND waiting > 0 ORDER BY since - head_start, person_id LIMIT 1`
	nextRunQuery = `
		SELECT id FROM run WHERE engine = $1 AND person_id = $2 AND stage = 'queued' ORDER BY created - head_start, id LIMIT 1`
	// nextHeadStart is the head start of the next queued run of a scheduling
	// row, or 0 if there is none.
	nextHeadStart = `coalesce((
			SELECT r.head_start FROM run r WHERE r.engine = run_turn.engine AND r.person_id = run_turn.person_id AND r.stage = 'queued'
			ORDER BY r.created - r.head_start, r.id LIMIT 1), 0)`
)

// removeWaiting decrements the number of queued runs of a person, for a run
// that ends without having been claimed.
func removeWaiting(ctx context.Context, tx *sqldb.Tx, engine, personID string) error {
	_, err := tx.Exec(ctx, `UPDATE run_turn SET waiting = waiting - 1, head_start = `+nextHeadStart+` WHERE engine = $1 AND person_id = $2`, engine, personID)
	return err
}

// nextPerson returns the person whose run is claimed next. Among the people
// with queued runs for the engine, it is the person whose last claim is the
// oldest, after subtracting the head start of their next run.
func nextPerson(ctx context.Context, tx *sqldb.Tx, engine string) (personID string, err error) {
	err = tx.QueryRow(ctx, nextPersonQuery+tx.Dialect.SkipLocked, engine).Scan(&personID)
	return personID, err
}

// The queries of a claim whose engine has a limit.
const (
	hasWaitingQuery   = `SELECT EXISTS (SELECT 1 FROM run_turn WHERE engine = $1 AND waiting > 0)`
	lockEngineQuery   = `SELECT engine FROM engine_declared WHERE engine = $1`
	countRunningQuery = `SELECT count(*) FROM (SELECT 1 AS one FROM run WHERE engine = $1 AND stage = 'running' LIMIT $2) AS counted`
)

func hasWaiting(ctx context.Context, tx *sqldb.Tx, engine string) (found bool, err error) {
	err = tx.QueryRow(ctx, hasWaitingQuery, engine).Scan(&found)
	return found, err
}

// lockEngine locks the row of an engine until the transaction ends, and creates
// the row if no node has declared the engine yet. A claim locks this row before
// all others, and waits for it, so that a worker does not miss a free place.
func lockEngine(ctx context.Context, tx *sqldb.Tx, engine string) error {
	var name string
	err := tx.QueryRow(ctx, lockEngineQuery+tx.Dialect.ForUpdate, engine).Scan(&name)
	if !errors.Is(err, sqldb.ErrNoRows) {
		return err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO engine_declared (engine, pool, seen) VALUES ($1, '', 0) ON CONFLICT (engine) DO NOTHING`, engine); err != nil {
		return err
	}
	return tx.QueryRow(ctx, lockEngineQuery+tx.Dialect.ForUpdate, engine).Scan(&name)
}

// countRunning returns the number of running runs of an engine, but at most
// limit.
func countRunning(ctx context.Context, tx *sqldb.Tx, engine string, limit int) (n int, err error) {
	err = tx.QueryRow(ctx, countRunningQuery, engine, int64(limit)).Scan(&n)
	return n, err
}

// nextQueued returns the run of a person that is claimed next: the oldest, after
// subtracting the head starts.
func nextQueued(ctx context.Context, tx *sqldb.Tx, engine, personID string) (id string, err error) {
	err = tx.QueryRow(ctx, nextRunQuery+tx.Dialect.SkipLocked, engine, personID).Scan(&id)
	return id, err
}

// claimRun assigns a queued run to a worker. The start time is not earlier than
// the creation time, even if the clocks of nodes differ or the run was created
// after this transaction began.
func claimRun(ctx context.Context, tx *sqldb.Tx, id, worker string, until time.Time) (Run, error) {
	r, err := scanRun(tx.QueryRow(ctx, `
		UPDATE run SET stage = 'running', attempt = attempt + 1, worker = $2, lease_until = $3, progress = NULL, preview = '', server_position = NULL,
			started = coalesce(started, CASE WHEN created > $4 THEN created ELSE $4 END), revision = revision + 1
		WHERE id = $1 AND stage = 'queued' RETURNING `+columns, id, worker, sqldb.At(until), sqldb.At(tx.Now)))
	if err != nil {
		return r, err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO run_attempt (run_id, attempt, worker, started) VALUES ($1, $2, $3, $4)`, r.ID, r.Attempt, worker, sqldb.At(tx.Now)); err != nil {
		return r, err
	}
	_, err = tx.Exec(ctx, `
		UPDATE run_turn SET waiting = waiting - 1, served = $3, since = $3, head_start = `+nextHeadStart+` WHERE engine = $1 AND person_id = $2`,
		r.Engine, r.PersonID, sqldb.At(tx.Now))
	return r, err
}

func scanHeld(row sqldb.Scanner) (h Lease, err error) {
	err = row.Scan(&h.ID, &h.Attempt, &h.Cancel)
	return h, err
}

func renewLeases(ctx context.Context, tx *sqldb.Tx, worker string, ids []string, until time.Time) ([]Lease, error) {
	placeholders, args := sqldb.In(ids, worker, sqldb.At(until))
	return sqldb.All(ctx, tx, `
		UPDATE run SET lease_until = $2 WHERE worker = $1 AND stage = 'running' AND id IN `+placeholders+` RETURNING id, attempt, cancel`, args, scanHeld)
}

// ListLeases returns the leases of a worker on running runs.
func ListLeases(ctx context.Context, tx *sqldb.Tx, worker string) ([]Lease, error) {
	return sqldb.All(ctx, tx, `SELECT id, attempt, cancel FROM run WHERE worker = $1 AND stage = 'running'`, []any{worker}, scanHeld)
}

// Progress is the visible progress of a running run.
type Progress struct {
	Thousandths    *int64 // nil if unknown
	Preview        string // blob key of the newest preview, or ""
	ServerPosition *int64 // position in the queue of the model server, 0 if unknown; nil if the run is not in that queue
	// Waited is the time that the run has spent in the queue of its model
	// server since the last call in which Waited was set. It is added to the
	// start time of the run, so that the duration of the run does not include
	// it.
	Waited time.Duration
}

// SetProgress stores the progress of a run. ok is false if the lease is no
// longer valid.
func SetProgress(ctx context.Context, tx *sqldb.Tx, h Lease, p Progress) (ok bool, err error) {
	n, err := tx.Exec(ctx, `
		UPDATE run SET progress = $3, preview = $4, server_position = $5, started = started + $6, revision = revision + 1
		WHERE id = $1 AND attempt = $2 AND stage = 'running'`,
		h.ID, h.Attempt, p.Thousandths, p.Preview, p.ServerPosition, p.Waited.Microseconds())
	return n == 1, err
}

// SetEngineState stores the state with which the engine can resume a run. ok is
// false if the lease is no longer valid.
func SetEngineState(ctx context.Context, tx *sqldb.Tx, h Lease, state string) (ok bool, err error) {
	n, err := tx.Exec(ctx, `UPDATE run SET note = $3 WHERE id = $1 AND attempt = $2 AND stage = 'running'`, h.ID, h.Attempt, state)
	return n == 1, err
}

// RemoteWork identifies work on a model server for a run that has ended without
// success. The server may still be processing this work.
type RemoteWork struct{ RunID, EngineState string }

// ListRemoteWork returns the remote work of at most limit ended runs of an
// engine.
func ListRemoteWork(ctx context.Context, tx *sqldb.Tx, engine string, limit int) ([]RemoteWork, error) {
	return sqldb.All(ctx, tx, `SELECT id, note FROM run WHERE engine = $1 AND note <> '' AND status <> 'pending' LIMIT $2`,
		[]any{engine, int64(limit)}, func(row sqldb.Scanner) (w RemoteWork, err error) {
			err = row.Scan(&w.RunID, &w.EngineState)
			return w, err
		})
}

// ClearRemoteWork records that the remote work of a run has been stopped.
func ClearRemoteWork(ctx context.Context, tx *sqldb.Tx, w RemoteWork) error {
	_, err := tx.Exec(ctx, `UPDATE run SET note = '' WHERE id = $1 AND note = $2 AND status <> 'pending'`, w.RunID, w.EngineState)
	return err
}

// LockExpired returns at most limit running runs whose lease has expired, and
// locks their rows.
func LockExpired(ctx context.Context, tx *sqldb.Tx, limit int) ([]Run, error) {
	return sqldb.All(ctx, tx, `
		SELECT `+columns+` FROM run WHERE stage = 'running' AND lease_until < $1 ORDER BY lease_until LIMIT $2`+tx.Dialect.SkipLocked,
		[]any{sqldb.At(tx.Now), int64(limit)}, scanRun)
}

// ListClaimed returns at most limit running runs, even if their lease has
// expired.
func ListClaimed(ctx context.Context, tx *sqldb.Tx, limit int) ([]Run, error) {
	return sqldb.All(ctx, tx, `SELECT `+columns+` FROM run WHERE stage = 'running' LIMIT $1`, []any{int64(limit)}, scanRun)
}

// ListWaitingSince returns at most limit queued runs that were created before
// the given time and that no worker has worked on since that time.
func ListWaitingSince(ctx context.Context, tx *sqldb.Tx, before time.Time, limit int) ([]Run, error) {
	return sqldb.All(ctx, tx, `
		SELECT `+columns+` FROM run WHERE stage = 'queued' AND created < $1
			AND NOT EXISTS (SELECT 1 FROM run_attempt a WHERE a.run_id = run.id AND a.ended >= $1) LIMIT $2`,
		[]any{sqldb.At(before), int64(limit)}, scanRun)
}

// ListQueuedTools returns the hashes of the tool versions that have queued runs
// for an engine.
func ListQueuedTools(ctx context.Context, tx *sqldb.Tx, engine string) ([]string, error) {
	return sqldb.All(ctx, tx, `SELECT DISTINCT tool_hash FROM run WHERE engine = $1 AND stage = 'queued'`, []any{engine}, func(row sqldb.Scanner) (hash string, err error) {
		err = row.Scan(&hash)
		return hash, err
	})
}

// ListOverdue returns at most limit queued runs of a tool version that have
// waited too long. These are runs that first started no later than the
// parameter started, and runs that have never started and were created no later
// than the parameter created.
func ListOverdue(ctx context.Context, tx *sqldb.Tx, engine, toolHash string, started, created time.Time, limit int) ([]Run, error) {
	return sqldb.All(ctx, tx, `
		SELECT `+columns+` FROM run WHERE engine = $1 AND tool_hash = $2 AND stage = 'queued'
			AND (started <= $3 OR started IS NULL AND created <= $4) LIMIT $5`,
		[]any{engine, toolHash, sqldb.At(started), sqldb.At(created), int64(limit)}, scanRun)
}

// ListQueued returns at most limit queued runs of an engine.
func ListQueued(ctx context.Context, tx *sqldb.Tx, engine string, limit int) ([]Run, error) {
	return sqldb.All(ctx, tx, `SELECT `+columns+` FROM run WHERE engine = $1 AND stage = 'queued' LIMIT $2`, []any{engine, int64(limit)}, scanRun)
}

// requeueRun puts a run back into the queue. ok is false if the lease is no
// longer valid or cancellation was requested; in the second case the worker
// ends the run. If the run was in the queue of its model server, its start time
// is reset, because the time in that queue must not count as work.
func requeueRun(ctx context.Context, tx *sqldb.Tx, h Lease) (r Run, ok bool, err error) {
	r, err = scanRun(tx.QueryRow(ctx, `
		UPDATE run SET stage = 'queued', worker = '', lease_until = NULL, progress = NULL, preview = '', server_position = NULL,
			started = CASE WHEN server_position IS NULL OR progress IS NOT NULL THEN started END, revision = revision + 1
		WHERE id = $1 AND attempt = $2 AND stage = 'running' AND NOT cancel RETURNING `+columns, h.ID, h.Attempt))
	if errors.Is(err, sqldb.ErrNoRows) {
		return r, false, nil
	}
	return r, err == nil, err
}

// CountLosses returns the number of workers that died while they worked on a
// run. Workers that returned the run, or were found alive later, do not count.
func CountLosses(ctx context.Context, tx *sqldb.Tx, id string) (n int64, err error) {
	err = tx.QueryRow(ctx, `SELECT count(*) FROM run_attempt WHERE run_id = $1 AND outcome = $2`, id, Lost).Scan(&n)
	return n, err
}

func endAttempt(ctx context.Context, tx *sqldb.Tx, runID string, attempt int64, outcome string) error {
	_, err := tx.Exec(ctx, `UPDATE run_attempt SET ended = $3, outcome = $4 WHERE run_id = $1 AND attempt = $2 AND ended IS NULL`, runID, attempt, sqldb.At(tx.Now), outcome)
	return err
}

// changeOutcome changes the recorded outcome of an attempt from one value to
// another. It does nothing if the recorded outcome is a different one.
func changeOutcome(ctx context.Context, tx *sqldb.Tx, h Lease, from, to string) error {
	_, err := tx.Exec(ctx, `UPDATE run_attempt SET outcome = $4 WHERE run_id = $1 AND attempt = $2 AND outcome = $3`, h.ID, h.Attempt, from, to)
	return err
}
