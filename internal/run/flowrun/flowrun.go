// Package flowrun makes flows go on: it looks for flows whose next steps must be
// decided, and has package generation decide.
//
//	flow created, step ended, flow cancelled ──▶ due ──Wake, or once a second──▶ AdvanceFlow
//
// Every node does this. If several find the same flow, the database lets one
// decide; if a node dies, another finds what is due.
package flowrun

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"atelier/internal/base/dispatch"
	"atelier/internal/base/sqldb"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
)

const (
	lookEvery = time.Second
	batch     = 100 // flows that one query returns
	parallel  = 4   // flows that are decided about at the same time
)

// Decider makes flows go on.
type Decider struct {
	DB   *sqldb.DB
	Runs *generation.Service
	Log  *slog.Logger
	Loop *dispatch.Loop // woken when a flow becomes due on this node
}

// Run decides about flows until ctx ends.
func (d *Decider) Run(ctx context.Context) {
	d.Loop.Run(ctx.Done(), func() time.Duration { return d.DecideDue(ctx) })
}

// DecideDue decides about the flows that are due now, and returns when to look
// again.
func (d *Decider) DecideDue(ctx context.Context) (wait time.Duration) {
	var ids []string
	var next time.Time
	err := d.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		ids, next, err = run.ListDueFlows(ctx, tx, batch)
		return err
	})
	if err != nil {
		if ctx.Err() == nil {
			d.Log.Warn("could not look for flows", "error", err)
		}
		return lookEvery
	}
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, id := range ids {
		group.Go(func() error { d.decide(ctx, id); return nil })
	}
	_ = group.Wait() // decide returns no error
	switch {
	case len(ids) == batch:
		return 0
	case !next.IsZero():
		return min(lookEvery, max(next.Sub(d.DB.Now()), 0))
	}
	return lookEvery
}

// decide decides about one flow. If that fails, the flow is due again later.
func (d *Decider) decide(ctx context.Context, id string) {
	err := d.Runs.AdvanceFlow(ctx, id)
	if err == nil || ctx.Err() != nil {
		return
	}
	d.Log.Warn("could not decide about the next steps of a flow; will retry", "run", id, "error", err)
	err = d.DB.Write(ctx, func(tx *sqldb.Tx) error { return run.DelayFlow(ctx, tx, id) })
	if err != nil && ctx.Err() == nil {
		d.Log.Warn("could not delay a flow; it stays due", "run", id, "error", err)
	}
}
