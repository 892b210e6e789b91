package session

import (
	"context"
	"crypto/subtle"
	"errors"
	"time"

	"atelier/internal/base/sqldb"
)

func insertSession(ctx context.Context, tx *sqldb.Tx, s Session, hash string, expires time.Time) error {
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
		return Session{}, ErrSignedOut
	}
	s.Created = created.Time
	s.LastUsed = used.Time
	return s, err
}

func readStatus(ctx context.Context, q sqldb.Querier, id string, now time.Time) (s Status, err error) {
	var used sqldb.Time
	err = q.QueryRow(ctx, `
		SELECT s.person_id, s.provider, s.last_used, p.email, p.email_verified
		FROM web_session s JOIN person p ON p.id = s.person_id
		WHERE s.id = $1 AND s.expires > $2 AND NOT p.suspended`+q.Locking("UPDATE OF p", "SHARE OF s"), id, sqldb.At(now)).
		Scan(&s.PersonID, &s.Provider, &used, &s.Email, &s.Verified)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Status{}, ErrSignedOut
	}
	s.LastUsed = used.Time
	return s, err
}

// IsLive reports whether a session exists and has not expired. Callers check it
// in the transaction that depends on the session.
func IsLive(ctx context.Context, tx *sqldb.Tx, id string) (found bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM web_session WHERE id = $1 AND expires > $2)`, id, sqldb.At(tx.Now)).Scan(&found)
	return found, err
}

// Touch records the current time and the IP address as the last use of a
// session.
func Touch(ctx context.Context, tx *sqldb.Tx, id, address string) error {
	_, err := tx.Exec(ctx, `UPDATE web_session SET last_used = $2, address = $3 WHERE id = $1`, id, sqldb.At(tx.Now), address)
	return err
}

// List returns a person's live sessions, newest first.
func List(ctx context.Context, tx *sqldb.Tx, personID string) ([]Session, error) {
	return sqldb.All(ctx, tx, `
		SELECT `+columns+` FROM web_session
		WHERE person_id = $1 AND expires > $2 ORDER BY created DESC, id DESC`,
		[]any{personID, sqldb.At(tx.Now)}, scanSession)
}

// ListPage returns at most limit of the sessions that List returns, starting
// after the given position.
func ListPage(ctx context.Context, tx *sqldb.Tx, personID string, after *After, limit int) ([]Session, error) {
	query := `SELECT ` + columns + ` FROM web_session WHERE person_id = $1 AND expires > $2`
	args := []any{personID, sqldb.At(tx.Now), limit}
	if after != nil {
		query += ` AND (created, id) < ($4, $5)`
		args = append(args, sqldb.At(after.Created), after.ID)
	}
	return sqldb.All(ctx, tx, query+` ORDER BY created DESC, id DESC LIMIT $3`, args, scanSession)
}

const columns = `id, person_id, provider, agent, address, created, last_used`

func scanSession(row sqldb.Scanner) (s Session, err error) {
	var created, used sqldb.Time
	err = row.Scan(&s.ID, &s.PersonID, &s.Provider, &s.Agent, &s.Address, &created, &used)
	s.Created = created.Time
	s.LastUsed = used.Time
	return s, err
}

func endSession(ctx context.Context, tx *sqldb.Tx, personID, id string) (bool, error) {
	n, err := tx.Exec(ctx, `DELETE FROM web_session WHERE id = $1 AND person_id = $2`, id, personID)
	return n == 1, err
}

// EndAll ends all sessions of a person, deletes their known browsers, and
// returns the number of sessions.
func EndAll(ctx context.Context, tx *sqldb.Tx, personID string) (int64, error) {
	if _, err := tx.Exec(ctx, `DELETE FROM known_browser WHERE person_id = $1`, personID); err != nil {
		return 0, err
	}
	return tx.Exec(ctx, `DELETE FROM web_session WHERE person_id = $1`, personID)
}

// DeleteExpired deletes all sessions and known browsers that have expired.
func DeleteExpired(ctx context.Context, tx *sqldb.Tx) error {
	for _, query := range []string{`DELETE FROM web_session WHERE expires <= $1`, `DELETE FROM known_browser WHERE expires <= $1`} {
		if _, err := tx.Exec(ctx, query, sqldb.At(tx.Now)); err != nil {
			return err
		}
	}
	return nil
}

func insertKnown(ctx context.Context, tx *sqldb.Tx, id, personID, hash string, expires time.Time) error {
	_, err := tx.Exec(ctx, `INSERT INTO known_browser (id, person_id, hash, expires) VALUES ($1, $2, $3, $4)`, id, personID, hash, sqldb.At(expires))
	return err
}

func dropKnown(ctx context.Context, tx *sqldb.Tx, personID, hash string) (had bool, err error) {
	n, err := tx.Exec(ctx, `DELETE FROM known_browser WHERE person_id = $1 AND hash = $2`, personID, hash)
	return n == 1, err
}

// trimKnown limits the number of a person's known browsers to most. It deletes
// the browsers that expire soonest.
func trimKnown(ctx context.Context, tx *sqldb.Tx, personID string, most int) error {
	_, err := tx.Exec(ctx, `
		DELETE FROM known_browser WHERE id IN (
			SELECT id FROM known_browser WHERE person_id = $1 ORDER BY expires DESC, id DESC LIMIT 1000 OFFSET $2)`,
		personID, int64(most))
	return err
}

func knownID(ctx context.Context, tx *sqldb.Tx, personID, hash string) (id string, err error) {
	err = tx.QueryRow(ctx, `SELECT id FROM known_browser WHERE person_id = $1 AND hash = $2 AND expires > $3`,
		personID, hash, sqldb.At(tx.Now)).Scan(&id)
	if errors.Is(err, sqldb.ErrNoRows) {
		return "", nil
	}
	return id, err
}

// Checks are the invariants of this package's tables, as queries for the rows
// that violate them.
var Checks = []sqldb.Check{
	{Name: "sessions are stored only as SHA-256", Query: `
		SELECT 'web_session ' || id FROM web_session WHERE length(hash) <> 64`},
	{Name: "known browsers are stored only as SHA-256", Query: `
		SELECT 'known_browser ' || id FROM known_browser WHERE length(hash) <> 64`},
	{Name: "a deleted person has no known browser", Query: `
		SELECT 'known_browser ' || k.id FROM known_browser k JOIN person p ON p.id = k.person_id WHERE p.deleted IS NOT NULL`},
	{Name: "a deleted person has no session", Query: `
		SELECT 'web_session ' || s.id FROM web_session s JOIN person p ON p.id = s.person_id WHERE p.deleted IS NOT NULL`},
}

// LastUsed returns, by person id, when people last used one of their browser sessions.
// People without such a use are left out. There must be at least one id.
func LastUsed(ctx context.Context, tx *sqldb.Tx, personIDs []string) (map[string]sqldb.Time, error) {
	in, args := sqldb.In(personIDs)
	return sqldb.Map[string, sqldb.Time](ctx, tx, `
		SELECT person_id, max(last_used) FROM web_session WHERE person_id IN `+in+` AND last_used IS NOT NULL GROUP BY person_id`, args)
}
