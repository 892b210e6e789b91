package run

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"atelier/internal/base/sqldb"
)

// columns are a run's, in the order in which scan reads them.
const columns = `id, library_id, person_id, account_id, team_id, company_id, credential, credential_id, plugin, tool_id, tool_hash, engine, inputs, prompt, seed,
	num_results, metadata, webhook_url, estimated_s, poll_s, unit_tokens, tokens_held, allowance_held, allowance_month, tokens_charged, allowance_used,
	status, stage, attempt, cancel, progress, preview, revision, error_code, error_message, created, started, finished, note`

func scan(row sqldb.Scanner) (r Run, err error) {
	var team, company, stage *string
	var estimated, charged, used *int64
	var poll int64
	var status string
	var created, started, finished sqldb.Time
	err = row.Scan(&r.ID, &r.LibraryID, &r.PersonID, &r.AccountID, &team, &company, &r.Credential, &r.CredentialID, &r.Plugin, &r.ToolID, &r.ToolHash, &r.Engine, &r.Inputs, &r.Prompt, &r.Seed,
		&r.NumResults, &r.Metadata, &r.WebhookURL, &estimated, &poll, &r.UnitTokens, &r.TokensHeld, &r.AllowanceHeld, &r.AllowanceMonth, &charged, &used,
		&status, &stage, &r.Attempt, &r.Cancel, &r.Progress, &r.Preview, &r.Revision, &r.ErrorCode, &r.ErrorText, &created, &started, &finished, &r.Note)
	if err != nil {
		return Run{}, err
	}
	value := func(n *int64) int64 {
		if n == nil {
			return 0
		}
		return *n
	}
	if team != nil && company != nil {
		r.TeamID = *team
		r.CompanyID = *company
	}
	r.State = State(status)
	if stage != nil {
		r.State = State(*stage)
	}
	r.Estimated = time.Duration(value(estimated)) * time.Second
	r.PollAfter = time.Duration(poll) * time.Second
	r.TokensCharged = value(charged)
	r.AllowanceUsed = value(used)
	r.Created = created.Time
	r.Started = started.Time
	r.Finished = finished.Time
	return r, nil
}

func insert(ctx context.Context, tx *sqldb.Tx, r Run) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO run (id, library_id, person_id, account_id, team_id, company_id, credential, credential_id, plugin, tool_id, tool_hash, engine, inputs, prompt, seed,
			num_results, metadata, webhook_url, estimated_s, poll_s, unit_tokens, tokens_held, allowance_held, allowance_month,
			status, stage, attempt, worker, cancel, preview, revision, error_code, error_message, created, seal)
		VALUES ($1, $2, $3, $4, nullif($5, ''), (SELECT company_id FROM team WHERE id = $5), $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, nullif($18, 0), $19, $20, $21, $22, $23,
			'pending', 'queued', 0, '', FALSE, '', 1, '', '', $24, $25)`,
		r.ID, r.LibraryID, r.PersonID, r.AccountID, r.TeamID, r.Credential, r.CredentialID, r.Plugin, r.ToolID, r.ToolHash, r.Engine, r.Inputs, r.Prompt, r.Seed,
		r.NumResults, r.Metadata, r.WebhookURL, int64(r.Estimated/time.Second), int64(r.PollAfter/time.Second), r.UnitTokens, r.TokensHeld, r.AllowanceHeld, r.AllowanceMonth,
		sqldb.At(tx.Now), r.seal(tx))
	return err
}

func insertInput(ctx context.Context, tx *sqldb.Tx, runID string, in Input) error {
	_, err := tx.Exec(ctx, `INSERT INTO run_input (run_id, field, place, asset_id) VALUES ($1, $2, $3, $4)`, runID, in.Field, int64(in.Place), in.AssetID)
	return err
}

// waits counts n more queued runs of a person. Who had none waiting keeps
// their place: served is when they last had their turn.
//
// A transaction calls it once per row: PostgreSQL checks the foreign key of a
// row that it updates a second time, and then waits for the person, whose lock
// comes before the turn.
func waits(ctx context.Context, tx *sqldb.Tx, engine, personID string, n int64) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO run_turn (engine, person_id, served, waiting) VALUES ($1, $2, 0, $3)
		ON CONFLICT (engine, person_id) DO UPDATE SET waiting = run_turn.waiting + excluded.waiting`, engine, personID, n)
	return err
}

// leaves counts one less, which nobody served.
func leaves(ctx context.Context, tx *sqldb.Tx, engine, personID string) error {
	_, err := tx.Exec(ctx, `UPDATE run_turn SET waiting = waiting - 1 WHERE engine = $1 AND person_id = $2`, engine, personID)
	return err
}

