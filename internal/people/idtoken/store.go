package idtoken

import (
	"context"
	"time"

	"atelier/internal/base/sqldb"
)

// currentKey returns the key that signs tokens.
func currentKey(ctx context.Context, tx *sqldb.Tx) (k storedKey, err error) {
	err = tx.QueryRow(ctx, `SELECT id, public, private FROM signing_key WHERE replaced IS NULL`).Scan(&k.kid, &k.public, &k.private)
	return k, err
}

// insertKey adds a signing key if none exists. The unique index
// signing_key_current permits only one signing key; the later of two concurrent
// transactions waits for the earlier one.
func insertKey(ctx context.Context, tx *sqldb.Tx, k storedKey) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO signing_key (id, public, private, created, seal) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT DO NOTHING`, k.kid, k.public, k.private, sqldb.At(tx.Now), Sealed.SealOf(tx, k.kid, k.public, k.private))
	return err
}

// retireKey marks the signing key as replaced.
func retireKey(ctx context.Context, tx *sqldb.Tx) error {
	_, err := tx.Exec(ctx, `UPDATE signing_key SET replaced = $1 WHERE replaced IS NULL`, sqldb.At(tx.Now))
	return err
}

// replacedAfter returns the signing key and the keys that were replaced after
// the time since, newest first, without the private keys.
func replacedAfter(ctx context.Context, tx *sqldb.Tx, since time.Time) ([]storedKey, error) {
	return sqldb.All(ctx, tx, `
		SELECT id, public FROM signing_key WHERE replaced IS NULL OR replaced > $1
		ORDER BY created DESC, id`, []any{sqldb.At(since)}, func(row sqldb.Scanner) (k storedKey, err error) {
		err = row.Scan(&k.kid, &k.public)
		return k, err
	})
}

func deleteReplaced(ctx context.Context, tx *sqldb.Tx, before time.Time) error {
	_, err := tx.Exec(ctx, `DELETE FROM signing_key WHERE replaced < $1`, sqldb.At(before))
	return err
}

// Checks are the invariants of this package's tables, as queries for the rows
// that violate them.
var Checks = []sqldb.Check{
	{Name: "exactly one signing key is in use", Query: `
		SELECT CAST(count(*) - count(replaced) AS TEXT) || ' of ' || CAST(count(*) AS TEXT) || ' keys sign' FROM signing_key
		HAVING count(*) > 0 AND count(*) - count(replaced) <> 1`},
	{Name: "public keys contain no private parts", Query: `
		SELECT 'signing_key ' || id FROM signing_key WHERE public LIKE '%"d"%'`},
}
