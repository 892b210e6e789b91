package library

import (
	"context"
	"slices"

	"atelier/internal/base/sqldb"
)

// ForgetFavorites deletes all favorites of a person.
func ForgetFavorites(ctx context.Context, tx *sqldb.Tx, personID string) error {
	_, err := tx.Exec(ctx, `DELETE FROM favorite WHERE person_id = $1`, personID)
	return err
}

// EraseUploads deletes at most limit uploads of an account and erases their
// names, including the names of uploads that were deleted before. It continues
// after an ID and returns the last ID, or "" when nothing is left. The sweep
// removes the bytes.
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

// EraseResults deletes the results of runs and all favorites on them. The sweep
// removes the bytes, and also those of input files that no other run uses.
func EraseResults(ctx context.Context, tx *sqldb.Tx, runIDs []string) error {
	if len(runIDs) == 0 {
		return nil
	}

	// IDs are selected first and then listed: rows are found by the primary
	// key, whatever statistics the planner has.
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
			UPDATE result SET deleted = coalesce(deleted, $1), note = '' WHERE (deleted IS NULL OR note <> '') AND id IN `+in, args...); err != nil {
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

// eraseBlurhashes deletes the blurhashes of files, because they show the
// content.
func eraseBlurhashes(ctx context.Context, tx *sqldb.Tx, assetIDs []string) error {
	for batch := range slices.Chunk(assetIDs, sweepBatch) {
		in, args := sqldb.In(batch)
		if _, err := tx.Exec(ctx, `UPDATE asset SET blurhash = '' WHERE blurhash <> '' AND id IN `+in, args...); err != nil {
			return err
		}
	}
	return nil
}
