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

// setupRow is the name under which the hash of a set-up token is kept.
const setupRow = "setup/"

func insertSetup(ctx context.Context, tx *sqldb.Tx, hash string) error {
	_, err := tx.Exec(ctx, `INSERT INTO deployment (name, value) VALUES ($1, '')`, setupRow+hash)
	return err
}

func hasSetup(ctx context.Context, tx *sqldb.Tx, hash string) (found bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM deployment WHERE name = $1)`, setupRow+hash).Scan(&found)
	return found, err
}

func deleteSetups(ctx context.Context, tx *sqldb.Tx) error {
	_, err := tx.Exec(ctx, `DELETE FROM deployment WHERE name LIKE '`+setupRow+`%'`)
	return err
}

// Checks are the invariants of this package.
var Checks = []sqldb.Check{
	{Name: "addresses are compared in lower case", Query: `
		SELECT 'person ' || id FROM person WHERE email_key <> lower(email_key)`},
	{Name: "no set-up link outlives the first person", Query: `
		SELECT 'deployment ' || name FROM deployment WHERE name LIKE '` + setupRow + `%' AND EXISTS (SELECT 1 FROM person)`},
}
