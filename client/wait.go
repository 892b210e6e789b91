package client

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Watch has functions that Wait calls while it waits; each may be nil. They are
// called one after the other.
type Watch struct {
	// Status gets the whole record when its stage or its place in the queue
	// changes.
	Status func(*Run)
	// Progress gets the stage, and the completed fraction from 0 to 1, which is
	// nil if it is unknown.
	Progress func(RunProgress)
	// Preview gets an unfinished picture, which replaces the one before.
	Preview func(Preview)
	// Step gets a run of a step of a flow when it was created, when its stage
	// changes and when it ends, with its results. Status gets all steps at once.
	Step func(RunStep)
}

// Wait waits until a run has ended and returns its final state. A run that
// failed or was cancelled is no error of Wait; see Run.Err.
//
// It reads the run's events. When they break off, it asks for the state of the
// run, waits as long as the service says, and connects again; at once if the
// service says that one of its nodes stops. It goes on while
// the service restarts. Besides the context, only failures that no wait can cure
// end it: an answer that the run cannot be read, or an untrusted certificate.
func (g *RunsCalls) Wait(ctx context.Context, id string, w Watch) (*Run, error) {
	stream := &eventStream{
		client:  g.client,
		request: &request{method: http.MethodGet, path: runPath(id) + "/events", team: true},
	}
	var ended *Run
	for failed := 0; ; {
		err := stream.connect(ctx, func(e Event) bool {
			failed = 0
			ended = g.handleEvent(e, w)
			return ended == nil
		})
		if ended != nil {
			return ended, nil
		}
		if stream.mayReconnectAtOnce(err) && ctx.Err() == nil {
			continue
		}
		if isFinal(err) || ctx.Err() != nil {
			return nil, contextOr(ctx, err)
		}

		// The stream broke off, or is not available. The record is
		// authoritative.
		run, err := g.getOnce(ctx, id)
		if err == nil && run.HasEnded() {
			return run, nil
		}
		if isFinal(err) || ctx.Err() != nil {
			return nil, contextOr(ctx, err)
		}
		failed++
		wait := g.client.retry.backOff(failed)
		if err == nil {
			failed = 0
			wait = max(wait, time.Duration(run.RetryAfterSeconds)*time.Second)
			if w.Status != nil {
				w.Status(run)
			}
		} else if e, ok := errors.AsType[*Error](err); ok {
			wait = max(wait, e.RetryAfter)
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// isFinal reports whether an error will be the same at the next attempt.
func isFinal(err error) bool {
	return err != nil && !errors.Is(err, errStreamDone) && !mayRepeat(err, true)
}

// getOnce reads the record of a run with a single request.
func (g *RunsCalls) getOnce(ctx context.Context, id string) (*Run, error) {
	single := *g.client
	single.retry.Attempts = 1
	single.Calls = newCalls(&single)
	run, err := single.Runs.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	run.client = g.client
	return run, nil
}

// handleEvent tells the watch of an event. It returns the final state of the
// run if the event is the last one. An event that cannot be decoded is skipped:
// the record has the same.
func (g *RunsCalls) handleEvent(e Event, w Watch) *Run {
	switch e.Name {
	case "status", "done":
		var record RunRecord
		if e.Decode(&record) != nil {
			return nil
		}
		run := g.newRun(&record)
		if e.Name == "done" {
			return run
		}
		if w.Status != nil {
			w.Status(run)
		}
	case "progress":
		var p RunProgress
		if e.Decode(&p) == nil && w.Progress != nil {
			w.Progress(p)
		}
	case "preview":
		var p Preview
		if e.Decode(&p) == nil && w.Preview != nil {
			w.Preview(p)
		}
	case "step":
		var s RunStep
		if e.Decode(&s) == nil && w.Step != nil {
			w.Step(s)
		}
	}
	return nil
}