func active(ctx context.Context, tx *sqldb.Tx, personID string) (n int64, err error) {
	err = tx.QueryRow(ctx, `SELECT count(*) FROM run WHERE person_id = $1 AND status = 'pending'`, personID).Scan(&n)
	return n, err
}

func spent(ctx context.Context, tx *sqldb.Tx, accountID, personID string, since time.Time) (tokens int64, err error) {
	err = tx.QueryRow(ctx, `
		SELECT CAST(coalesce(sum(coalesce(tokens_charged, tokens_held)), 0) AS BIGINT) FROM run
		WHERE person_id = $1 AND created > $2 AND account_id = $3`, personID, sqldb.At(since), accountID).Scan(&tokens)
	return tokens, err
}

const (
	anyByID = `SELECT ` + columns + ` FROM run WHERE id = $1`
	byID    = anyByID + ` AND account_id = $2`
)

func found(r Run, err error) (Run, error) {
	if errors.Is(err, sqldb.ErrNoRows) {
		return Run{}, ErrNotFound
	}
	return r, err
}

func list(ctx context.Context, tx *sqldb.Tx, accountID string, f Filter, after *Place, limit int) ([]Run, error) {
	query := `SELECT ` + columns + ` FROM run WHERE account_id = $1`
	args := []any{accountID}
	add := func(condition string, values ...any) {
		for _, v := range values {
			args = append(args, v)
			condition = strings.Replace(condition, "?", "$"+strconv.Itoa(len(args)), 1)
		}
		query += ` AND ` + condition
	}
	if f.Status != "" {
		add(`status = ?`, f.Status)
	}
	if f.ToolID != "" {
		add(`tool_id = ?`, f.ToolID)
	}
	if after != nil {
		add(`(created, id) < (?, ?)`, sqldb.At(after.Created), after.ID)
	}
	args = append(args, int64(limit))
	return sqldb.All(ctx, tx, query+` ORDER BY created DESC, id DESC LIMIT $`+strconv.Itoa(len(args)), args, scan)
}

func ofPerson(ctx context.Context, tx *sqldb.Tx, personID string, after *Place, limit int) ([]Run, error) {
	const newest = ` ORDER BY created DESC, id DESC LIMIT $2`
	if after == nil {
		return sqldb.All(ctx, tx, `SELECT `+columns+` FROM run WHERE person_id = $1`+newest, []any{personID, int64(limit)}, scan)
	}
	return sqldb.All(ctx, tx, `SELECT `+columns+` FROM run WHERE person_id = $1 AND created <= $3 AND (created, id) < ($3, $4)`+newest,
		[]any{personID, int64(limit), sqldb.At(after.Created), after.ID}, scan)
}

func places(ctx context.Context, tx *sqldb.Tx, accountID string, after Place, limit int) ([]Place, error) {
	return sqldb.All(ctx, tx, `
		SELECT created, id FROM run WHERE account_id = $1 AND (created, id) > ($2, $3) ORDER BY created, id LIMIT $4`,
		[]any{accountID, after.Created.UnixMicro(), after.ID, int64(limit)}, func(row sqldb.Scanner) (p Place, err error) {
			var created sqldb.Time
			err = row.Scan(&created, &p.ID)
			p.Created = created.Time
			return p, err
		})
}

func erase(ctx context.Context, tx *sqldb.Tx, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	places, args := numbered(ids)
	for _, query := range []string{
		`UPDATE run SET inputs = '{}', prompt = '', metadata = '', plugin = '', webhook_url = '' WHERE status <> 'pending'
			AND (inputs <> '{}' OR prompt <> '' OR metadata <> '' OR plugin <> '' OR webhook_url <> '') AND id IN (` + places + `)`,
		`DELETE FROM idempotency WHERE run_id IN (` + places + `)`,
		`DELETE FROM run_poll WHERE run_id IN (` + places + `)`,
	} {
		if _, err := tx.Exec(ctx, query, args...); err != nil {
			return err
		}
	}
	return nil
}

// forgetPerson scans the polls, of which only pending runs have any.
func forgetPerson(ctx context.Context, tx *sqldb.Tx, personID string) error {
	for _, query := range []string{
		`DELETE FROM idempotency WHERE person_id = $1`,
		`DELETE FROM run_poll WHERE person_id = $1`,
		`DELETE FROM run_turn WHERE person_id = $1 AND waiting = 0`,
	} {
		if _, err := tx.Exec(ctx, query, personID); err != nil {
			return err
		}
	}
	return nil
}

// statuses puts the statuses of those runs into all that there are.
func statuses(ctx context.Context, tx *sqldb.Tx, accountID string, ids []string, all map[string]string) error {
	in, args := sqldb.In(ids, accountID)
	return tx.Each(ctx, `SELECT id, status FROM run WHERE account_id = $1 AND id IN `+in, args, func(row sqldb.Scanner) error {
		var id, status string
		err := row.Scan(&id, &status)
		all[id] = status
		return err
	})
}

