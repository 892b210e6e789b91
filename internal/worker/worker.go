// Package worker says what a node does in the background.
package worker

import (
	"context"
	"time"

	"atelier/internal/blob"
	"atelier/internal/catalog"
	"atelier/internal/queue"
	"atelier/internal/sqldb"
)

// Parts are what the work is done on.
type Parts struct {
	DB    *sqldb.DB
	Blobs blob.Store
	Now   func() time.Time
}

// leftoverAge is when an unfinished file counts as abandoned.
const leftoverAge = time.Hour

// Handlers gives every kind of background job.
func Handlers(p Parts) []queue.Handler {
	// A job that failed comes by itself again, so none is retried.
	return []queue.Handler{
		{
			Kind: "catalog-averages", Every: time.Minute, Timeout: time.Minute,
			Do: func(ctx context.Context, _ queue.Work) error { return catalog.UpdateAverages(ctx, p.DB) },
		},
		{
			Kind: "blob-sweep", Every: time.Hour, Timeout: 10 * time.Minute,
			Do: func(ctx context.Context, _ queue.Work) error { return p.Blobs.Sweep(ctx, p.Now().Add(-leftoverAge)) },
		},
		{
			Kind: "database-upkeep", Every: time.Hour, Timeout: 5 * time.Minute,
			Do: func(ctx context.Context, _ queue.Work) error { return p.DB.Maintain(ctx) },
		},
	}
}
