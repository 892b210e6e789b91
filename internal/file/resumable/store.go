package resumable

import (
	"context"
	"time"

	"atelier/internal/base/sqldb"
)

const uploadColumns = `id, account_id, person_id, name, metadata, length_bytes, offset_bytes, part_count, coalesce(key, ''), coalesce(upload_id, ''), created, expires`

func scanUpload(row sqldb.Scanner) (u Upload, err error) {
	var created, expires sqldb.Time
	err = row.Scan(&u.ID, &u.AccountID, &u.PersonID, &u.Name, &u.Metadata, &u.Length, &u.Offset, &u.parts, &u.Key, &u.UploadID, &created, &expires)
	u.Created = created.Time
	u.Expires = expires.Time
	return u, err
}

// byID returns an upload without checking whose it is. locking is the SQL
// clause that locks the row, or "".
func byID(ctx context.Context, tx *sqldb.Tx, id, locking string) (Upload, error) {
	return scanUpload(tx.QueryRow(ctx, `SELECT `+uploadColumns+` FROM resumable_upload WHERE id = $1`+locking, id))
}

func byKey(ctx context.Context, tx *sqldb.Tx, personID, key string) (Upload, error) {
	return scanUpload(tx.QueryRow(ctx, `SELECT `+uploadColumns+` FROM resumable_upload WHERE person_id = $1 AND key = $2`+tx.Dialect.ForUpdate, personID, key))
}