// position counts those queued before a run, up to a limit that makes no
// difference to a person.
func position(ctx context.Context, tx *sqldb.Tx, r Run) (n int64, err error) {
	err = tx.QueryRow(ctx, `
		SELECT count(*) FROM (
			SELECT 1 AS one FROM run WHERE engine = $1 AND stage = 'queued' AND (created, id) < ($2, $3) LIMIT 1000) AS before`,
		r.Engine, sqldb.At(r.Created), r.ID).Scan(&n)
	return n + 1, err
}

// Looking at queues. Each of these reads as much as its bound says, however many
// runs there are: the engines are found one by one in the index of turns.

const (
	waitingEnginesQuery = `
		WITH RECURSIVE engines (engine) AS (
			SELECT * FROM (SELECT engine FROM run_turn WHERE waiting > 0 ORDER BY engine LIMIT 1) AS first
			UNION ALL
			SELECT (SELECT t.engine FROM run_turn t WHERE t.waiting > 0 AND t.engine > engines.engine ORDER BY t.engine LIMIT 1)
			FROM engines WHERE engines.engine IS NOT NULL
		) SELECT engine FROM engines WHERE engine IS NOT NULL LIMIT $1`
	countWaitingQuery = `
		SELECT CAST(coalesce(sum(waiting), 0) AS BIGINT) FROM (SELECT waiting FROM run_turn WHERE engine = $1 AND waiting > 0 LIMIT $2) AS counted`
	oldestWaitingQuery = `
		SELECT min(created) FROM (
			SELECT (SELECT r.created FROM run r WHERE r.engine = t.engine AND r.person_id = t.person_id AND r.stage = 'queued'
				ORDER BY r.created, r.id LIMIT 1) AS created
			FROM (SELECT engine, person_id FROM run_turn WHERE engine = $1 AND waiting > 0 ORDER BY served, person_id LIMIT $2) AS t
		) AS firsts`
	countActiveQuery = `
		SELECT engine, count(*) FROM (SELECT engine FROM run WHERE stage = 'running' LIMIT $1) AS counted GROUP BY engine`
)

func waitingEngines(ctx context.Context, tx *sqldb.Tx) ([]string, error) {
	return sqldb.All(ctx, tx, waitingEnginesQuery, []any{int64(queueEngines)}, func(row sqldb.Scanner) (engine string, err error) {
		err = row.Scan(&engine)
		return engine, err
	})
}

func countWaiting(ctx context.Context, tx *sqldb.Tx, engine string) (n int64, err error) {
	err = tx.QueryRow(ctx, countWaitingQuery, engine, int64(countedPeople)).Scan(&n)
	return n, err
}

func oldestWaiting(ctx context.Context, tx *sqldb.Tx, engine string) (time.Time, error) {
	var at sqldb.Time
	err := tx.QueryRow(ctx, oldestWaitingQuery, engine, int64(oldestPeople)).Scan(&at)
	return at.Time, err
}

func countActive(ctx context.Context, tx *sqldb.Tx) (map[string]int64, error) {
	all := map[string]int64{}
	err := tx.Each(ctx, countActiveQuery, []any{int64(countedActive)}, func(row sqldb.Scanner) error {
		var engine string
		var n int64
		if err := row.Scan(&engine, &n); err != nil {
			return err
		}
		all[engine] = n
		return nil
	})
	return all, err
}

// Taking work.

func nextPerson(ctx context.Context, tx *sqldb.Tx, engine string) (personID string, err error) {
	err = tx.QueryRow(ctx, `
		SELECT person_id FROM run_turn WHERE engine = $1 AND waiting > 0 ORDER BY served, person_id LIMIT 1`+tx.Dialect.SkipLocked, engine).Scan(&personID)
	return personID, err
}

func oldest(ctx context.Context, tx *sqldb.Tx, engine, personID string) (id string, err error) {
	err = tx.QueryRow(ctx, `
		SELECT id FROM run WHERE engine = $1 AND person_id = $2 AND stage = 'queued' ORDER BY created, id LIMIT 1`+tx.Dialect.SkipLocked, engine, personID).Scan(&id)
	return id, err
}

