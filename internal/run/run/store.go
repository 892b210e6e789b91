package run

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"atelier/internal/base/sqldb"
)

// columns are the columns of the table run in the order in which scanRun reads
// them.
const columns = `id, library_id, person_id, account_id, team_id, company_id, credential, credential_id, plugin, tool_id, tool_hash, engine, inputs, prompt, seed,
	num_results, metadata, webhook_url, estimated_s, poll_s, unit_tokens, tokens_held, allowance_held, allowance_month, tokens_charged, allowance_used,
	status, stage, attempt, cancel, progress, preview, revision, error_code, error_message, created, started, finished, note, server_position, head_start, parent_id`

func scanRun(row sqldb.Scanner) (r Run, err error) {
	var team, company, stage, parent *string
	var estimated, charged, used *int64
	var poll, headStart int64
	var status string
	var created, started, finished sqldb.Time
	err = row.Scan(&r.ID, &r.LibraryID, &r.PersonID, &r.AccountID, &team, &company, &r.Credential, &r.CredentialID, &r.Plugin, &r.ToolID, &r.ToolHash, &r.Engine, &r.Inputs, &r.Prompt, &r.Seed,
		&r.NumResults, &r.Metadata, &r.WebhookURL, &estimated, &poll, &r.UnitTokens, &r.TokensHeld, &r.AllowanceHeld, &r.AllowanceMonth, &charged, &used,
		&status, &stage, &r.Attempt, &r.Cancel, &r.Progress, &r.Preview, &r.Revision, &r.ErrorCode, &r.ErrorText, &created, &started, &finished, &r.EngineState, &r.ServerPosition, &headStart, &parent)
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
	if parent != nil {
		r.ParentID = *parent
	}
	r.State = State(status)
	if stage != nil {
		r.State = State(*stage)
	}
	r.Estimated = time.Duration(value(estimated)) * time.Second
	r.PollAfter = time.Duration(poll) * time.Second
	r.HeadStart = time.Duration(headStart) * time.Microsecond
	r.TokensCharged = value(charged)
	r.AllowanceUsed = value(used)
	r.Created = created.Time
	r.Started = started.Time
	r.Finished = finished.Time
	return r, nil
}

func insertRun(ctx context.Context, tx *sqldb.Tx, r Run) error {
	return tx.DeferExec(ctx, `
		INSERT INTO run (id, library_id, person_id, account_id, team_id, company_id, credential, credential_id, plugin, tool_id, tool_hash, engine, inputs, prompt, seed,
			num_results, metadata, webhook_url, estimated_s, poll_s, unit_tokens, tokens_held, allowance_held, allowance_month,
			status, stage, attempt, worker, cancel, preview, revision, error_code, error_message, created, seal, head_start, parent_id)
		VALUES ($1, $2, $3, $4, nullif($5, ''), (SELECT company_id FROM team WHERE id = $5), $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, nullif($18, 0), $19, $20, $21, $22, $23,
			'pending', $27, 0, '', FALSE, '', 1, '', '', $24, $25, $26, nullif($28, ''))`,
		[]any{
			r.ID, r.LibraryID, r.PersonID, r.AccountID, r.TeamID, r.Credential, r.CredentialID, r.Plugin, r.ToolID, r.ToolHash, r.Engine, r.Inputs, r.Prompt, r.Seed,
			r.NumResults, r.Metadata, r.WebhookURL, int64(r.Estimated / time.Second), int64(r.PollAfter / time.Second), r.UnitTokens, r.TokensHeld, r.AllowanceHeld, r.AllowanceMonth,
			sqldb.At(tx.Now), r.sealedHash(tx), r.HeadStart.Microseconds(), string(r.initialState()), r.ParentID,
		}, nil)
}

func insertInput(ctx context.Context, tx *sqldb.Tx, runID string, in Input) error {
	return tx.DeferExec(ctx, `INSERT INTO run_input (run_id, field, place, asset_id) VALUES ($1, $2, $3, $4)`, []any{runID, in.Field, int64(in.Index), in.AssetID}, nil)
}

