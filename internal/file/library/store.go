package library

import (
	"context"
	"errors"
	"slices"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/asset"
)

// orNotFound returns missing if err is sqldb.ErrNoRows, otherwise err.
func orNotFound(err error, missing *fault.Error) error {
	if errors.Is(err, sqldb.ErrNoRows) {
		return missing
	}
	return err
}

// textColumns are, by table, the SQL assignments that erase text when a row is
// marked as deleted.
var textColumns = map[string]string{"upload": "", "result": ", note = ''"}

// expireRows marks a batch of rows that were created before the given time as
// deleted, and returns the IDs of their files.
func expireRows(ctx context.Context, tx *sqldb.Tx, table string, before time.Time) ([]string, error) {
	return sqldb.All(ctx, tx, `
		UPDATE `+table+` SET deleted = $1`+textColumns[table]+` WHERE deleted IS NULL AND id IN (
			SELECT id FROM `+table+` WHERE deleted IS NULL AND created < $2 ORDER BY created LIMIT $3)
		RETURNING asset_id`, []any{sqldb.At(tx.Now), before.UnixMicro(), sweepBatch}, scanOne[string])
}

// unowned is the SQL condition for files that still have content but that no
// upload, result or pending run has referred to since the time $1. A deleted
// result that can be restored still refers to its file.
const unowned = `asset.gone IS NULL AND asset.created < $1
	AND NOT EXISTS (SELECT 1 FROM upload u WHERE u.asset_id = asset.id AND (u.deleted IS NULL OR u.deleted >= $1))
	AND NOT EXISTS (SELECT 1 FROM result r WHERE r.asset_id = asset.id AND (r.deleted IS NULL OR r.deleted >= $1 OR r.restorable_until IS NOT NULL))
	AND NOT EXISTS (SELECT 1 FROM run_input i JOIN run n ON n.id = i.run_id WHERE i.asset_id = asset.id AND n.status = 'pending')`

func scanOne[T any](row sqldb.Scanner) (v T, err error) {
	err = row.Scan(&v)
	return v, err
}

// leavingQuery finds the unowned files that are marked as deleted. The index
// asset_leaving has only these files until their content is deleted.
const leavingQuery = `SELECT id FROM asset WHERE id > $2 AND asset.released IS NOT NULL AND ` + unowned + ` ORDER BY id LIMIT $3`

// leavingAfter returns the IDs of a batch of unowned files that are marked as
// deleted, with IDs above id, in ascending order.
func leavingAfter(ctx context.Context, tx *sqldb.Tx, id string, before time.Time) ([]string, error) {
	return sqldb.All(ctx, tx, leavingQuery, []any{before.UnixMicro(), id, sweepBatch}, scanOne[string])
}

// unsweptQuery finds ended runs with input files that the sweep has not looked
// at. The index run_input_unswept has only these inputs and those of recent and
// pending runs.
const unsweptQuery = `
	SELECT DISTINCT i.run_id FROM run_input i JOIN run n ON n.id = i.run_id
	WHERE NOT i.swept AND i.run_id > $2 AND n.status <> 'pending' AND n.created < $1 ORDER BY i.run_id LIMIT $3`

// unsweptAfter returns the IDs of a batch of ended runs that were created before
// the given time and have input files that the sweep has not looked at, with
// IDs above id, in ascending order. The input files are not younger than their
// run.
func unsweptAfter(ctx context.Context, tx *sqldb.Tx, id string, before time.Time) ([]string, error) {
	return sqldb.All(ctx, tx, unsweptQuery, []any{before.UnixMicro(), id, sweepBatch}, scanOne[string])
}

// unsweptInputs returns the IDs of the input files of runs that the sweep has
// not looked at, without duplicates.
func unsweptInputs(ctx context.Context, tx *sqldb.Tx, runIDs []string) ([]string, error) {
	in, args := sqldb.In(runIDs)
	return sqldb.All(ctx, tx, `SELECT DISTINCT asset_id FROM run_input WHERE NOT swept AND run_id IN `+in+` ORDER BY asset_id`, args, scanOne[string])
}

