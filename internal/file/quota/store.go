package quota

import (
	"context"
	"errors"

	"atelier/internal/base/sqldb"
)

// chargeAccount adds bytes to the usage of an account if they fit. limit
// applies to accounts without a limit of their own. The last SQL condition
// limits used and leaving bytes together; it is written so that it cannot
// overflow.
func chargeAccount(ctx context.Context, tx *sqldb.Tx, accountID string, bytes, limit int64) (charged bool, err error) {
	n, err := tx.Exec(ctx, `
		UPDATE storage_account SET used_bytes = used_bytes + $2
		WHERE account_id = $1 AND (coalesce(limit_bytes, $3) = 0 OR
			used_bytes + $2 <= coalesce(limit_bytes, $3) AND used_bytes + leaving_bytes + $2 - coalesce(limit_bytes, $3) <= coalesce(limit_bytes, $3))`,
		accountID, bytes, limit)
	return n == 1, err
}

func insertAccount(ctx context.Context, tx *sqldb.Tx, accountID string) error {
	_, err := tx.Exec(ctx, `INSERT INTO storage_account (account_id, used_bytes, leaving_bytes) VALUES ($1, 0, 0) ON CONFLICT (account_id) DO NOTHING`, accountID)
	return err
}

// releaseBytes moves bytes of an account from used to leaving. A wrong count
// must not prevent a deletion, so the used bytes never become negative; the
// queries in Checks report the difference.
func releaseBytes(ctx context.Context, tx *sqldb.Tx, accountID string, bytes int64) error {
	_, err := tx.Exec(ctx, `
		UPDATE storage_account SET used_bytes = CASE WHEN used_bytes > $2 THEN used_bytes - $2 ELSE 0 END, leaving_bytes = leaving_bytes + $2
		WHERE account_id = $1`, accountID, bytes)
	return err
}

// reclaimBytes moves bytes of an account from leaving to used if they fit.
// limit applies to accounts without a limit of their own.
func reclaimBytes(ctx context.Context, tx *sqldb.Tx, accountID string, bytes, limit int64) (bool, error) {
	return sqldb.Changed(ctx, tx, `
		UPDATE storage_account SET used_bytes = used_bytes + $2, leaving_bytes = CASE WHEN leaving_bytes > $2 THEN leaving_bytes - $2 ELSE 0 END
		WHERE account_id = $1 AND (coalesce(limit_bytes, $3) = 0 OR used_bytes + $2 <= coalesce(limit_bytes, $3))`, accountID, bytes, limit)
}

func removeBytes(ctx context.Context, tx *sqldb.Tx, accountID string, bytes int64) error {
	_, err := tx.Exec(ctx, `
		UPDATE storage_account SET leaving_bytes = CASE WHEN leaving_bytes > $2 THEN leaving_bytes - $2 ELSE 0 END
		WHERE account_id = $1`, accountID, bytes)
	return err
}

// unreserveBytes subtracts bytes from the used bytes of an account. Like
// releaseBytes, it does not fail on a wrong count.
func unreserveBytes(ctx context.Context, tx *sqldb.Tx, accountID string, bytes int64) error {
	_, err := tx.Exec(ctx, `
		UPDATE storage_account SET used_bytes = CASE WHEN used_bytes > $2 THEN used_bytes - $2 ELSE 0 END
		WHERE account_id = $1`, accountID, bytes)
	return err
}

// deleteEmptyAccount deletes the quota row of an account that stores nothing
// and has no limit of its own.
func deleteEmptyAccount(ctx context.Context, tx *sqldb.Tx, accountID string) error {
	_, err := tx.Exec(ctx, `DELETE FROM storage_account WHERE account_id = $1 AND used_bytes = 0 AND leaving_bytes = 0 AND limit_bytes IS NULL`, accountID)
	return err
}

type accountRow struct {
	id            string
	used, leaving int64
	limit         *int64
}

func accountRows(ctx context.Context, tx *sqldb.Tx, ids []string) ([]accountRow, error) {
	in, args := sqldb.In(ids)
	return sqldb.All(ctx, tx, accountQuery+` IN `+in, args, scanAccount)
}

const accountQuery = `SELECT account_id, used_bytes, leaving_bytes, limit_bytes FROM storage_account WHERE account_id`

func scanAccount(row sqldb.Scanner) (a accountRow, err error) {
	err = row.Scan(&a.id, &a.used, &a.leaving, &a.limit)
	return a, err
}

// deferAccountRow calls check with the row of an account, nil if there is none,
// together with the next statement.
func deferAccountRow(ctx context.Context, tx *sqldb.Tx, accountID string, check func(*accountRow) error) error {
	return tx.DeferQueryRow(ctx, accountQuery+` = $1`, []any{accountID}, func(row sqldb.Row) error {
		a, err := scanAccount(row)
		if errors.Is(err, sqldb.ErrNoRows) {
			return check(nil)
		}
		if err != nil {
			return err
		}
		return check(&a)
	})
}