// ListInputs returns the input files of a run.
func ListInputs(ctx context.Context, tx *sqldb.Tx, runID string) ([]Input, error) {
	return sqldb.All(ctx, tx, `SELECT field, place, asset_id FROM run_input WHERE run_id = $1 ORDER BY field, place`, []any{runID}, func(row sqldb.Scanner) (in Input, err error) {
		var index int64
		err = row.Scan(&in.Field, &index, &in.AssetID)
		in.Index = int(index)
		return in, err
	})
}

// Get returns a run of an account. from is a transaction, or the database for
// polls, which need no transaction.
func Get(ctx context.Context, from queryer, accountID, id string) (Run, error) {
	return findRun(from.QueryRow(ctx, `SELECT `+columns+` FROM run WHERE id = $1 AND account_id = $2`, id, accountID))
}

// queryer is implemented by transactions and by the database.
type queryer interface {
	QueryRow(ctx context.Context, query string, args ...any) sqldb.Row
}

// GetUnscoped returns a run of any account, without checking who may see it. It
// is for workers, and for responses to the person who started the run.
func GetUnscoped(ctx context.Context, tx *sqldb.Tx, id string) (Run, error) {
	return findRun(tx.QueryRow(ctx, `SELECT `+columns+` FROM run WHERE id = $1`, id))
}

// GetByLibraryID returns the run of an account whose results have ids that begin
// with a library id.
func GetByLibraryID(ctx context.Context, tx *sqldb.Tx, accountID, libraryID string) (Run, error) {
	return findRun(tx.QueryRow(ctx, `SELECT `+columns+` FROM run WHERE library_id = $1 AND account_id = $2`, libraryID, accountID))
}

func findRun(row sqldb.Scanner) (Run, error) {
	r, err := scanRun(row)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Run{}, ErrNotFound
	}
	return r, err
}

// List returns at most limit runs of an account that match the filter, newest
// first, starting after the cursor. It leaves out the runs of the steps of flows.
func List(ctx context.Context, tx *sqldb.Tx, accountID string, f Filter, after *Cursor, limit int) ([]Run, error) {
	var args sqldb.Args
	query := `SELECT ` + columns + ` FROM run WHERE parent_id IS NULL AND account_id = ` + args.Add(accountID)
	if f.Status != "" {
		query += ` AND status = ` + args.Add(f.Status)
	}
	if f.ToolID != "" {
		query += ` AND tool_id = ` + args.Add(f.ToolID)
	}
	if after != nil {
		query += ` AND (created, id) < (` + args.Add(sqldb.At(after.Created)) + `, ` + args.Add(after.ID) + `)`
	}
	query += ` ORDER BY created DESC, id DESC LIMIT ` + args.Add(int64(limit))
	return sqldb.All(ctx, tx, query, args, scanRun)
}

// ListByPerson returns at most limit runs that a person started for any
// account, newest first, starting after the cursor.
func ListByPerson(ctx context.Context, tx *sqldb.Tx, personID string, after *Cursor, limit int) ([]Run, error) {
	const newest = ` ORDER BY created DESC, id DESC LIMIT $2`
	if after == nil {
		return sqldb.All(ctx, tx, `SELECT `+columns+` FROM run WHERE person_id = $1`+newest, []any{personID, int64(limit)}, scanRun)
	}
	return sqldb.All(ctx, tx, `SELECT `+columns+` FROM run WHERE person_id = $1 AND created <= $3 AND (created, id) < ($3, $4)`+newest,
		[]any{personID, int64(limit), sqldb.At(after.Created), after.ID}, scanRun)
}

