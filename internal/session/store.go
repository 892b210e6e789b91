package session

import (
	"context"
	"crypto/subtle"
	"errors"
	"time"

	"atelier/internal/sqldb"
)

func insert(ctx context.Context, tx *sqldb.Tx, s Session, hash string, expires time.Time) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO web_session (id, hash, person_id, provider, agent, address, created, last_used, expires)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8)`,
		s.ID, hash, s.PersonID, s.Provider, s.Agent, s.Address, sqldb.At(s.Created), sqldb.At(expires))
	return err
}

func byHash(ctx context.Context, q sqldb.Querier, hash string, now time.Time) (s Session, err error) {
	var stored string
	var created, used sqldb.Time
	err = q.QueryRow(ctx, `
		SELECT s.id, s.hash, s.person_id, s.provider, s.agent, s.address, s.created, s.last_used
		FROM web_session s JOIN person p ON p.id = s.person_id
		WHERE s.hash = $1 AND s.expires > $2 AND NOT p.suspended`+q.Locking("UPDATE OF p", "SHARE OF s"), hash, sqldb.At(now)).
		Scan(&s.ID, &stored, &s.PersonID, &s.Provider, &s.Agent, &s.Address, &created, &used)
	if errors.Is(err, sqldb.ErrNoRows) || err == nil && subtle.ConstantTimeCompare([]byte(hash), []byte(stored)) != 1 {
		return Session{}, ErrNone
	}
	s.Created, s.LastUsed = created.Time, used.Time
	return s, err
}

func live(ctx context.Context, tx *sqldb.Tx, id string) (found bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM web_session WHERE id = $1 AND expires > $2)`, id, sqldb.At(tx.Now)).Scan(&found)
	return found, err
}

func touch(ctx context.Context, tx *sqldb.Tx, id, address string) error {
	_, err := tx.Exec(ctx, `UPDATE web_session SET last_used = $2, address = $3 WHERE id = $1`, id, sqldb.At(tx.Now), address)
	return err
}

func list(ctx context.Context, tx *sqldb.Tx, personID string) ([]Session, error) {
	return sqldb.All(ctx, tx, `
		SELECT id, person_id, provider, agent, address, created, last_used FROM web_session
		WHERE person_id = $1 AND expires > $2 ORDER BY created DESC, id DESC`,
		[]any{personID, sqldb.At(tx.Now)}, func(row sqldb.Scanner) (s Session, err error) {
			var created, used sqldb.Time
			err = row.Scan(&s.ID, &s.PersonID, &s.Provider, &s.Agent, &s.Address, &created, &used)
			s.Created, s.LastUsed = created.Time, used.Time
			return s, err
		})
}

func end(ctx context.Context, tx *sqldb.Tx, personID, id string) (bool, error) {
	n, err := tx.Exec(ctx, `DELETE FROM web_session WHERE id = $1 AND person_id = $2`, id, personID)
	return n == 1, err
}

func endAll(ctx context.Context, tx *sqldb.Tx, personID string) (int64, error) {
	return tx.Exec(ctx, `DELETE FROM web_session WHERE person_id = $1`, personID)
}

func sweep(ctx context.Context, tx *sqldb.Tx) error {
	_, err := tx.Exec(ctx, `DELETE FROM web_session WHERE expires <= $1`, sqldb.At(tx.Now))
	return err
}

// Checks are the invariants of this package.
var Checks = []sqldb.Check{
	{Name: "sessions are kept as SHA-256 only", Query: `
		SELECT 'web_session ' || id FROM web_session WHERE length(hash) <> 64`},
	{Name: "a deleted person is signed in nowhere", Query: `
		SELECT 'web_session ' || s.id FROM web_session s JOIN person p ON p.id = s.person_id WHERE p.deleted IS NOT NULL`},
}