// markSwept records that the sweep has looked at the input files of runs.
func markSwept(ctx context.Context, tx *sqldb.Tx, runIDs []string) error {
	in, args := sqldb.In(runIDs)
	_, err := tx.Exec(ctx, `UPDATE run_input SET swept = TRUE WHERE NOT swept AND run_id IN `+in, args...)
	return err
}

// stillUnowned locks the files among ids that are still unowned, and returns
// their IDs.
func stillUnowned(ctx context.Context, tx *sqldb.Tx, ids []string, before time.Time) ([]string, error) {
	in, args := sqldb.In(ids, before.UnixMicro())
	return sqldb.All(ctx, tx, `SELECT id FROM asset WHERE id IN `+in+` AND `+unowned+` ORDER BY id`+tx.Dialect.ForUpdate, args, scanOne[string])
}

// markGone records that the content of files is deleted, before it is. It
// returns the files' blob keys, and their sizes in bytes by account. It skips
// files that are not marked as released or that have an owner.
func markGone(ctx context.Context, tx *sqldb.Tx, ids []string, before time.Time) (keys []string, removed map[string]int64, err error) {
	in, args := sqldb.In(ids, before.UnixMicro(), sqldb.At(tx.Now))
	var rows [][3]string
	removed = map[string]int64{}
	err = tx.EachRow(ctx, `
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

// flattenKeys returns the non-empty keys in rows.
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

// blobKeysOf returns the blob keys of those files among ids whose content is
// not deleted.
func blobKeysOf(ctx context.Context, tx *sqldb.Tx, ids []string) ([]string, error) {
	in, args := sqldb.In(ids)
	rows, err := sqldb.All(ctx, tx, `SELECT blob, thumb, preview FROM asset WHERE gone IS NULL AND id IN `+in, args, scanKeys)
	return flattenKeys(rows), err
}

// referencedKeys returns all blob keys of the files that have one of the given
// keys. No index supports this query, so it is only for the few keys that seem
// to be orphans.
func referencedKeys(ctx context.Context, tx *sqldb.Tx, keys []string) ([]string, error) {
	in, args := sqldb.In(keys)
	rows, err := sqldb.All(ctx, tx, `
		SELECT blob, thumb, preview FROM asset WHERE gone IS NULL AND (blob IN `+in+` OR thumb IN `+in+` OR preview IN `+in+`)`, args, scanKeys)
	return flattenKeys(rows), err
}

// usedPreviewKeys returns the keys that are previews of pending runs.
func usedPreviewKeys(ctx context.Context, tx *sqldb.Tx, keys []string) ([]string, error) {
	in, args := sqldb.In(keys)
	return sqldb.All(ctx, tx, `SELECT preview FROM run WHERE status = 'pending' AND preview IN `+in, args, scanOne[string])
}

// filesAfter returns a batch of files with content and with IDs above id, in
// ascending order of IDs.
func filesAfter(ctx context.Context, tx *sqldb.Tx, id string) ([]asset.Asset, error) {
	return sqldb.All(ctx, tx, `SELECT id, size_bytes, sha256, blob, thumb, preview FROM asset WHERE id > $1 AND gone IS NULL ORDER BY id LIMIT $2`,
		[]any{id, sweepBatch}, func(row sqldb.Scanner) (a asset.Asset, err error) {
			err = row.Scan(&a.ID, &a.Size, &a.SHA256, &a.Blob, &a.Thumb, &a.Preview)
			return a, err
		})
}

// ExportResults returns at most limit results of a person's personal account,
// including notes, in the order in which their runs were created.
func ExportResults(ctx context.Context, tx *sqldb.Tx, personID string, after ExportCursor, limit int) ([]ExportedResult, error) {
	return sqldb.All(ctx, tx, `
		SELECT n.created, n.id, n.library_id, n.tool_id, r.place, r.id, r.created, a.type, a.mime_type, a.size_bytes, a.sha256,
			coalesce(a.width, 0), coalesce(a.height, 0), coalesce(a.duration_ms, 0), a.blob, a.gone IS NOT NULL, r.note,
			EXISTS (SELECT 1 FROM favorite f WHERE f.person_id = $1 AND f.result_id = r.id)
		FROM run n JOIN result r ON r.run_id = n.id JOIN asset a ON a.id = r.asset_id
		WHERE n.account_id = $1 AND r.deleted IS NULL AND (n.created, n.id) >= ($2, $3) AND (n.created, n.id, r.place) > ($2, $3, $4)
		ORDER BY n.created, n.id, r.place LIMIT $5`,
		[]any{personID, after.created.UnixMicro(), after.runID, after.place, int64(limit)}, func(row sqldb.Scanner) (k ExportedResult, err error) {
			var started, created sqldb.Time
			var library string
			var ms int64
			err = row.Scan(&started, &k.RequestID, &library, &k.ToolID, &k.Cursor.place, &k.ResultID, &created, &k.Asset.Type, &k.Asset.MimeType, &k.Asset.Size, &k.Asset.SHA256,
				&k.Asset.Width, &k.Asset.Height, &ms, &k.Asset.Blob, &k.Expired, &k.Note, &k.Favorited)
			k.ID = library + ":" + k.ResultID
			k.Created = created.Time
			k.Asset.Duration = time.Duration(ms) * time.Millisecond
			k.Cursor.created = started.Time
			k.Cursor.runID = k.RequestID
			return k, err
		})
}

// ExportFavorites returns at most limit favorites of a person whose result IDs
// are above after, in ascending order of result IDs.
func ExportFavorites(ctx context.Context, tx *sqldb.Tx, personID, after string, limit int) ([]Favorite, error) {
	return sqldb.All(ctx, tx, `SELECT result_id, created FROM favorite WHERE person_id = $1 AND result_id > $2 ORDER BY result_id LIMIT $3`,
		[]any{personID, after, int64(limit)}, func(row sqldb.Scanner) (f Favorite, err error) {
			var created sqldb.Time
			err = row.Scan(&f.ResultID, &created)
			f.Created = created.Time
			return f, err
		})
}

// EraseFavorites deletes all favorites of a person.
func EraseFavorites(ctx context.Context, tx *sqldb.Tx, personID string) error {
	_, err := tx.Exec(ctx, `DELETE FROM favorite WHERE person_id = $1`, personID)
	return err
}

// EraseUploads deletes at most limit uploads of an account and erases their
// names, including the names of uploads that were deleted before. It selects
// uploads with IDs above after, in ascending order, and returns the last ID, or
// "" if there are no more uploads. SweepFiles deletes the content later.
func EraseUploads(ctx context.Context, tx *sqldb.Tx, accountID, after string, limit int) (last string, err error) {
	type uploadRow struct{ id, assetID string }
	uploads, err := sqldb.All(ctx, tx, `SELECT id, asset_id FROM upload WHERE account_id = $1 AND id > $2 ORDER BY id LIMIT $3`,
		[]any{accountID, after, int64(limit)}, func(row sqldb.Scanner) (u uploadRow, err error) {
			err = row.Scan(&u.id, &u.assetID)
			return u, err
		})
	if err != nil || len(uploads) == 0 {
		return "", err
	}

	var uploadIDs, assetIDs []string
	for _, u := range uploads {
		uploadIDs = append(uploadIDs, u.id)
		assetIDs = append(assetIDs, u.assetID)
		last = u.id
	}

	in, args := sqldb.In(uploadIDs, sqldb.At(tx.Now))
	if _, err := tx.Exec(ctx, `
		UPDATE upload SET name = '', deleted = coalesce(deleted, $1) WHERE (name <> '' OR deleted IS NULL) AND id IN `+in, args...); err != nil {
		return "", err
	}
	if err := eraseBlurhashes(ctx, tx, assetIDs); err != nil {
		return "", err
	}
	return last, releaseFiles(ctx, tx, assetIDs)
}

// EraseResults deletes the results of runs and all favorites on them. Results
// that were deleted before can no longer be restored.
// SweepFiles later deletes their content, and the content of input files that
// no other run uses.
func EraseResults(ctx context.Context, tx *sqldb.Tx, runIDs []string) error {
	if len(runIDs) == 0 {
		return nil
	}

	// IDs are selected first and then listed in the update, so that rows are
	// found by the primary key, regardless of the query planner's statistics.
	type resultRow struct{ id, assetID string }
	in, args := sqldb.In(runIDs)
	results, err := sqldb.All(ctx, tx, `SELECT id, asset_id FROM result WHERE run_id IN `+in, args, func(row sqldb.Scanner) (r resultRow, err error) {
		err = row.Scan(&r.id, &r.assetID)
		return r, err
	})
	if err != nil {
		return err
	}

	inputs, err := sqldb.All(ctx, tx, `SELECT asset_id FROM run_input WHERE run_id IN `+in, args, scanOne[string])
	if err != nil {
		return err
	}

	var resultIDs, assetIDs []string
	for _, r := range results {
		resultIDs = append(resultIDs, r.id)
		assetIDs = append(assetIDs, r.assetID)
	}

	for ids := range slices.Chunk(resultIDs, sweepBatch) {
		in, args := sqldb.In(ids, sqldb.At(tx.Now))
		if _, err := tx.Exec(ctx, `
			UPDATE result SET deleted = coalesce(deleted, $1), restorable_until = NULL, note = '', search_text = ''
			WHERE (deleted IS NULL OR restorable_until IS NOT NULL OR note <> '' OR search_text IS NULL OR search_text <> '') AND id IN `+in, args...); err != nil {
			return err
		}

		in, args = sqldb.In(ids)
		if _, err := tx.Exec(ctx, `DELETE FROM favorite WHERE result_id IN `+in, args...); err != nil {
			return err
		}
	}

	if err := eraseBlurhashes(ctx, tx, append(inputs, assetIDs...)); err != nil {
		return err
	}
	return releaseFiles(ctx, tx, assetIDs)
}

// eraseBlurhashes erases the blurhashes of files, because a blurhash shows a
// blurred version of the content.
func eraseBlurhashes(ctx context.Context, tx *sqldb.Tx, assetIDs []string) error {
	for batch := range slices.Chunk(assetIDs, sweepBatch) {
		in, args := sqldb.In(batch)
		if _, err := tx.Exec(ctx, `UPDATE asset SET blurhash = '' WHERE blurhash <> '' AND id IN `+in, args...); err != nil {
			return err
		}
	}
	return nil
}

func resultAsset(ctx context.Context, tx *sqldb.Tx, accountID, run, result string) (assetID string, err error) {
	err = tx.QueryRow(ctx, `
		SELECT a.id FROM result r JOIN run n ON n.id = r.run_id JOIN asset a ON a.id = r.asset_id
		WHERE r.id = $1 AND n.library_id = $2 AND r.account_id = $3 AND a.account_id = $3 AND r.deleted IS NULL AND a.gone IS NULL`,
		result, run, accountID).Scan(&assetID)
	return assetID, err
}

const referencedColumns = `a.type, a.mime_type, coalesce(a.width, 0), coalesce(a.height, 0), coalesce(a.duration_ms, 0), a.size_bytes, a.blurhash, a.blob, a.thumb, a.preview`

func (s *ReferencedFile) scanFile(row sqldb.Scanner, k *Keys, first ...any) error {
	var ms int64
	err := row.Scan(append(first, &s.Type, &s.MimeType, &s.Width, &s.Height, &ms, &s.Size, &s.Blurhash, &k.Blob, &k.Thumb, &k.Preview)...)
	s.Duration = time.Duration(ms) * time.Millisecond
	return err
}

// referencedUploads adds to the map all the uploads among refs that exist.
func referencedUploads(ctx context.Context, tx *sqldb.Tx, accountID string, refs []string, all map[string]ReferencedFile) error {
	in, args := sqldb.In(refs, accountID)
	return tx.EachRow(ctx, `
		SELECT u.id, u.name, `+referencedColumns+` FROM upload u JOIN asset a ON a.id = u.asset_id
		WHERE u.account_id = $1 AND a.account_id = $1 AND u.deleted IS NULL AND a.gone IS NULL AND u.id IN `+in, args,
		func(row sqldb.Scanner) error {
			s := ReferencedFile{Kind: KindUpload}
			var name string
			var k Keys
			err := s.scanFile(row, &k, &s.ID, &name)
			s.Names = namesOf(name, k)
			all[s.ID] = s
			return err
		})
}

// referencedResults adds to the map all the results among refs that exist.
func referencedResults(ctx context.Context, tx *sqldb.Tx, accountID string, refs []string, all map[string]ReferencedFile) error {
	ids := make([]string, len(refs))
	for i, ref := range refs {
		_, ids[i], _ = SplitItemID(ref)
	}

	in, args := sqldb.In(ids, accountID)
	return tx.EachRow(ctx, `
		SELECT n.library_id, r.id, coalesce(t.slug, 'result'), `+referencedColumns+`
		FROM result r JOIN run n ON n.id = r.run_id JOIN asset a ON a.id = r.asset_id LEFT JOIN tool t ON t.id = r.tool_id
		WHERE r.account_id = $1 AND a.account_id = $1 AND r.deleted IS NULL AND a.gone IS NULL AND r.id IN `+in, args,
		func(row sqldb.Scanner) error {
			s := ReferencedFile{Kind: KindResult}
			var run, tool string
			var k Keys
			err := s.scanFile(row, &k, &run, &s.ID, &tool)
			s.Names = ResultNames(tool, s.ID, k)
			all[run+":"+s.ID] = s
			return err
		})
}

// suspended is the SQL expression that is true if the person $2 is suspended
// or does not exist.
const suspended = `coalesce((SELECT p.suspended FROM person p WHERE p.id = $2), TRUE)`

const storedColumns = suspended + `, a.mime_type, a.size_bytes, a.sha256, a.blob, a.thumb, a.preview`

func (s *storedFile) scanTargets(first ...any) []any {
	a := &s.asset
	return append(first, &s.suspended, &a.MimeType, &a.Size, &a.SHA256, &a.Blob, &a.Thumb, &a.Preview)
}

func storedUpload(ctx context.Context, db *sqldb.DB, id, viewerID string) (s storedFile, err error) {
	err = db.QueryRow(ctx, `
		SELECT u.account_id, u.deleted IS NOT NULL OR a.gone IS NOT NULL, u.name, `+storedColumns+`
		FROM upload u JOIN asset a ON a.id = u.asset_id WHERE u.id = $1`, id, viewerID).Scan(s.scanTargets(&s.accountID, &s.unavailable, &s.name)...)
	return s, err
}

func storedResult(ctx context.Context, db *sqldb.DB, id, viewerID string) (s storedFile, err error) {
	err = db.QueryRow(ctx, `
		SELECT r.account_id, r.deleted IS NOT NULL OR a.gone IS NOT NULL, coalesce(t.slug, 'result'), `+storedColumns+`
		FROM result r JOIN asset a ON a.id = r.asset_id LEFT JOIN tool t ON t.id = r.tool_id WHERE r.id = $1`, id, viewerID).
		Scan(s.scanTargets(&s.accountID, &s.unavailable, &s.tool)...)
	return s, err
}

// storedInput returns an input file of a run. The file is available only while
// a run that uses it is pending.
func storedInput(ctx context.Context, db *sqldb.DB, id, viewerID string) (s storedFile, err error) {
	err = db.QueryRow(ctx, `
		SELECT a.account_id, a.gone IS NOT NULL OR NOT EXISTS (
			SELECT 1 FROM run_input i JOIN run n ON n.id = i.run_id WHERE i.asset_id = a.id AND n.status = 'pending'), `+storedColumns+`
		FROM asset a WHERE a.id = $1`, id, viewerID).Scan(s.scanTargets(&s.accountID, &s.unavailable)...)
	return s, err
}

func storedRun(ctx context.Context, db *sqldb.DB, id, viewerID string) (s storedFile, err error) {
	err = db.QueryRow(ctx, `SELECT account_id, status <> 'pending', preview, `+suspended+` FROM run WHERE id = $1`, id, viewerID).
		Scan(&s.accountID, &s.unavailable, &s.asset.Preview, &s.suspended)
	return s, err
}

// DeleteSweepHolds deletes all rows of sweep_hold from a copy of a database,
// because they belong to backups of the original.
func DeleteSweepHolds(ctx context.Context, tx *sqldb.Tx) error {
	_, err := tx.Exec(ctx, `DELETE FROM sweep_hold`)
	return err
}

func insertHold(ctx context.Context, tx *sqldb.Tx, id string, until time.Time) error {
	_, err := tx.Exec(ctx, `INSERT INTO sweep_hold (id, until) VALUES ($1, $2)`, id, sqldb.At(until))
	return err
}

// renewHold extends a sweep hold (see SweepHold). It returns false if the hold
// has expired.
func renewHold(ctx context.Context, tx *sqldb.Tx, id string, until time.Time) (bool, error) {
	n, err := tx.Exec(ctx, `UPDATE sweep_hold SET until = $2 WHERE id = $1 AND until > $3`, id, sqldb.At(until), sqldb.At(tx.Now))
	return n > 0, err
}

// endHold deletes a sweep hold. It returns false if the hold has expired.
func endHold(ctx context.Context, tx *sqldb.Tx, id string) (bool, error) {
	n, err := tx.Exec(ctx, `DELETE FROM sweep_hold WHERE id = $1 AND until > $2`, id, sqldb.At(tx.Now))
	return n > 0, err
}

// hasSweepHold deletes expired sweep holds and reports whether any hold is
// left.
func hasSweepHold(ctx context.Context, tx *sqldb.Tx) (is bool, err error) {
	if _, err := tx.Exec(ctx, `DELETE FROM sweep_hold WHERE until <= $1`, sqldb.At(tx.Now)); err != nil {
		return false, err
	}
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM sweep_hold)`).Scan(&is)
	return is, err
}

