package person

import (
	"context"
	"errors"

	"atelier/internal/fault"
	"atelier/internal/sqldb"
)

// insert adds the row unless the address is taken.
func insert(ctx context.Context, tx *sqldb.Tx, p Person, hash string) (fresh bool, err error) {
	n, err := tx.Exec(ctx, `
		INSERT INTO person (id, email, email_key, email_verified, password_hash, created)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (email_key) DO NOTHING`,
		p.ID, p.Email, emailKey(p.Email), p.EmailVerified, hash, sqldb.At(p.Created))
	return n == 1, err
}

func byEmail(ctx context.Context, tx *sqldb.Tx, key string) (p Person, err error) {
	var created sqldb.Time
	err = tx.QueryRow(ctx, `SELECT id, email, email_verified, created FROM person WHERE email_key = $1`, key).
		Scan(&p.ID, &p.Email, &p.EmailVerified, &created)
	if errors.Is(err, sqldb.ErrNoRows) {
		return p, fault.New(fault.NotFound, "Nobody here has this address.")
	}
	p.Created = created.Time
	return p, err
}

func exists(ctx context.Context, tx *sqldb.Tx) (found bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM person)`).Scan(&found)
	return found, err
}

// Checks are the invariants of this package.
var Checks = []sqldb.Check{
	{Name: "addresses are compared in lower case", Query: `
		SELECT 'person ' || id FROM person WHERE email_key <> lower(email_key)`},
}
