package credential

import (
	"context"

	"atelier/internal/sqldb"
)

func insert(ctx context.Context, tx *sqldb.Tx, t Token, personID, hash string) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO access_token (id, person_id, name, hash, hint, created)
		VALUES ($1, $2, $3, $4, $5, $6)`,
		t.ID, personID, t.Name, hash, t.Hint, sqldb.At(t.Created))
	return err
}

func byHash(ctx context.Context, db *sqldb.DB, hash string) (c Caller, stored string, err error) {
	c.Kind = PersonalToken
	err = db.QueryRow(ctx, `SELECT id, person_id, hash FROM access_token WHERE hash = $1`, hash).
		Scan(&c.TokenID, &c.PersonID, &stored)
	return c, stored, err
}

// Checks are the invariants of this package.
var Checks = []sqldb.Check{
	{Name: "tokens are kept as SHA-256 only", Query: `
		SELECT 'access_token ' || id FROM access_token WHERE length(hash) <> 64`},
	{Name: "every token belongs to somebody", Query: `
		SELECT 'access_token ' || t.id FROM access_token t LEFT JOIN person p ON p.id = t.person_id WHERE p.id IS NULL`},
}