func insertUpload(ctx context.Context, tx *sqldb.Tx, u Upload) error {
	var key any
	if u.Key != "" {
		key = u.Key
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO resumable_upload (id, account_id, person_id, name, metadata, length_bytes, offset_bytes, part_count, key, created, expires)
		VALUES ($1, $2, $3, $4, $5, $6, 0, 0, $7, $8, $9)`,
		u.ID, u.AccountID, u.PersonID, u.Name, u.Metadata, u.Length, key, sqldb.At(u.Created), sqldb.At(u.Expires))
	return err
}

func clearKey(ctx context.Context, tx *sqldb.Tx, id string) error {
	_, err := tx.Exec(ctx, `UPDATE resumable_upload SET key = NULL WHERE id = $1`, id)
	return err
}

// countUnfinished returns the number of uploads of a person that are not
// finished and have not expired.
func countUnfinished(ctx context.Context, tx *sqldb.Tx, personID string) (n int, err error) {
	err = tx.QueryRow(ctx, `SELECT count(*) FROM resumable_upload WHERE person_id = $1 AND upload_id IS NULL AND expires > $2`, personID, sqldb.At(tx.Now)).Scan(&n)
	return n, err
}

// moveOffset stores the offset, the number of parts and the time of expiry of
// an unfinished upload. It returns false if the offset is no longer from.
func moveOffset(ctx context.Context, tx *sqldb.Tx, from int64, u Upload) (bool, error) {
	return sqldb.Changed(ctx, tx, `
		UPDATE resumable_upload SET offset_bytes = $3, part_count = $4, expires = $5
		WHERE id = $1 AND offset_bytes = $2 AND upload_id IS NULL`, u.ID, from, u.Offset, u.parts, sqldb.At(u.Expires))
}

// finishUpload records the upload in the library that a resumable upload has
// become. It returns false if the offset is no longer from.
func finishUpload(ctx context.Context, tx *sqldb.Tx, id string, from int64, uploadID string, expires time.Time) (bool, error) {
	return sqldb.Changed(ctx, tx, `
		UPDATE resumable_upload SET offset_bytes = length_bytes, part_count = 0, upload_id = $3, expires = $4
		WHERE id = $1 AND offset_bytes = $2 AND upload_id IS NULL`, id, from, uploadID, sqldb.At(expires))
}

// deleteUpload deletes the rows of an upload and its parts.
func deleteUpload(ctx context.Context, tx *sqldb.Tx, id string) error {
	if err := deleteParts(ctx, tx, id); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `DELETE FROM resumable_upload WHERE id = $1`, id)
	return err
}

func insertPart(ctx context.Context, tx *sqldb.Tx, uploadID string, p part) error {
	_, err := tx.Exec(ctx, `INSERT INTO resumable_part (resumable_id, start_bytes, size_bytes, sha256, blob) VALUES ($1, $2, $3, $4, $5)`,
		uploadID, p.start, p.size, p.sha256, p.blob)
	return err
}

// partsOf returns the parts of an upload in the order of their bytes.
func partsOf(ctx context.Context, tx *sqldb.Tx, uploadID string) ([]part, error) {
	return sqldb.All(ctx, tx, `SELECT start_bytes, size_bytes, sha256, blob FROM resumable_part WHERE resumable_id = $1 ORDER BY start_bytes`,
		[]any{uploadID}, func(row sqldb.Scanner) (p part, err error) {
			err = row.Scan(&p.start, &p.size, &p.sha256, &p.blob)
			return p, err
		})
}

func deleteParts(ctx context.Context, tx *sqldb.Tx, uploadID string) error {
	_, err := tx.Exec(ctx, `DELETE FROM resumable_part WHERE resumable_id = $1`, uploadID)
	return err
}

// batch is the maximum number of rows that are read at once.
const batch = 200

func scanText(row sqldb.Scanner) (text string, err error) {
	err = row.Scan(&text)
	return text, err
}

// expiredUploads returns the IDs of a batch of uploads that have expired.
func expiredUploads(ctx context.Context, tx *sqldb.Tx) ([]string, error) {
	return sqldb.All(ctx, tx, `SELECT id FROM resumable_upload WHERE expires <= $1 ORDER BY expires LIMIT $2`, []any{sqldb.At(tx.Now), int64(batch)}, scanText)
}

// uploadsAfter returns the IDs of a batch of unfinished uploads above id, in
// ascending order.
func uploadsAfter(ctx context.Context, tx *sqldb.Tx, id string) ([]string, error) {
	return sqldb.All(ctx, tx, `SELECT id FROM resumable_upload WHERE id > $1 AND upload_id IS NULL ORDER BY id LIMIT $2`, []any{id, int64(batch)}, scanText)
}

// firstOf returns any upload of a person, finished or not.
func firstOf(ctx context.Context, tx *sqldb.Tx, personID string) (Upload, error) {
	return scanUpload(tx.QueryRow(ctx, `SELECT `+uploadColumns+` FROM resumable_upload WHERE person_id = $1 ORDER BY id LIMIT 1`+tx.Dialect.ForUpdate, personID))
}

// knownKeys returns those of the keys that are parts of uploads.
func knownKeys(ctx context.Context, tx *sqldb.Tx, keys []string) ([]string, error) {
	in, args := sqldb.In(keys)
	return sqldb.All(ctx, tx, `SELECT blob FROM resumable_part WHERE blob IN `+in, args, scanText)
}

// Unfinished returns at most limit unfinished uploads to a person's personal
// account with IDs above after, in ascending order.
func Unfinished(ctx context.Context, tx *sqldb.Tx, personID, after string, limit int) ([]Upload, error) {
	return sqldb.All(ctx, tx, `
		SELECT `+uploadColumns+` FROM resumable_upload
		WHERE person_id = $1 AND account_id = $1 AND upload_id IS NULL AND id > $2 ORDER BY id LIMIT $3`, []any{personID, after, int64(limit)}, scanUpload)
}

// Checks are queries that find rows violating this package's invariants.
var Checks = []sqldb.Check{
	{Name: "the parts of an unfinished upload are its first bytes without gaps", Query: `
		SELECT 'resumable_upload ' || u.id FROM resumable_upload u LEFT JOIN resumable_part p ON p.resumable_id = u.id
		WHERE u.upload_id IS NULL GROUP BY u.id, u.offset_bytes
		HAVING coalesce(sum(p.size_bytes), 0) <> u.offset_bytes OR coalesce(min(p.start_bytes), 0) <> 0
			OR coalesce(max(p.start_bytes + p.size_bytes), 0) <> u.offset_bytes`},
	{Name: "a resumable upload knows how many parts it has", Query: `
		SELECT 'resumable_upload ' || u.id FROM resumable_upload u
		WHERE u.part_count <> (SELECT count(*) FROM resumable_part p WHERE p.resumable_id = u.id)`},
	{Name: "a finished resumable upload has no parts", Query: `
		SELECT 'resumable_upload ' || u.id FROM resumable_upload u WHERE u.upload_id IS NOT NULL
			AND EXISTS (SELECT 1 FROM resumable_part p WHERE p.resumable_id = u.id)`},
	{Name: "a finished resumable upload and its upload have the same person and account", Query: `
		SELECT 'resumable_upload ' || r.id FROM resumable_upload r LEFT JOIN upload u ON u.id = r.upload_id
		WHERE r.upload_id IS NOT NULL AND (u.id IS NULL OR u.person_id <> r.person_id OR u.account_id <> r.account_id)`},
}
