package library

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/asset"
)

// orNotFound returns missing instead of sqldb.ErrNoRows, and any other error
// unchanged.
func orNotFound(err error, missing *fault.Error) error {
	if errors.Is(err, sqldb.ErrNoRows) {
		return missing
	}
	return err
}

// query builds a query text with its arguments.
type query struct {
	text strings.Builder
	args []any
}

func (q *query) appendText(parts ...string) {
	for _, p := range parts {
		q.text.WriteString(p)
	}
}

// addArg adds an argument and returns its placeholder.
func (q *query) addArg(v any) string {
	q.args = append(q.args, v)
	return "$" + strconv.Itoa(len(q.args))
}

// addArgs adds arguments and returns their placeholders in parentheses. values
// must not be empty.
func (q *query) addArgs(values []string) string {
	placeholders := make([]string, len(values))
	for i, v := range values {
		placeholders[i] = q.addArg(v)
	}
	return "(" + strings.Join(placeholders, ", ") + ")"
}

// selectItems begins the query for the items in the viewer's accounts. inputs
// is the SQL expression for the inputs of the run.
func selectItems(v Viewer, inputs string) *query {
	q := &query{}
	q.appendText(`
		SELECT r.id, r.account_id, r.tool_id, r.created, n.library_id, n.id, n.person_id, coalesce(n.team_id, ''), n.prompt, `, inputs, `,
			a.type, a.mime_type, coalesce(a.width, 0), coalesce(a.height, 0), coalesce(a.duration_ms, 0), a.size_bytes, a.sha256, a.blurhash,
			coalesce(t.slug, 'result'), a.blob, a.thumb, a.preview, a.gone IS NOT NULL, r.note, `, favoritedBy(q.addArg(v.PersonID)), `
		FROM result r JOIN run n ON n.id = r.run_id JOIN asset a ON a.id = r.asset_id LEFT JOIN tool t ON t.id = r.tool_id
		WHERE r.deleted IS NULL AND r.account_id IN `, q.addArgs(v.AccountIDs))
	return q
}

// favoritedBy returns the SQL condition that the person has marked the result.
func favoritedBy(person string) string {
	return `EXISTS (SELECT 1 FROM favorite f WHERE f.person_id = ` + person + ` AND f.result_id = r.id)`
}

func scanItem(row sqldb.Scanner) (i Item, err error) {
	var created sqldb.Time
	var ms int64
	var run, tool string
	var k Keys
	err = row.Scan(&i.ResultID, &i.AccountID, &i.ToolID, &created, &run, &i.RequestID, &i.PersonID, &i.TeamID, &i.Prompt, &i.Inputs,
		&i.Type, &i.MimeType, &i.Width, &i.Height, &ms, &i.Size, &i.SHA256, &i.Blurhash,
		&tool, &k.Blob, &k.Thumb, &k.Preview, &i.Expired, &i.Note, &i.Favorited)
	i.Names = ResultNames(tool, i.ResultID, k)
	i.ID = run + ":" + i.ResultID
	i.Created = created.Time
	i.Duration = time.Duration(ms) * time.Millisecond
	return i, err
}

func queryItems(ctx context.Context, tx *sqldb.Tx, v Viewer, f Filter, after *Place, limit int) ([]Item, error) {
	q := selectItems(v, `''`)
	q.appendText(` AND r.type <> 'TEXT'`)
	if len(f.ToolIDs) > 0 {
		q.appendText(` AND r.tool_id IN `, q.addArgs(f.ToolIDs))
	}
	if f.Shape != "" {
		q.appendText(` AND r.shape = `, q.addArg(f.Shape))
	}
	if f.Resolution != "" {
		q.appendText(` AND r.resolution = `, q.addArg(f.Resolution))
	}
	if f.Favorited != nil {
		q.appendText(` AND `)
		if !*f.Favorited {
			q.appendText(`NOT `)
		}
		q.appendText(favoritedBy("$1"))
	}
	if !f.From.IsZero() {
		q.appendText(` AND r.created >= `, q.addArg(f.From.UnixMicro()))
	}
	if !f.Until.IsZero() {
		q.appendText(` AND r.created < `, q.addArg(f.Until.UnixMicro()))
	}
	if after != nil {
		q.appendText(` AND (r.created, r.id) < (`, q.addArg(after.Created.UnixMicro()), `, `, q.addArg(after.ID), `)`)
	}

	q.appendText(` ORDER BY r.created DESC, r.id DESC LIMIT `, q.addArg(limit))
	return sqldb.All(ctx, tx, q.text.String(), q.args, scanItem)
}

