// Package runwait waits for the end of runs, for interfaces whose responses
// contain the results of a run.
package runwait

import (
	"context"
	"errors"
	"sync"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/pubsub"
	"atelier/internal/run/generation"
	"atelier/internal/web/api/rest"
)

// RepeatGrace is the Grace of clients that send the request again when they have
// lost their connection, and then wait for the same run.
const RepeatGrace = 5 * time.Second

// ErrLeft is returned if the client has left before the end of its run.
var ErrLeft = errors.New("the client has left before the end of its run")

// Waiter waits for the end of runs.
type Waiter struct {
	Runs *generation.Service
	Hub  *pubsub.Hub // notifies of changes of runs
	// Limit is the longest time that a client waits.
	Limit time.Duration

	mu      sync.Mutex
	clients map[string]int // number of clients of this node that wait for a run
}

// Client is a client that waits for the end of a run.
type Client struct {
	Call *rest.Call
	// Stopping is closed when this node stops.
	Stopping <-chan struct{}
	// KeepRun says that the run goes on after the client has left.
	KeepRun bool
	// Grace is the time after which the run of a client that has left is
	// cancelled.
	Grace time.Duration
	// See is called with each state of the run, the last one included. nil
	// means that the client sees only the last one.
	See func(generation.Record) error
}

// Wait waits until a run has ended. If ctx ends before, the client has left,
// and the run is cancelled a little later unless another client waits for it.
func (w *Waiter) Wait(ctx context.Context, c Client, id string) (generation.Record, error) {
	changes, unfollow := w.Hub.Follow(id)
	defer unfollow()
	w.count(id, 1)
	rec, err := w.follow(ctx, c, id, changes)
	alone := w.count(id, -1) == 0
	if errors.Is(err, ErrLeft) && alone && !c.KeepRun {
		go w.cancelAbandoned(context.WithoutCancel(ctx), c, id)
	}
	return rec, err
}

func (w *Waiter) follow(ctx context.Context, c Client, id string, changes <-chan struct{}) (generation.Record, error) {
	limit := time.NewTimer(w.Limit)
	poll := time.NewTicker(rest.PollInterval)
	reauthorize := time.NewTicker(rest.ReauthorizeInterval)
	defer limit.Stop()
	defer poll.Stop()
	defer reauthorize.Stop()
	for {
		rec, err := w.Runs.GetStatus(ctx, c.Call.Principal.AccountID, id)
		if ctx.Err() != nil {
			return rec, ErrLeft
		}
		if err == nil && c.See != nil {
			err = c.See(rec)
		}
		if err != nil || rec.State.IsEnded() {
			return rec, err
		}
		select {
		case <-ctx.Done():
			return rec, ErrLeft
		case <-c.Stopping:
			return rec, fault.New(fault.Unavailable, "This node of the service stops. The run "+id+" goes on. Send the request again to wait for it.").After(time.Second)
		case <-limit.C:
			return rec, fault.New(fault.Unavailable, "The run "+id+" has not ended yet and goes on. Send the request again to wait for it.").With("run", id).After(time.Second)
		case <-reauthorize.C:
			if err := c.Call.Reauthorize(ctx); err != nil {
				return rec, err
			}
		case <-changes:
		case <-poll.C:
		}
	}
}

// count changes the number of clients that wait for a run, and returns it.
func (w *Waiter) count(id string, change int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.clients == nil {
		w.clients = map[string]int{}
	}
	w.clients[id] += change
	n := w.clients[id]
	if n == 0 {
		delete(w.clients, id)
	}
	return n
}

// cancelAbandoned cancels the run of a client that has left, unless another
// client waits for it by then. If this node stops before, the run goes on.
func (w *Waiter) cancelAbandoned(ctx context.Context, c Client, id string) {
	select {
	case <-c.Stopping:
		return
	case <-time.After(c.Grace):
	}
	if w.count(id, 0) > 0 {
		return
	}
	// The run may have ended, or the caller may have lost access to it. Then
	// there is nothing to cancel.
	_, _, _ = w.Runs.CancelRun(ctx, c.Call.Principal, id)
}
