package runner_test

import (
	"context"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/run/node"
	"atelier/internal/testkit/watch"
)

// TestEnginesReportTheirState follows what a node reports about an engine whose
// server goes away and comes back.
func TestEnginesReportTheirState(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		s := &server{script: paints}
		r := build(h, s, quickProbes)
		start(h, r)
		state := func() node.Engine {
			engines := r.Engines()
			if len(engines) != 1 {
				h.Fatalf("engines = %+v, want one", engines)
			}
			return engines[0]
		}
		if e := state(); !e.Available || e.Capacity < 1 || e.Running != 0 || e.Failure != nil {
			h.Errorf("engine at the start = %+v", e)
		}

		s.away.Store(true)
		watch.Until(h.T, "the node reports the failed probe", func() bool {
			e := state()
			return !e.Available && e.Failure != nil && e.Failure.Code == string(engine.Unavailable) && e.Failure.Message == "nobody is there"
		})
		s.away.Store(false)
		watch.Until(h.T, "the node reports that the server is back", func() bool {
			e := state()
			return e.Available && e.Failure != nil
		})
	})
}

// TestEnginesCountTheirRuns counts a run while an engine works on it.
func TestEnginesCountTheirRuns(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		s := newStuck()
		r := build(h, s, nil)
		start(h, r)
		made := create(h, "cost", nil)
		receive(h, s.reached, "the run is running")
		if e := r.Engines()[0]; e.Running != 1 {
			h.Errorf("engine = %+v, want one running run", e)
		}

		close(s.free)
		ended(h, made.ID)
		watch.Until(h.T, "no run is running", func() bool { return r.Engines()[0].Running == 0 })
	})
}

// TestFailedRunsReportNoMessage: the message of a failed run may repeat its
// prompt, so a node reports only the code.
func TestFailedRunsReportNoMessage(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		refuses := script(func(context.Context, engine.Job, engine.Sink) error {
			return engine.Fail(engine.Invalid, "no giraffes")
		})
		r := build(h, refuses, nil)
		start(h, r)
		ended(h, create(h, "cost", nil).ID)
		if f := r.Engines()[0].Failure; f == nil || f.Code != string(engine.Invalid) || f.Message != "" || f.At.IsZero() {
			h.Errorf("failure = %+v, want the code without a message", f)
		}
	})
}