func queryItem(ctx context.Context, tx *sqldb.Tx, v Viewer, run, result string) (Item, error) {
	q := selectItems(v, `n.inputs`)
	q.appendText(` AND n.library_id = `, q.addArg(run), ` AND r.id = `, q.addArg(result))
	return scanItem(tx.QueryRow(ctx, q.text.String(), q.args...))
}

func setFavorite(ctx context.Context, tx *sqldb.Tx, personID, resultID string, on bool) error {
	if !on {
		_, err := tx.Exec(ctx, `DELETE FROM favorite WHERE person_id = $1 AND result_id = $2`, personID, resultID)
		return err
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO favorite (person_id, result_id, created) VALUES ($1, $2, $3)
		ON CONFLICT (person_id, result_id) DO NOTHING`, personID, resultID, sqldb.At(tx.Now))
	return err
}

// deleteResult marks a result as deleted, if it is not yet, and returns its
// file.
func deleteResult(ctx context.Context, tx *sqldb.Tx, id string) (assetID string, err error) {
	err = tx.QueryRow(ctx, `UPDATE result SET deleted = $2, note = '' WHERE id = $1 AND deleted IS NULL RETURNING asset_id`, id, sqldb.At(tx.Now)).Scan(&assetID)
	return assetID, err
}

// textColumns are assignments that erase text when a row of the table is
// deleted.
var textColumns = map[string]string{"upload": "", "result": ", note = ''"}

// expireRows marks a batch of rows that were created before a time as deleted,
// and returns their files.
func expireRows(ctx context.Context, tx *sqldb.Tx, table string, before time.Time) ([]string, error) {
	return sqldb.All(ctx, tx, `
		UPDATE `+table+` SET deleted = $1`+textColumns[table]+` WHERE deleted IS NULL AND id IN (
			SELECT id FROM `+table+` WHERE deleted IS NULL AND created < $2 ORDER BY created LIMIT $3)
		RETURNING asset_id`, []any{sqldb.At(tx.Now), before.UnixMicro(), sweepBatch}, scanOne[string])
}

// unowned is the condition for files with bytes that nothing has referred to
// since the time $1.
const unowned = `asset.gone IS NULL AND asset.created < $1
	AND NOT EXISTS (SELECT 1 FROM upload u WHERE u.asset_id = asset.id AND (u.deleted IS NULL OR u.deleted >= $1))
	AND NOT EXISTS (SELECT 1 FROM result r WHERE r.asset_id = asset.id AND (r.deleted IS NULL OR r.deleted >= $1))
	AND NOT EXISTS (SELECT 1 FROM run_input i JOIN run n ON n.id = i.run_id WHERE i.asset_id = asset.id AND n.status = 'pending')`

func scanOne[T any](row sqldb.Scanner) (v T, err error) {
	err = row.Scan(&v)
	return v, err
}

// unownedAfter returns a batch of unowned files with IDs above id, in the order
// of IDs.
func unownedAfter(ctx context.Context, tx *sqldb.Tx, id string, before time.Time) ([]string, error) {
	return sqldb.All(ctx, tx, `SELECT id FROM asset WHERE id > $2 AND `+unowned+` ORDER BY id LIMIT $3`,
		[]any{before.UnixMicro(), id, sweepBatch}, scanOne[string])
}

// stillUnowned locks and returns the files among ids that are still unowned.
func stillUnowned(ctx context.Context, tx *sqldb.Tx, ids []string, before time.Time) ([]string, error) {
	in, args := sqldb.In(ids, before.UnixMicro())
	return sqldb.All(ctx, tx, `SELECT id FROM asset WHERE id IN `+in+` AND `+unowned+` ORDER BY id`+tx.Dialect.ForUpdate, args, scanOne[string])
}

// markGone marks files as gone and returns their blob keys and their bytes by
// account. The files must be released; files with an owner are skipped.
func markGone(ctx context.Context, tx *sqldb.Tx, ids []string, before time.Time) (keys []string, removed map[string]int64, err error) {
	in, args := sqldb.In(ids, before.UnixMicro(), sqldb.At(tx.Now))
	var rows [][3]string
	removed = map[string]int64{}
	err = tx.Each(ctx, `
		UPDATE asset SET gone = $2 WHERE released IS NOT NULL AND id IN `+in+` AND `+unowned+`
		RETURNING blob, thumb, preview, account_id, stored_bytes`, args, func(row sqldb.Scanner) error {
		var k [3]string
		var accountID string
		var bytes int64
		err := row.Scan(&k[0], &k[1], &k[2], &accountID, &bytes)
		rows = append(rows, k)
		removed[accountID] += bytes
		return err
	})
	return flattenKeys(rows), removed, err
}

func scanKeys(row sqldb.Scanner) (k [3]string, err error) {
	err = row.Scan(&k[0], &k[1], &k[2])
	return k, err
}

// flattenKeys returns the keys that are not empty.
func flattenKeys(rows [][3]string) (keys []string) {
	for _, row := range rows {
		for _, key := range row {
			if key != "" {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// blobKeysOf returns the blob keys of the files that are not gone.
func blobKeysOf(ctx context.Context, tx *sqldb.Tx, ids []string) ([]string, error) {
	in, args := sqldb.In(ids)
	rows, err := sqldb.All(ctx, tx, `SELECT blob, thumb, preview FROM asset WHERE gone IS NULL AND id IN `+in, args, scanKeys)
	return flattenKeys(rows), err
}

// referencedKeys returns the keys of all files that use one of keys. No index
// helps, so it is only for the few keys that seem to be orphans.
func referencedKeys(ctx context.Context, tx *sqldb.Tx, keys []string) ([]string, error) {
	in, args := sqldb.In(keys)
	rows, err := sqldb.All(ctx, tx, `
		SELECT blob, thumb, preview FROM asset WHERE gone IS NULL AND (blob IN `+in+` OR thumb IN `+in+` OR preview IN `+in+`)`, args, scanKeys)
	return flattenKeys(rows), err
}

// usedPreviewKeys returns the keys among keys that are previews of pending
// runs.
func usedPreviewKeys(ctx context.Context, tx *sqldb.Tx, keys []string) ([]string, error) {
	in, args := sqldb.In(keys)
	return sqldb.All(ctx, tx, `SELECT preview FROM run WHERE status = 'pending' AND preview IN `+in, args, scanOne[string])
}

// filesAfter returns a batch of files with bytes and IDs above id, in the order
// of IDs.
func filesAfter(ctx context.Context, tx *sqldb.Tx, id string) ([]asset.Asset, error) {
	return sqldb.All(ctx, tx, `SELECT id, size_bytes, sha256, blob, thumb, preview FROM asset WHERE id > $1 AND gone IS NULL ORDER BY id LIMIT $2`,
		[]any{id, sweepBatch}, func(row sqldb.Scanner) (a asset.Asset, err error) {
			err = row.Scan(&a.ID, &a.Size, &a.SHA256, &a.Blob, &a.Thumb, &a.Preview)
			return a, err
		})
}

// Checks are the invariants of this package.
var Checks = []sqldb.Check{
	{Name: "a result has a file of its own account and type", Query: `
		SELECT 'result ' || r.id FROM result r LEFT JOIN asset a ON a.id = r.asset_id
		WHERE a.id IS NULL OR a.account_id <> r.account_id OR a.type <> r.type`},
	{Name: "a result has the account and the tool of its run", Query: `
		SELECT 'result ' || r.id FROM result r LEFT JOIN run n ON n.id = r.run_id
		WHERE n.id IS NULL OR n.account_id <> r.account_id OR n.tool_id <> r.tool_id`},
	{Name: "the bytes of a result are there until it is deleted", Query: `
		SELECT 'result ' || r.id FROM result r JOIN asset a ON a.id = r.asset_id WHERE r.deleted IS NULL AND a.gone IS NOT NULL`},
	{Name: "a deleted result has no note", Query: `
		SELECT 'result ' || id FROM result WHERE deleted IS NOT NULL AND note <> ''`},
	{Name: "a run that succeeded has its results, first to last", Query: `
		SELECT 'run ' || n.id FROM run n LEFT JOIN result r ON r.run_id = n.id WHERE n.status = 'succeeded'
		GROUP BY n.id, n.num_results HAVING count(r.id) < 1 OR count(r.id) > n.num_results OR min(r.place) <> 0 OR max(r.place) <> count(r.id) - 1`},
	{Name: "a run that failed or was cancelled has no results", Query: `
		SELECT 'run ' || n.id FROM run n WHERE n.status IN ('failed', 'cancelled') AND EXISTS (SELECT 1 FROM result r WHERE r.run_id = n.id)`},
	{Name: "a run works on files of its own account", Query: `
		SELECT 'run ' || n.id FROM run_input i JOIN run n ON n.id = i.run_id LEFT JOIN asset a ON a.id = i.asset_id
		WHERE a.id IS NULL OR a.account_id <> n.account_id`},
	{Name: "the files of a pending run are there", Query: `
		SELECT 'run ' || n.id FROM run n JOIN run_input i ON i.run_id = n.id JOIN asset a ON a.id = i.asset_id
		WHERE n.status = 'pending' AND a.gone IS NOT NULL`},
	{Name: "a file is an upload or a result, not both", Query: `
		SELECT 'asset ' || u.asset_id FROM upload u JOIN result r ON r.asset_id = u.asset_id`},
}