// take claims a run. Clocks of nodes differ a little, and a transaction may see
// what was committed after it began: no run starts before it was created.
func take(ctx context.Context, tx *sqldb.Tx, id, worker string, until time.Time) (Run, error) {
	r, err := scan(tx.QueryRow(ctx, `
		UPDATE run SET stage = 'running', attempt = attempt + 1, worker = $2, lease_until = $3, progress = NULL, preview = '',
			started = coalesce(started, CASE WHEN created > $4 THEN created ELSE $4 END), revision = revision + 1
		WHERE id = $1 AND stage = 'queued' RETURNING `+columns, id, worker, sqldb.At(until), sqldb.At(tx.Now)))
	if err != nil {
		return r, err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO run_attempt (run_id, attempt, worker, started) VALUES ($1, $2, $3, $4)`, r.ID, r.Attempt, worker, sqldb.At(tx.Now)); err != nil {
		return r, err
	}
	_, err = tx.Exec(ctx, `UPDATE run_turn SET waiting = waiting - 1, served = $3 WHERE engine = $1 AND person_id = $2`, r.Engine, r.PersonID, sqldb.At(tx.Now))
	return r, err
}

func inputsOf(ctx context.Context, tx *sqldb.Tx, runID string) ([]Input, error) {
	return sqldb.All(ctx, tx, `SELECT field, place, asset_id FROM run_input WHERE run_id = $1 ORDER BY field, place`, []any{runID}, func(row sqldb.Scanner) (in Input, err error) {
		var place int64
		err = row.Scan(&in.Field, &place, &in.AssetID)
		in.Place = int(place)
		return in, err
	})
}

func scanHeld(row sqldb.Scanner) (h Held, err error) {
	err = row.Scan(&h.ID, &h.Attempt, &h.Cancel)
	return h, err
}

func renew(ctx context.Context, tx *sqldb.Tx, worker string, ids []string, until time.Time) ([]Held, error) {
	places, args := numbered(ids, worker, sqldb.At(until))
	return sqldb.All(ctx, tx, `
		UPDATE run SET lease_until = $2 WHERE worker = $1 AND stage = 'running' AND id IN (`+places+`) RETURNING id, attempt, cancel`, args, scanHeld)
}

// numbered gives the placeholders of a list that comes after other arguments,
// and all arguments together.
func numbered(ids []string, before ...any) (places string, args []any) {
	list := make([]string, len(ids))
	for i, id := range ids {
		before = append(before, id)
		list[i] = `$` + strconv.Itoa(len(before))
	}
	return strings.Join(list, `, `), before
}

func held(ctx context.Context, tx *sqldb.Tx, worker string) ([]Held, error) {
	return sqldb.All(ctx, tx, `SELECT id, attempt, cancel FROM run WHERE worker = $1 AND stage = 'running'`, []any{worker}, scanHeld)
}

func setProgress(ctx context.Context, tx *sqldb.Tx, h Held, progress *int64, preview string) (bool, error) {
	n, err := tx.Exec(ctx, `
		UPDATE run SET progress = $3, preview = $4, revision = revision + 1 WHERE id = $1 AND attempt = $2 AND stage = 'running'`,
		h.ID, h.Attempt, progress, preview)
	return n == 1, err
}

func setNote(ctx context.Context, tx *sqldb.Tx, h Held, note string) (bool, error) {
	n, err := tx.Exec(ctx, `UPDATE run SET note = $3 WHERE id = $1 AND attempt = $2 AND stage = 'running'`, h.ID, h.Attempt, note)
	return n == 1, err
}

func leftovers(ctx context.Context, tx *sqldb.Tx, engine string, limit int) ([]Leftover, error) {
	return sqldb.All(ctx, tx, `SELECT id, note FROM run WHERE engine = $1 AND note <> '' AND status <> 'pending' LIMIT $2`,
		[]any{engine, int64(limit)}, func(row sqldb.Scanner) (l Leftover, err error) {
			err = row.Scan(&l.RunID, &l.Note)
			return l, err
		})
}

func clearNote(ctx context.Context, tx *sqldb.Tx, l Leftover) error {
	_, err := tx.Exec(ctx, `UPDATE run SET note = '' WHERE id = $1 AND note = $2 AND status <> 'pending'`, l.RunID, l.Note)
	return err
}

func expired(ctx context.Context, tx *sqldb.Tx, limit int) ([]Run, error) {
	return sqldb.All(ctx, tx, `
		SELECT `+columns+` FROM run WHERE stage = 'running' AND lease_until < $1 ORDER BY lease_until LIMIT $2`+tx.Dialect.SkipLocked,
		[]any{sqldb.At(tx.Now), int64(limit)}, scan)
}

func claimed(ctx context.Context, tx *sqldb.Tx, limit int) ([]Run, error) {
	return sqldb.All(ctx, tx, `SELECT `+columns+` FROM run WHERE stage = 'running' LIMIT $1`, []any{int64(limit)}, scan)
}

func waitingSince(ctx context.Context, tx *sqldb.Tx, before time.Time, limit int) ([]Run, error) {
	return sqldb.All(ctx, tx, `
		SELECT `+columns+` FROM run WHERE stage = 'queued' AND created < $1
			AND NOT EXISTS (SELECT 1 FROM run_attempt a WHERE a.run_id = run.id AND a.ended >= $1) LIMIT $2`,
		[]any{sqldb.At(before), int64(limit)}, scan)
}

func waitingTools(ctx context.Context, tx *sqldb.Tx, engine string) ([]string, error) {
	return sqldb.All(ctx, tx, `SELECT DISTINCT tool_hash FROM run WHERE engine = $1 AND stage = 'queued'`, []any{engine}, func(row sqldb.Scanner) (hash string, err error) {
		err = row.Scan(&hash)
		return hash, err
	})
}

func late(ctx context.Context, tx *sqldb.Tx, engine, toolHash string, started, created time.Time, limit int) ([]Run, error) {
	return sqldb.All(ctx, tx, `
		SELECT `+columns+` FROM run WHERE engine = $1 AND tool_hash = $2 AND stage = 'queued'
			AND (started <= $3 OR started IS NULL AND created <= $4) LIMIT $5`,
		[]any{engine, toolHash, sqldb.At(started), sqldb.At(created), int64(limit)}, scan)
}

// setAway keeps the time since when it is so, where anybody knows.
func setAway(ctx context.Context, tx *sqldb.Tx, engine, worker string, stale time.Time) error {
	if _, err := tx.Exec(ctx, `DELETE FROM engine_away WHERE engine = $1 AND said < $2`, engine, sqldb.At(stale)); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO engine_away (engine, worker, away, since, said)
		VALUES ($1, $2, TRUE, coalesce((SELECT min(since) FROM engine_away WHERE engine = $1 AND away), $3), $3)
		ON CONFLICT (engine, worker) DO UPDATE SET
			away = TRUE, said = excluded.said, since = CASE WHEN engine_away.away THEN engine_away.since ELSE excluded.since END`,
		engine, worker, sqldb.At(tx.Now))
	return err
}

