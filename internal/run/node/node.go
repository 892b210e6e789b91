// Package node stores the nodes of the installation. A node is one running
// process. It reports its version, its engines and their state every few
// seconds, so that any node can show the state of all of them.
//
//	starting ──▶ Report, every ReportEvery ──▶ stopping: Remove
//	                 │
//	                 └── no report for LiveFor: no longer live
//	                     no report for KeptFor: deleted by the next report of another node
package node

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"atelier/internal/base/sqldb"
)

const (
	// ReportEvery is the time between two reports of a node.
	ReportEvery = 10 * time.Second
	// LiveFor is how long after its newest report a node counts as live.
	LiveFor = 30 * time.Second
	// KeptFor is how long a node is listed after its newest report.
	KeptFor = time.Hour
)

// Node is a process of the installation, with its newest report.
type Node struct {
	ID      string
	Version string
	Roles   []string // "api", "worker" or both
	Engines []Engine // ordered by name; empty if the node executes no runs
	Started time.Time
	Seen    time.Time // time of the newest report
}

// Engine is the state of an engine on one node.
type Engine struct {
	Name      string
	Pool      string // empty if the node runs an older release
	Available bool   // the node can reach the server of the engine
	Capacity  int64  // number of runs that the node may execute at the same time
	Limit     int64  // number of runs that all nodes together may execute at the same time; 0 if there is no limit
	Running   int64  // number of runs that the node executes
	Failure   *Failure
}

// Failure is the newest failure of an engine on a node.
type Failure struct {
	Code string // error code of a run
	// Message says why the server could not be reached. It is empty for failed
	// runs, because their messages may repeat the prompt.
	Message string
	At      time.Time
}

// IsLive reports whether the node has reported recently.
func (n Node) IsLive(now time.Time) bool { return now.Sub(n.Seen) <= LiveFor }

// Reporter reports the state of this node.
type Reporter struct {
	DB   *sqldb.DB
	Log  *slog.Logger
	Node Node // without Engines and Seen
	// Engines returns the current state of the engines, ordered by name. It is
	// nil on nodes that execute no runs.
	Engines func() []Engine
}

// Run reports until ctx ends, and then removes the node.
func (r *Reporter) Run(ctx context.Context) {
	tick := time.NewTicker(ReportEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := r.ReportNow(ctx); err != nil && ctx.Err() == nil {
			r.Log.Warn("could not report the state of this node", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}

	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
	defer cancel()
	err := r.DB.Write(last, func(tx *sqldb.Tx) error { return Remove(last, tx, r.Node.ID) })
	if err != nil {
		r.Log.Warn("could not remove the report of this node", "error", err)
	}
}

// removeTime is how long a stopping node may take to remove its report.
const removeTime = 2 * time.Second

// ReportNow stores the current state of the node, and deletes nodes that have
// not reported for KeptFor.
func (r *Reporter) ReportNow(ctx context.Context) error {
	n := r.Node
	if r.Engines != nil {
		n.Engines = r.Engines()
	}
	return r.DB.Write(ctx, func(tx *sqldb.Tx) error {
		n.Seen = tx.Now
		if err := upsertNode(ctx, tx, n); err != nil {
			return fmt.Errorf("store node: %w", err)
		}
		return deleteSilent(ctx, tx, tx.Now.Add(-KeptFor))
	})
}