// ListIDs returns the ids of at most limit runs of an account, oldest first,
// starting after the cursor. last is the cursor for the next call.
func ListIDs(ctx context.Context, tx *sqldb.Tx, accountID string, after Cursor, limit int) (ids []string, last Cursor, err error) {
	err = tx.EachRow(ctx, `
		SELECT created, id FROM run WHERE account_id = $1 AND (created, id) > ($2, $3) ORDER BY created, id LIMIT $4`,
		[]any{accountID, after.Created.UnixMicro(), after.ID, int64(limit)}, func(row sqldb.Scanner) error {
			var created sqldb.Time
			if err := row.Scan(&created, &last.ID); err != nil {
				return err
			}
			last.Created = created.Time
			ids = append(ids, last.ID)
			return nil
		})
	return ids, last, err
}

// Statuses returns the public statuses of runs of an account by run id. Ids of
// runs that the account does not have are left out.
func Statuses(ctx context.Context, tx *sqldb.Tx, accountID string, ids []string) (map[string]string, error) {
	all := map[string]string{}
	for chunk := range slices.Chunk(ids, 1024) {
		in, args := sqldb.In(chunk, accountID)
		err := tx.EachRow(ctx, `SELECT id, status FROM run WHERE account_id = $1 AND id IN `+in, args, func(row sqldb.Scanner) error {
			var id, status string
			err := row.Scan(&id, &status)
			all[id] = status
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// CountActive returns the number of runs of a person that have not ended. A flow
// counts as one run.
func CountActive(ctx context.Context, tx *sqldb.Tx, personID string) (n int64, err error) {
	err = tx.QueryRow(ctx, `SELECT count(*) FROM run WHERE person_id = $1 AND status = 'pending' AND parent_id IS NULL`, personID).Scan(&n)
	return n, err
}

// Spent returns the number of tokens that an account has spent on the runs that
// a person created since the given time. A run that has not ended counts with
// the tokens reserved for it; a flow without those that its steps have got.
func Spent(ctx context.Context, tx *sqldb.Tx, accountID, personID string, since time.Time) (tokens int64, err error) {
	err = tx.QueryRow(ctx, `
		SELECT CAST(coalesce(sum(coalesce(tokens_charged, tokens_held - coalesce((
			SELECT sum(c.tokens_held) FROM flow_step s JOIN run c ON c.id = s.run_id WHERE s.flow_id = run.id AND NOT s.reused), 0))), 0) AS BIGINT) FROM run
		WHERE person_id = $1 AND created > $2 AND account_id = $3`, personID, sqldb.At(since), accountID).Scan(&tokens)
	return tokens, err
}

// Positions returns the positions of queued runs among all queued runs of their
// engines, by creation time, by run id. They are only estimates, because
// scheduling is fair among people and not by creation time. The count stops at
// 1000, since greater numbers do not matter to people.
func Positions(ctx context.Context, tx *sqldb.Tx, runIDs ...string) (map[string]int64, error) {
	if len(runIDs) == 0 {
		return nil, nil
	}

	placeholders, args := sqldb.In(runIDs)
	return sqldb.Map[string, int64](ctx, tx, `
		SELECT r.id, 1 + (SELECT count(*) FROM (
			SELECT 1 AS one FROM run b WHERE b.engine = r.engine AND b.stage = 'queued' AND (b.created, b.id) < (r.created, r.id) LIMIT 1000) AS before)
		FROM run r WHERE r.id IN `+placeholders, args)
}

// Outputs returns the results of runs by run id, in the order in which they
// were generated.
func Outputs(ctx context.Context, tx *sqldb.Tx, runIDs ...string) (map[string][]Output, error) {
	if len(runIDs) == 0 {
		return nil, nil
	}

	placeholders, args := sqldb.In(runIDs)
	all := make(map[string][]Output, len(runIDs))
	err := tx.EachRow(ctx, `
		SELECT r.run_id, r.id, n.library_id, a.type, a.mime_type, a.width, a.height, a.duration_ms, a.size_bytes, a.sha256, a.blurhash, coalesce(t.slug, 'result'), a.blob, a.thumb, a.preview,
			r.deleted IS NOT NULL OR a.gone IS NOT NULL, CASE WHEN r.deleted IS NULL THEN r.note ELSE '' END
		FROM result r JOIN run n ON n.id = r.run_id JOIN asset a ON a.id = r.asset_id LEFT JOIN tool t ON t.id = r.tool_id WHERE r.run_id IN `+placeholders+` ORDER BY r.run_id, r.place`, args, func(row sqldb.Scanner) error {
		var runID string
		var o Output
		var width, height, ms *int64
		if err := row.Scan(&runID, &o.ID, &o.Library, &o.Type, &o.MimeType, &width, &height, &ms, &o.Size, &o.SHA256, &o.Blurhash, &o.ToolSlug, &o.Blob, &o.Thumb, &o.Preview, &o.Expired, &o.Note); err != nil {
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

func endRun(ctx context.Context, tx *sqldb.Tx, r Run, o Outcome) (ended Run, ok bool, err error) {
	ended, err = scanRun(tx.QueryRow(ctx, `
		UPDATE run SET status = $4, stage = NULL, lease_until = NULL, progress = NULL, preview = '', server_position = NULL, revision = revision + 1,
			note = CASE WHEN $4 = 'succeeded' THEN '' ELSE note END, tokens_charged = $5, allowance_used = $6, error_code = $7, error_message = $8, results = $10,
			finished = CASE WHEN coalesce(started, created) > $9 THEN coalesce(started, created) ELSE $9 END
		WHERE id = $1 AND attempt = $2 AND stage = $3 RETURNING `+columns,
		r.ID, r.Attempt, string(r.State), string(o.State), o.TokensCharged, o.AllowanceUsed, o.ErrorCode, o.ErrorText, sqldb.At(tx.Now), int64(len(o.Results))))
	if errors.Is(err, sqldb.ErrNoRows) {
		return Run{}, false, nil
	}
	return ended, err == nil, err
}

func insertResult(ctx context.Context, tx *sqldb.Tx, r Run, index int, result Result) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO result (id, run_id, place, asset_id, account_id, tool_id, type, shape, resolution, note, search_text, created, seal, intermediate)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
		result.ID, r.ID, int64(index), result.AssetID, r.AccountID, r.ToolID, result.Type, result.Shape, result.Resolution, result.Note, result.SearchText, sqldb.At(tx.Now),
		SealedResults.SealOf(tx, result.ID, r.ID, strconv.Itoa(index), result.AssetID, r.AccountID, r.ToolID), r.ParentID != "")
	return err
}

func markCancelled(ctx context.Context, tx *sqldb.Tx, accountID, id string) (Run, error) {
	return scanRun(tx.QueryRow(ctx, `
		UPDATE run SET cancel = TRUE, revision = revision + 1 WHERE id = $1 AND account_id = $2 AND status = 'pending' RETURNING `+columns, id, accountID))
}

// Erase removes from ended runs the data that people entered: inputs, metadata,
// plugin name and webhook URL. It also deletes the idempotency keys and polling
// records of the runs. The tools, times and costs of the runs stay.
func Erase(ctx context.Context, tx *sqldb.Tx, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	placeholders, args := sqldb.In(ids)
	for _, query := range []string{
		`UPDATE run SET inputs = '{}', prompt = '', metadata = '', plugin = '', webhook_url = '' WHERE status <> 'pending'
			AND (inputs <> '{}' OR prompt <> '' OR metadata <> '' OR plugin <> '' OR webhook_url <> '') AND id IN ` + placeholders,
		`DELETE FROM idempotency WHERE run_id IN ` + placeholders,
		`DELETE FROM run_poll WHERE run_id IN ` + placeholders,
	} {
		if _, err := tx.Exec(ctx, query, args...); err != nil {
			return err
		}
	}
	return nil
}

// ErasePerson deletes the idempotency keys, polling records and scheduling rows
// of a person. All runs of the person must have ended. It scans the whole table
// of polling records, which is small because only pending runs have such
// records.
func ErasePerson(ctx context.Context, tx *sqldb.Tx, personID string) error {
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