func setLimit(ctx context.Context, tx *sqldb.Tx, accountID string, limit *int64) (before *int64, err error) {
	err = tx.QueryRow(ctx, `SELECT limit_bytes FROM storage_account WHERE account_id = $1`+tx.Dialect.ForUpdate, accountID).Scan(&before)
	if err != nil {
		return nil, err
	}

	_, err = tx.Exec(ctx, `UPDATE storage_account SET limit_bytes = $2 WHERE account_id = $1`, accountID, limit)
	return before, err
}

// addToShard adds bytes to a shard. It returns false if the result would
// exceed limit.
func addToShard(ctx context.Context, tx *sqldb.Tx, shard, bytes, limit int64) (added bool, err error) {
	n, err := tx.Exec(ctx, `UPDATE storage_shard SET bytes = bytes + $2 WHERE shard = $1 AND bytes <= $3`, shard, bytes, limit-max(bytes, 0))
	return n == 1, err
}

func shardBytes(ctx context.Context, tx *sqldb.Tx, shard int64) (bytes int64, err error) {
	err = tx.QueryRow(ctx, `SELECT bytes FROM storage_shard WHERE shard = $1`, shard).Scan(&bytes)
	return bytes, err
}

// lockShards locks all shards in order and returns the sum of their bytes.
func lockShards(ctx context.Context, tx *sqldb.Tx) (sum int64, err error) {
	err = tx.EachRow(ctx, `SELECT bytes FROM storage_shard ORDER BY shard`+tx.Dialect.ForUpdate, nil, func(row sqldb.Scanner) error {
		var bytes int64
		err := row.Scan(&bytes)
		sum += bytes
		return err
	})
	return sum, err
}

func setShard(ctx context.Context, tx *sqldb.Tx, shard, bytes int64) error {
	_, err := tx.Exec(ctx, `UPDATE storage_shard SET bytes = $2 WHERE shard = $1`, shard, bytes)
	return err
}

// TotalBytes returns the number of bytes that the installation stores,
// including deleted files whose content is not deleted yet.
func TotalBytes(ctx context.Context, tx *sqldb.Tx) (bytes int64, err error) {
	err = tx.QueryRow(ctx, totalQuery).Scan(&bytes)
	return bytes, err
}

const totalQuery = `SELECT CAST(sum(bytes) AS BIGINT) FROM storage_shard`

// deferTotalBytes calls check with the result of TotalBytes, together with the
// next statement.
func deferTotalBytes(ctx context.Context, tx *sqldb.Tx, check func(total int64) error) error {
	return tx.DeferQueryRow(ctx, totalQuery, nil, func(row sqldb.Row) error {
		var bytes int64
		if err := row.Scan(&bytes); err != nil {
			return err
		}
		return check(bytes)
	})
}

// Checks are queries that find rows violating this package's invariants. They
// read the tables asset and resumable_upload of other packages, because they
// compare the counts with the files and the unfinished uploads.
var Checks = []sqldb.Check{
	{Name: "the stored bytes of an account are the sum of its files and unfinished uploads", Query: `
		SELECT 'storage_account ' || c.account_id FROM (
			SELECT account_id, sum(used) AS used, sum(leaving) AS leaving FROM (
				SELECT account_id, used_bytes AS used, leaving_bytes AS leaving FROM storage_account
				UNION ALL
				SELECT account_id, CASE WHEN released IS NULL THEN -stored_bytes ELSE 0 END, CASE WHEN released IS NULL THEN 0 ELSE -stored_bytes END
				FROM asset WHERE gone IS NULL
				UNION ALL
				SELECT account_id, -length_bytes, 0 FROM resumable_upload WHERE upload_id IS NULL) AS both_sides
			GROUP BY account_id) AS c
		WHERE c.used <> 0 OR c.leaving <> 0`},
	{Name: "the stored bytes of the installation are the sum of all files and unfinished uploads", Query: `
		SELECT 'storage_shard' FROM (SELECT sum(bytes) AS counted FROM storage_shard) AS s
		WHERE s.counted <> (SELECT coalesce(sum(stored_bytes), 0) FROM asset WHERE gone IS NULL)
			+ (SELECT coalesce(sum(length_bytes), 0) FROM resumable_upload WHERE upload_id IS NULL)`},
	{Name: "the stored bytes of a file are at least its size", Query: `
		SELECT 'asset ' || id FROM asset WHERE stored_bytes < size_bytes`},
	{Name: "a file counts as used until it is deleted", Query: `
		SELECT 'asset ' || a.id FROM asset a LEFT JOIN upload u ON u.asset_id = a.id LEFT JOIN result r ON r.asset_id = a.id
		WHERE (a.gone IS NOT NULL OR u.deleted IS NOT NULL OR r.deleted IS NOT NULL) <> (a.released IS NOT NULL)`},
}