// setBack says nothing where nobody else says the contrary.
func setBack(ctx context.Context, tx *sqldb.Tx, engine, worker string, stale time.Time) error {
	if _, err := tx.Exec(ctx, `DELETE FROM engine_away WHERE engine = $1 AND (worker = $2 OR said < $3)`, engine, worker, sqldb.At(stale)); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO engine_away (engine, worker, away, since, said)
		SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), FALSE, CAST($3 AS BIGINT), CAST($3 AS BIGINT)
		WHERE EXISTS (SELECT 1 FROM engine_away WHERE engine = $1 AND away)`, engine, worker, sqldb.At(tx.Now))
	return err
}

func spokenOf(ctx context.Context, tx *sqldb.Tx, engine string) (is bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM engine_away WHERE engine = $1)`, engine).Scan(&is)
	return is, err
}

func away(ctx context.Context, tx *sqldb.Tx, stale time.Time) (map[string]time.Time, error) {
	all := map[string]time.Time{}
	err := tx.Each(ctx, `
		SELECT engine, min(since) FROM engine_away a WHERE away AND said >= $1
			AND NOT EXISTS (SELECT 1 FROM engine_away b WHERE b.engine = a.engine AND NOT b.away AND b.said >= $1)
		GROUP BY engine`, []any{sqldb.At(stale)}, func(row sqldb.Scanner) error {
		var engine string
		var since sqldb.Time
		if err := row.Scan(&engine, &since); err != nil {
			return err
		}
		all[engine] = since.Time
		return nil
	})
	return all, err
}

