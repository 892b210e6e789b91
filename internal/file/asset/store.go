package asset

import (
	"context"
	"errors"
	"strconv"
	"time"

	"atelier/internal/base/sqldb"
)

const columns = `a.id, a.account_id, a.type, a.mime_type, a.size_bytes, a.sha256,
	coalesce(a.width, 0), coalesce(a.height, 0), coalesce(a.duration_ms, 0), a.blurhash, a.blob, a.thumb, a.preview, a.created, a.gone, a.stored_bytes - a.size_bytes`

// scanAsset scans a row into a. others are the destinations of the columns that
// precede the asset's columns.
func scanAsset(row sqldb.Scanner, a *Asset, others ...any) error {
	var ms int64
	var created, gone sqldb.Time
	err := row.Scan(append(others, &a.ID, &a.AccountID, &a.Type, &a.MimeType, &a.Size, &a.SHA256,
		&a.Width, &a.Height, &ms, &a.Blurhash, &a.Blob, &a.Thumb, &a.Preview, &created, &gone, &a.PictureBytes)...)
	a.Duration = time.Duration(ms) * time.Millisecond
	a.Created = created.Time
	a.Gone = gone.Time
	return err
}

// nullIfZero returns n, or nil if n is 0, for columns that store 0 as NULL.
func nullIfZero(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

func insertAsset(ctx context.Context, tx *sqldb.Tx, a Asset) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO asset (id, account_id, type, mime_type, size_bytes, sha256, width, height, duration_ms, blurhash, blob, thumb, preview, created,
			stored_bytes, seal)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
		a.ID, a.AccountID, a.Type, a.MimeType, a.Size, a.SHA256, nullIfZero(int64(a.Width)), nullIfZero(int64(a.Height)), nullIfZero(a.Duration.Milliseconds()),
		a.Blurhash, a.Blob, a.Thumb, a.Preview, sqldb.At(a.Created), a.StoredBytes(),
		SealedAssets.SealOf(tx, a.ID, a.AccountID, a.MimeType, strconv.FormatInt(a.Size, 10), a.SHA256, a.Blob, a.Thumb, a.Preview))
	return err
}

func byID(ctx context.Context, tx *sqldb.Tx, id string) (a Asset, err error) {
	err = scanAsset(tx.QueryRow(ctx, `SELECT `+columns+` FROM asset a WHERE a.id = $1`, id), &a)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Asset{}, errNoAsset
	}
	return a, err
}

func insertUpload(ctx context.Context, tx *sqldb.Tx, u Upload) error {
	_, err := tx.Exec(ctx, `INSERT INTO upload (id, account_id, person_id, asset_id, name, created, seal) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		u.ID, u.AccountID, u.PersonID, u.Asset.ID, u.Name, sqldb.At(u.Created), SealedUploads.SealOf(tx, u.ID, u.AccountID, u.PersonID, u.Asset.ID))
	return err
}

// liveUploads is the query for the uploads of account $1 that are not deleted.
const liveUploads = `
	SELECT u.id, u.account_id, u.person_id, u.name, u.created, ` + columns + `
	FROM upload u JOIN asset a ON a.id = u.asset_id
	WHERE u.account_id = $1 AND u.deleted IS NULL`

func scanUpload(row sqldb.Scanner) (u Upload, err error) {
	var created sqldb.Time
	err = scanAsset(row, &u.Asset, &u.ID, &u.AccountID, &u.PersonID, &u.Name, &created)
	u.Created = created.Time
	return u, err
}

func uploadByID(ctx context.Context, tx *sqldb.Tx, accountID, id string) (Upload, error) {
	u, err := scanUpload(tx.QueryRow(ctx, liveUploads+` AND u.id = $2`, accountID, id))
	if errors.Is(err, sqldb.ErrNoRows) {
		return Upload{}, ErrNoUpload
	}
	return u, err
}

// Uploads returns at most limit uploads of an account, newest first. medium is
// the type of their files; "" means all types. after is the position of the
// last upload of the previous page, or nil for the first page.
func Uploads(ctx context.Context, tx *sqldb.Tx, accountID, medium string, after *Cursor, limit int) ([]Upload, error) {
	args := sqldb.Args{accountID}
	query := liveUploads
	if medium != "" {
		query += ` AND a.type = ` + args.Add(medium)
	}
	if after != nil {
		query += ` AND (u.created, u.id) < (` + args.Add(after.Created.UnixMicro()) + `, ` + args.Add(after.ID) + `)`
	}
	return sqldb.All(ctx, tx, query+` ORDER BY u.created DESC, u.id DESC LIMIT `+args.Add(limit), args, scanUpload)
}

func deleteUpload(ctx context.Context, tx *sqldb.Tx, accountID, id string) (deleted bool, err error) {
	n, err := tx.Exec(ctx, `UPDATE upload SET deleted = $3 WHERE account_id = $1 AND id = $2 AND deleted IS NULL`, accountID, id, sqldb.At(tx.Now))
	return n == 1, err
}

// Release marks files as deleted. It returns the number of released bytes for
// each account, without files that were already marked.
func Release(ctx context.Context, tx *sqldb.Tx, assetIDs []string) (map[string]int64, error) {
	if len(assetIDs) == 0 {
		return nil, nil
	}

	in, args := sqldb.In(assetIDs, sqldb.At(tx.Now))
	released := map[string]int64{}
	err := tx.EachRow(ctx, `UPDATE asset SET released = $1 WHERE released IS NULL AND id IN `+in+` RETURNING account_id, stored_bytes`, args,
		func(row sqldb.Scanner) error {
			var accountID string
			var bytes int64
			err := row.Scan(&accountID, &bytes)
			released[accountID] += bytes
			return err
		})
	return released, err
}

// Reclaim marks a deleted file as not deleted, if it still has content, and
// returns its size in bytes.
func Reclaim(ctx context.Context, tx *sqldb.Tx, assetID string) (bytes int64, err error) {
	err = tx.QueryRow(ctx, `UPDATE asset SET released = NULL WHERE id = $1 AND released IS NOT NULL AND gone IS NULL RETURNING stored_bytes`, assetID).Scan(&bytes)
	return bytes, err
}

// Checks are queries that find rows violating this package's invariants.
var Checks = []sqldb.Check{
	{Name: "the file of an upload belongs to the account of the upload", Query: `
		SELECT 'upload ' || u.id FROM upload u LEFT JOIN asset a ON a.id = u.asset_id
		WHERE a.id IS NULL OR a.account_id <> u.account_id`},
	{Name: "the content of an upload exists until the upload is deleted", Query: `
		SELECT 'upload ' || u.id FROM upload u JOIN asset a ON a.id = u.asset_id WHERE u.deleted IS NULL AND a.gone IS NOT NULL`},
	{Name: "a file has a key and a SHA-256", Query: `
		SELECT 'asset ' || id FROM asset WHERE blob = '' OR length(sha256) <> 64 OR sha256 <> lower(sha256)`},
	{Name: "a file's dimensions and duration are positive", Query: `
		SELECT 'asset ' || id FROM asset WHERE width <= 0 OR height <= 0 OR duration_ms <= 0 OR (width IS NULL) <> (height IS NULL)`},
}
