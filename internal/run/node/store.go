package node

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"atelier/internal/base/sqldb"
)

// maxNodes is the maximum number of nodes that List returns.
const maxNodes = 200

// storedEngine is the stored form of an Engine.
type storedEngine struct {
	Name      string         `json:"name"`
	Pool      string         `json:"pool,omitempty"`
	Available bool           `json:"available"`
	Capacity  int64          `json:"capacity"`
	Limit     int64          `json:"limit,omitempty"`
	Running   int64          `json:"running"`
	Failure   *storedFailure `json:"failure,omitempty"`
}

// storedFailure is the stored form of a Failure.
type storedFailure struct {
	Code    string    `json:"code"`
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}

func upsertNode(ctx context.Context, tx *sqldb.Tx, n Node) error {
	engines := make([]storedEngine, len(n.Engines))
	for i, e := range n.Engines {
		engines[i] = storedEngine{
			Name:      e.Name,
			Pool:      e.Pool,
			Available: e.Available,
			Capacity:  e.Capacity,
			Limit:     e.Limit,
			Running:   e.Running,
			Failure:   (*storedFailure)(e.Failure),
		}
	}
	text, err := json.Marshal(engines)
	if err != nil {
		return err
	}

	_, err = tx.Exec(ctx, `
		INSERT INTO node (id, version, roles, engines, started, seen) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (id) DO UPDATE SET engines = excluded.engines, seen = excluded.seen`,
		n.ID, n.Version, strings.Join(n.Roles, ","), string(text), sqldb.At(n.Started), sqldb.At(n.Seen))
	return err
}

// Remove deletes a node that has stopped.
func Remove(ctx context.Context, tx *sqldb.Tx, id string) error {
	_, err := tx.Exec(ctx, `DELETE FROM node WHERE id = $1`, id)
	return err
}

// deleteSilent deletes the nodes whose newest report is older than the given
// time.
func deleteSilent(ctx context.Context, tx *sqldb.Tx, before time.Time) error {
	_, err := tx.Exec(ctx, `DELETE FROM node WHERE seen < $1`, sqldb.At(before))
	return err
}

// List returns the nodes that have reported within KeptFor, newest first.
func List(ctx context.Context, tx *sqldb.Tx) ([]Node, error) {
	return sqldb.All(ctx, tx, `SELECT id, version, roles, engines, started, seen FROM node WHERE seen >= $1 ORDER BY started DESC, id LIMIT $2`,
		[]any{sqldb.At(tx.Now.Add(-KeptFor)), int64(maxNodes)}, scanNode)
}

func scanNode(row sqldb.Scanner) (n Node, err error) {
	var roles, engines string
	var started, seen sqldb.Time
	if err := row.Scan(&n.ID, &n.Version, &roles, &engines, &started, &seen); err != nil {
		return n, err
	}
	n.Roles = strings.Split(roles, ",")
	n.Started = started.Time
	n.Seen = seen.Time

	var stored []storedEngine
	if err := json.Unmarshal([]byte(engines), &stored); err != nil {
		return n, fmt.Errorf("decode the engines of node %s: %w", n.ID, err)
	}
	for _, e := range stored {
		n.Engines = append(n.Engines, Engine{
			Name:      e.Name,
			Pool:      e.Pool,
			Available: e.Available,
			Capacity:  e.Capacity,
			Limit:     e.Limit,
			Running:   e.Running,
			Failure:   (*Failure)(e.Failure),
		})
	}
	return n, nil
}