func serve(ctx context.Context, tx *sqldb.Tx, engine string) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO engine_served (engine, seen) VALUES ($1, $2)
		ON CONFLICT (engine) DO UPDATE SET seen = CASE WHEN engine_served.seen > excluded.seen THEN engine_served.seen ELSE excluded.seen END`,
		engine, sqldb.At(tx.Now))
	return err
}

// awaited gives the engines for which runs wait, and when somebody last said that
// they have it or took one of its runs; zero where nobody ever did.
func awaited(ctx context.Context, tx *sqldb.Tx) (map[string]time.Time, error) {
	last := map[string]time.Time{}
	err := tx.Each(ctx, `
		SELECT w.engine, coalesce((SELECT seen FROM engine_served s WHERE s.engine = w.engine), 0), (SELECT max(served) FROM run_turn t WHERE t.engine = w.engine)
		FROM (SELECT DISTINCT engine FROM run_turn WHERE waiting > 0) AS w`, nil, func(row sqldb.Scanner) error {
		var engine string
		var seen, served int64
		if err := row.Scan(&engine, &seen, &served); err != nil {
			return err
		}
		last[engine] = time.Time{}
		if at := max(seen, served); at > 0 {
			last[engine] = time.UnixMicro(at)
		}
		return nil
	})
	return last, err
}

func queuedFor(ctx context.Context, tx *sqldb.Tx, engine string, limit int) ([]Run, error) {
	return sqldb.All(ctx, tx, `SELECT `+columns+` FROM run WHERE engine = $1 AND stage = 'queued' LIMIT $2`, []any{engine, int64(limit)}, scan)
}

// requeue gives a run back to those who wait. One that was cancelled is for its
// worker to end: nobody may come for it.
func requeue(ctx context.Context, tx *sqldb.Tx, h Held) (r Run, ok bool, err error) {
	r, err = scan(tx.QueryRow(ctx, `
		UPDATE run SET stage = 'queued', worker = '', lease_until = NULL, progress = NULL, preview = '', revision = revision + 1
		WHERE id = $1 AND attempt = $2 AND stage = 'running' AND NOT cancel RETURNING `+columns, h.ID, h.Attempt))
	if errors.Is(err, sqldb.ErrNoRows) {
		return r, false, nil
	}
	return r, err == nil, err
}

// losses counts the workers that a run was lost with.
func losses(ctx context.Context, tx *sqldb.Tx, id string) (n int64, err error) {
	err = tx.QueryRow(ctx, `SELECT count(*) FROM run_attempt WHERE run_id = $1 AND outcome = $2`, id, Lost).Scan(&n)
	return n, err
}

func endAttempt(ctx context.Context, tx *sqldb.Tx, runID string, attempt int64, outcome string) error {
	_, err := tx.Exec(ctx, `UPDATE run_attempt SET ended = $3, outcome = $4 WHERE run_id = $1 AND attempt = $2 AND ended IS NULL`, runID, attempt, sqldb.At(tx.Now), outcome)
	return err
}

// setOutcome changes how an attempt is said to have ended.
func setOutcome(ctx context.Context, tx *sqldb.Tx, h Held, from, to string) error {
	_, err := tx.Exec(ctx, `UPDATE run_attempt SET outcome = $4 WHERE run_id = $1 AND attempt = $2 AND outcome = $3`, h.ID, h.Attempt, from, to)
	return err
}

// Ending.

func end(ctx context.Context, tx *sqldb.Tx, r Run, o Outcome) (ended Run, ok bool, err error) {
	ended, err = scan(tx.QueryRow(ctx, `
		UPDATE run SET status = $4, stage = NULL, lease_until = NULL, progress = NULL, preview = '', revision = revision + 1,
			note = CASE WHEN $4 = 'succeeded' THEN '' ELSE note END, tokens_charged = $5, allowance_used = $6, error_code = $7, error_message = $8, results = $10,
			finished = CASE WHEN coalesce(started, created) > $9 THEN coalesce(started, created) ELSE $9 END
		WHERE id = $1 AND attempt = $2 AND stage = $3 RETURNING `+columns,
		r.ID, r.Attempt, string(r.State), string(o.State), o.TokensCharged, o.AllowanceUsed, o.ErrorCode, o.ErrorText, sqldb.At(tx.Now), int64(len(o.Results))))
	if errors.Is(err, sqldb.ErrNoRows) {
		return Run{}, false, nil
	}
	return ended, err == nil, err
}

func forgetPolls(ctx context.Context, tx *sqldb.Tx, runID string) error {
	_, err := tx.Exec(ctx, `DELETE FROM run_poll WHERE run_id = $1`, runID)
	return err
}

func forgetEndedPolls(ctx context.Context, tx *sqldb.Tx, limit int) (int64, error) {
	return tx.Exec(ctx, `
		DELETE FROM run_poll WHERE run_id IN (
			SELECT p.run_id FROM run_poll p JOIN run r ON r.id = p.run_id WHERE r.status <> 'pending' LIMIT $1)`, int64(limit))
}

func insertResult(ctx context.Context, tx *sqldb.Tx, r Run, place int, one Result) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO result (id, run_id, place, asset_id, account_id, tool_id, type, shape, resolution, note, created, seal)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		one.ID, r.ID, int64(place), one.AssetID, r.AccountID, r.ToolID, one.Type, one.Shape, one.Resolution, one.Note, sqldb.At(tx.Now),
		SealedResults.Of(tx, one.ID, r.ID, strconv.Itoa(place), one.AssetID, r.AccountID, r.ToolID))
	return err
}

func askCancel(ctx context.Context, tx *sqldb.Tx, accountID, id string) (Run, error) {
	return scan(tx.QueryRow(ctx, `
		UPDATE run SET cancel = TRUE, revision = revision + 1 WHERE id = $1 AND account_id = $2 AND status = 'pending' RETURNING `+columns, id, accountID))
}

func outputs(ctx context.Context, tx *sqldb.Tx, runIDs []string) (map[string][]Output, error) {
	places, args := numbered(runIDs)
	all := make(map[string][]Output, len(runIDs))
	err := tx.Each(ctx, `
		SELECT r.run_id, r.id, a.type, a.mime_type, a.width, a.height, a.duration_ms, a.size_bytes, a.sha256, a.blurhash, coalesce(t.slug, 'result'), a.blob, a.thumb, a.preview,
			r.deleted IS NOT NULL OR a.gone IS NOT NULL, r.note
		FROM result r JOIN asset a ON a.id = r.asset_id LEFT JOIN tool t ON t.id = r.tool_id WHERE r.run_id IN (`+places+`) ORDER BY r.run_id, r.place`, args, func(row sqldb.Scanner) error {
		var runID string
		var o Output
		var width, height, ms *int64
		if err := row.Scan(&runID, &o.ID, &o.Type, &o.MimeType, &width, &height, &ms, &o.Size, &o.SHA256, &o.Blurhash, &o.ToolSlug, &o.Blob, &o.Thumb, &o.Preview, &o.Expired, &o.Note); err != nil {
			return err
		}
		if width != nil && height != nil {
			o.Width = *width
			o.Height = *height
		}
		if ms != nil {
			o.Duration = time.Duration(*ms) * time.Millisecond
		}
		all[runID] = append(all[runID], o)
		return nil
	})
	return all, err
}

// Polls.

// answerPolite notes that a credential is told about a run now, if it was not
// told after a time. Of those who ask at once one finds it so.
func answerPolite(ctx context.Context, tx *sqldb.Tx, runID string, p Poller, after time.Time) (polite bool, err error) {
	n, err := tx.Exec(ctx, `
		INSERT INTO run_poll (run_id, credential, credential_id, person_id, answered, early)
		SELECT id, CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS BIGINT), 0 FROM run WHERE id = $1 AND status = 'pending'
		ON CONFLICT (run_id, credential, credential_id) DO UPDATE SET answered = excluded.answered WHERE run_poll.answered <= $6`,
		runID, p.Credential, p.CredentialID, p.PersonID, sqldb.At(tx.Now), sqldb.At(after))
	return n == 1, err
}

// answerEarly notes one early poll more and gives their number, 0 where the run
// has ended meanwhile.
func answerEarly(ctx context.Context, tx *sqldb.Tx, runID string, p Poller) (early int64, err error) {
	err = tx.QueryRow(ctx, `
		INSERT INTO run_poll (run_id, credential, credential_id, person_id, answered, early)
		SELECT id, CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS BIGINT), 1 FROM run WHERE id = $1 AND status = 'pending'
		ON CONFLICT (run_id, credential, credential_id) DO UPDATE SET answered = excluded.answered, early = run_poll.early + 1
		RETURNING early`,
		runID, p.Credential, p.CredentialID, p.PersonID, sqldb.At(tx.Now)).Scan(&early)
	if errors.Is(err, sqldb.ErrNoRows) {
		return 0, nil
	}
	return early, err
}

// Keys.

func recall(ctx context.Context, tx *sqldb.Tx, personID, key string) (k Key, err error) {
	var created sqldb.Time
	err = tx.QueryRow(ctx, `SELECT fingerprint, run_id, response, created FROM idempotency WHERE person_id = $1 AND key = $2`, personID, key).
		Scan(&k.Fingerprint, &k.RunID, &k.Response, &created)
	k.Created = created.Time
	return k, err
}

func remember(ctx context.Context, tx *sqldb.Tx, personID, key string, k Key) error {
	_, err := tx.Exec(ctx, `INSERT INTO idempotency (person_id, key, fingerprint, run_id, response, created) VALUES ($1, $2, $3, $4, $5, $6)`,
		personID, key, k.Fingerprint, k.RunID, k.Response, sqldb.At(tx.Now))
	return err
}

func forget(ctx context.Context, tx *sqldb.Tx, personID, key string) error {
	_, err := tx.Exec(ctx, `DELETE FROM idempotency WHERE person_id = $1 AND key = $2`, personID, key)
	return err
}

func forgetBefore(ctx context.Context, tx *sqldb.Tx, before time.Time, limit int) (int64, error) {
	return tx.Exec(ctx, `
		DELETE FROM idempotency WHERE run_id IN (SELECT run_id FROM idempotency WHERE created < $1 LIMIT $2)`, sqldb.At(before), int64(limit))
}

// Checks are the invariants of this package.
var Checks = []sqldb.Check{
	{Name: "the turns count the queued runs", Query: `
		SELECT 'run_turn ' || t.engine || ' ' || t.person_id FROM run_turn t WHERE t.waiting <>
			(SELECT count(*) FROM run r WHERE r.engine = t.engine AND r.person_id = t.person_id AND r.stage = 'queued')`},
	{Name: "every queued run has its turn", Query: `
		SELECT 'run ' || r.id FROM run r WHERE r.stage = 'queued'
			AND NOT EXISTS (SELECT 1 FROM run_turn t WHERE t.engine = r.engine AND t.person_id = r.person_id)`},
	{Name: "running runs, and only they, have a lease", Query: `
		SELECT 'run ' || id FROM run WHERE (coalesce(stage, '') = 'running') <> (lease_until IS NOT NULL)`},
	{Name: "a running run has one open attempt, its newest", Query: `
		SELECT 'run ' || r.id FROM run r WHERE (coalesce(r.stage, '') = 'running') <>
			EXISTS (SELECT 1 FROM run_attempt a WHERE a.run_id = r.id AND a.ended IS NULL AND a.attempt = r.attempt)`},
	{Name: "older attempts are over", Query: `
		SELECT 'run ' || a.run_id || ' attempt ' || CAST(a.attempt AS TEXT) FROM run_attempt a JOIN run r ON r.id = a.run_id
		WHERE a.attempt > r.attempt OR a.ended IS NULL AND (a.attempt < r.attempt OR r.stage IS NULL)`},
	{Name: "an attempt ends a run as the run ended", Query: `
		SELECT 'run ' || a.run_id || ' attempt ' || CAST(a.attempt AS TEXT) FROM run_attempt a JOIN run r ON r.id = a.run_id
		WHERE a.outcome IN ('succeeded', 'failed', 'cancelled') AND (r.status <> a.outcome OR r.attempt <> a.attempt)`},
	{Name: "a run that succeeded has an attempt that did", Query: `
		SELECT 'run ' || r.id FROM run r WHERE r.status = 'succeeded'
			AND NOT EXISTS (SELECT 1 FROM run_attempt a WHERE a.run_id = r.id AND a.outcome = 'succeeded')`},
	{Name: "a run's times are in order", Query: `
		SELECT 'run ' || id FROM run WHERE started < created OR finished < created OR finished < started`},
	{Name: "a key and its run are one person's", Query: `
		SELECT 'idempotency ' || i.person_id || ' ' || i.key FROM idempotency i JOIN run r ON r.id = i.run_id WHERE r.person_id <> i.person_id`},
	{Name: "a run has as many results as it says", Query: `
		SELECT 'run ' || r.id FROM run r WHERE r.results <> (SELECT count(*) FROM result s WHERE s.run_id = r.id)`},
	{Name: "the personal account pays for runs without a team", Query: `
		SELECT 'run ' || id FROM run WHERE account_id <> coalesce(team_id, person_id)`},
}

// Limits are what LimitChecks holds runs against.
type Limits struct{ PerMinute, PerHour, Active int }

// clockSkew is how far nodes' clocks may be apart, in microseconds: on one node
// a run may be over a little before it is on another.
const clockSkew = "100000"

// LimitChecks are the invariants that look at the clock and at the settings.
// Those on rates and numbers look two hours back only, as an operator may have
// lowered the limits since; those on leases hold while somebody works.
func LimitChecks(d sqldb.Dialect, l Limits) []sqldb.Check {
	recent := d.Clock + ` - 7200000000`
	rate := func(name string, most int, span time.Duration) sqldb.Check {
		return sqldb.Check{Name: name, Query: `
			SELECT 'person ' || person_id || ' began ' || CAST(max(n) AS TEXT) FROM (
				SELECT person_id, count(*) OVER (PARTITION BY person_id ORDER BY created
					RANGE BETWEEN ` + strconv.FormatInt(span.Microseconds()-1, 10) + ` PRECEDING AND CURRENT ROW) AS n
				FROM run WHERE created > ` + recent + `) AS windows
			WHERE n > ` + strconv.Itoa(most) + ` GROUP BY person_id`}
	}
	return []sqldb.Check{
		rate("nobody begins more runs in a minute than allowed", l.PerMinute, time.Minute),
		rate("nobody begins more runs in an hour than allowed", l.PerHour, time.Hour),
		{Name: "nobody has more runs going than allowed", Query: `
			SELECT 'person ' || person_id || ' had ' || CAST(max(n) AS TEXT) FROM (
				SELECT person_id, sum(d) OVER (PARTITION BY person_id ORDER BY t, d ROWS UNBOUNDED PRECEDING) AS n FROM (
					SELECT person_id, created AS t, 1 AS d FROM run WHERE finished IS NULL OR finished > ` + recent + `
					UNION ALL
					SELECT person_id, CASE WHEN finished - created > ` + clockSkew + ` THEN finished - ` + clockSkew + ` ELSE finished END, -1 FROM run WHERE finished > ` + recent + `) AS steps) AS counts
			WHERE n > ` + strconv.Itoa(l.Active) + ` GROUP BY person_id`},
		{Name: "a run whose lease has ended is taken over", Query: `
			SELECT 'run ' || id FROM run WHERE stage = 'running' AND lease_until < ` + d.Clock + ` - 60000000`},
		{Name: "every run ends", Query: `
			SELECT 'run ' || id FROM run WHERE status = 'pending' AND created < ` + d.Clock + ` - 172800000000`},
	}
}
