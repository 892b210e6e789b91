package person

import (
	"context"

	"atelier/internal/base/seal"
	"atelier/internal/base/sqldb"
)

// Sealed is the table of people. The columns that determine who can sign in are
// protected against manipulation by a keyed hash.
var Sealed = seal.Table{
	Name:     "person",
	Key:      []string{"id"},
	Columns:  []string{"email_key", "email_verified", "password_hash", "suspended", "deleted"},
	Booleans: []string{"email_verified", "suspended"},
}

// execSealed runs a statement that changes the row of the person with the given
// id, renews the row's seal (keyed hash), and returns the number of changed
// rows.
func execSealed(ctx context.Context, tx *sqldb.Tx, id, query string, args ...any) (n int64, err error) {
	err = Sealed.ChangeRows(ctx, tx, `id = $1`, []any{id}, func() (err error) {
		n, err = tx.Exec(ctx, query, args...)
		return err
	})
	return n, err
}