// Checks are queries that find rows violating this package's invariants.
var Checks = []sqldb.Check{
	{Name: "the file of a result has the account and the type of the result", Query: `
		SELECT 'result ' || r.id FROM result r LEFT JOIN asset a ON a.id = r.asset_id
		WHERE a.id IS NULL OR a.account_id <> r.account_id OR a.type <> r.type`},
	{Name: "a result has the account and the tool of its run", Query: `
		SELECT 'result ' || r.id FROM result r LEFT JOIN run n ON n.id = r.run_id
		WHERE n.id IS NULL OR n.account_id <> r.account_id OR n.tool_id <> r.tool_id`},
	{Name: "the content of a result exists until the result is deleted", Query: `
		SELECT 'result ' || r.id FROM result r JOIN asset a ON a.id = r.asset_id WHERE r.deleted IS NULL AND a.gone IS NOT NULL`},
	{Name: "a deleted result that cannot be restored has no note", Query: `
		SELECT 'result ' || id FROM result WHERE deleted IS NOT NULL AND restorable_until IS NULL AND note <> ''`},
	{Name: "only a deleted result whose content exists can be restored", Query: `
		SELECT 'result ' || r.id FROM result r JOIN asset a ON a.id = r.asset_id
		WHERE r.restorable_until IS NOT NULL AND (r.deleted IS NULL OR a.gone IS NOT NULL)`},
	{Name: "the results of a run without a prompt have no text for searching", Query: `
		SELECT 'result ' || r.id FROM result r JOIN run n ON n.id = r.run_id WHERE n.prompt = '' AND r.search_text <> ''`},
	{Name: "the results of a successful run are numbered without gaps", Query: `
		SELECT 'run ' || n.id FROM run n LEFT JOIN result r ON r.run_id = n.id WHERE n.status = 'succeeded' AND n.engine <> 'flow'
		GROUP BY n.id, n.num_results HAVING count(r.id) < 1 OR count(r.id) > n.num_results OR min(r.place) <> 0 OR max(r.place) <> count(r.id) - 1`},
	{Name: "a run that failed or was cancelled has no results", Query: `
		SELECT 'run ' || n.id FROM run n WHERE n.status IN ('failed', 'cancelled') AND EXISTS (SELECT 1 FROM result r WHERE r.run_id = n.id)`},
	{Name: "the input files of a run belong to the account of the run", Query: `
		SELECT 'run ' || n.id FROM run_input i JOIN run n ON n.id = i.run_id LEFT JOIN asset a ON a.id = i.asset_id
		WHERE a.id IS NULL OR a.account_id <> n.account_id`},
	{Name: "the content of the input files of a pending run exists", Query: `
		SELECT 'run ' || n.id FROM run n JOIN run_input i ON i.run_id = n.id JOIN asset a ON a.id = i.asset_id
		WHERE n.status = 'pending' AND a.gone IS NOT NULL`},
	{Name: "a file is an upload or a result, not both", Query: `
		SELECT 'asset ' || u.asset_id FROM upload u JOIN result r ON r.asset_id = u.asset_id`},
}
