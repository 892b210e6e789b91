package oauthclient

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"atelier/internal/base/sqldb"
)

func insertClient(ctx context.Context, tx *sqldb.Tx, c Client, network string) error {
	addresses, err := json.Marshal(c.RedirectURIs)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO oauth_client (id, name, uri, redirect_uris, network, created) VALUES ($1, $2, $3, $4, $5, $6)`,
		c.ID, c.Name, c.URI, string(addresses), network, sqldb.At(c.Created))
	return err
}

// ByID returns an app.
func ByID(ctx context.Context, q sqldb.Querier, id string) (c Client, err error) {
	var addresses string
	var created sqldb.Time
	err = q.QueryRow(ctx, `SELECT id, name, uri, redirect_uris, created FROM oauth_client WHERE id = $1`, id).
		Scan(&c.ID, &c.Name, &c.URI, &addresses, &created)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Client{}, ErrUnknown
	}
	if err != nil {
		return Client{}, err
	}
	c.Created = created.Time
	return c, json.Unmarshal([]byte(addresses), &c.RedirectURIs)
}

// MarkApproved records that a person has allowed an app, so that it is kept.
func MarkApproved(ctx context.Context, tx *sqldb.Tx, id string) error {
	_, err := tx.Exec(ctx, `UPDATE oauth_client SET approved = $1 WHERE id = $2 AND approved IS NULL`, sqldb.At(tx.Now), id)
	return err
}

// deleteOldest deletes the oldest apps of a network that nobody has allowed,
// except the newest ones.
func deleteOldest(ctx context.Context, tx *sqldb.Tx, network string, keep int) error {
	_, err := tx.Exec(ctx, `
		DELETE FROM oauth_client WHERE approved IS NULL AND id IN (
			SELECT id FROM oauth_client WHERE network = $1 AND approved IS NULL ORDER BY created DESC, id LIMIT 1000 OFFSET $2)`, network, keep)
	return err
}

func deleteUnused(ctx context.Context, tx *sqldb.Tx, before time.Time) (int64, error) {
	return tx.Exec(ctx, `DELETE FROM oauth_client WHERE approved IS NULL AND created < $1`, sqldb.At(before))
}
