package keyring

import (
	"context"

	"atelier/internal/base/sqldb"
)

// settleFingerprint stores the fingerprint mine if the database has none, and
// returns the stored fingerprint.
func settleFingerprint(ctx context.Context, tx *sqldb.Tx, mine string) (string, error) {
	_, err := tx.Exec(ctx, `INSERT INTO deployment (name, value) VALUES ('secret_fingerprint', $1) ON CONFLICT (name) DO NOTHING`, mine)
	if err != nil {
		return "", err
	}
	return readFingerprint(ctx, tx)
}

func readFingerprint(ctx context.Context, tx *sqldb.Tx) (string, error) {
	return sqldb.One[string](ctx, tx, `SELECT value FROM deployment WHERE name = 'secret_fingerprint'`)
}
