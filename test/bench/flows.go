package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// pass is noop with a field for a picture, so that one run can need the result
// of another.
const pass = `name: Pass
description: Makes a tiny picture at once, for measuring only.
tags: [image]
price: {type: COST, tokens: 1}
output: {type: IMG, mime_types: [image/png]}
engine: {name: script}
fields: [{key: script, type: TEXT_AREA, label: Script}, {key: picture, type: IMG, label: Picture}]
`

// Sizes of the part flows.
const (
	flowSteps   = 3
	manySteps   = 10
	manyFlows   = 100 // created at once
	flowRounds  = 5   // of each side, where a round takes seconds
	latencyRuns = 100
)

// Names of the flows, after what their steps need.
const (
	threeInRow = "Three in a row"
	tenInRow   = "Ten in a row"
	tenAtOnce  = "Ten at once"
)

// flowTool is a flow whose steps run the tool pass. In a row, each needs the
// result of the one before.
func flowTool(name string, steps int, inRow bool) string {
	lines := []string{
		"name: " + name,
		"description: Makes tiny pictures, for measuring only.",
		"tags: [image]",
		"output: {type: IMG, mime_types: [image/png]}",
		"fields: [{key: script, type: TEXT_AREA, label: Script}]",
		"engine:",
		"  name: flow",
		"  with:",
		"    steps:",
	}
	for i := range steps {
		inputs := "{}"
		if inRow && i > 0 {
			inputs = fmt.Sprintf("{picture: {step: s%d}}", i-1)
		}
		lines = append(lines, fmt.Sprintf("      - {id: s%d, tool: pass, inputs: %s}", i, inputs))
	}
	return strings.Join(lines, "\n") + "\n"
}

// flows measures flows against separate runs of the same tools.
func (b *bench) flows(ctx context.Context) error {
	if err := b.flowsOn(ctx, "SQLite", ""); err != nil {
		return err
	}
	return b.onPostgres(ctx, func(address string) error { return b.flowsOn(ctx, "PostgreSQL", address) })
}

func (b *bench) flowsOn(ctx context.Context, where, database string) error {
	s, err := b.serve(ctx, "flows-"+where, settings{
		tags: "failpoint",
		tools: map[string]string{
			"tags.yaml":  tags,
			"pass.yaml":  pass,
			"three.yaml": flowTool(threeInRow, flowSteps, true),
			"row.yaml":   flowTool(tenInRow, manySteps, true),
			"once.yaml":  flowTool(tenAtOnce, manySteps, false),
		},
		database: database,
	})
	if err != nil {
		return err
	}
	defer s.stop()
	people, err := gather(ctx, s, connections)
	if err != nil {
		return err
	}
	if err := b.compareFlows(s, people, where); err != nil {
		return err
	}
	for _, name := range []string{tenAtOnce, tenInRow} {
		if err := b.compareMany(ctx, s, people, name, where); err != nil {
			return err
		}
	}
	return s.check(ctx)
}

// compareFlows measures flows of three steps against three runs, each with the
// result of the one before: one after the other, and with many clients.
func (b *bench) compareFlows(s *server, people []member, where string) error {
	j, err := s.job(people[0].token, threeInRow, `{}`)
	if err != nil {
		return err
	}
	single, err := s.job(people[0].token, "Pass", `{}`)
	if err != nil {
		return err
	}
	runFlow := func(f *follower, _ target) error {
		_, _, err := f.run()
		return err
	}
	runSeparate := func(f *follower, t target) error { return runChain(f, t, single, flowSteps) }
	flows := s.creates(people, j)
	separate := s.creates(people, single)
	for _, c := range []struct {
		name string
		all  []target
		do   func(*follower, target) error
	}{
		{fmt.Sprintf("create to the event done of a flow of %d steps that do nothing (%s)", flowSteps, where), flows, runFlow},
		{fmt.Sprintf("first create to the last event done of %d runs of the same tool, each with the result before", flowSteps), separate, runSeparate},
	} {
		took, err := timeEach(c.all[0], latencyRuns, c.do)
		if err != nil {
			return err
		}
		times(c.name, "times", took)
	}
	for _, n := range []int{1, connections} {
		at := fmt.Sprintf("%d at a time (%s)", n, where)
		a := side{fmt.Sprintf("flows of %d steps that do nothing, %s", flowSteps, at), together(flows[:n], runFlow)}
		base := side{fmt.Sprintf("the same as %d separate runs, each with the result before", flowSteps), together(separate[:n], runSeparate)}
		if err := b.compare("flows/s", a, base, 0); err != nil {
			return err
		}
	}
	return nil
}

// runChain creates runs and follows each to its end, one after the other. Each
// gets the result of the one before.
func runChain(f *follower, t target, j job, n int) error {
	for range n {
		t.body = j.payload()
		done, err := f.finish(t.request())
		if err != nil {
			return err
		}
		var ended struct{ Outputs []struct{ ID string } }
		if err := json.Unmarshal([]byte(done.data), &ended); err != nil {
			return err
		}
		if len(ended.Outputs) != 1 {
			return fmt.Errorf("a run ended with %d results", len(ended.Outputs))
		}
		j.inputs = fmt.Sprintf(`{"picture": {"kind": "LIBRARY_REF", "id": %q}}`, ended.Outputs[0].ID)
	}
	return nil
}

// timeEach returns how long each of n calls took, after a few that prepare
// statements.
func timeEach(t target, n int, do func(*follower, target) error) ([]time.Duration, error) {
	const first = 20
	f, err := follow(t)
	if err != nil {
		return nil, err
	}
	defer f.close()
	var all []time.Duration
	for range first + n {
		start := time.Now()
		if err := do(f, t); err != nil {
			return nil, err
		}
		all = append(all, time.Since(start))
	}
	return all[first:], nil
}

// together has a client for each of the targets do something again and again at
// the same time, and says how often a second.
func together(all []target, do func(*follower, target) error) func(time.Duration) (float64, error) {
	return func(span time.Duration) (float64, error) {
		var group errgroup.Group
		var n atomic.Int64
		start := time.Now()
		for _, t := range all {
			group.Go(func() error {
				f, err := follow(t) // the server closes connections that wait for the other side
				if err != nil {
					return err
				}
				defer f.close()
				for time.Since(start) < span {
					if err := do(f, t); err != nil {
						return err
					}
					n.Add(1)
				}
				return nil
			})
		}
		err := group.Wait()
		return float64(n.Load()) / time.Since(start).Seconds(), err
	}
}

// compareMany measures many flows that are created at once against as many
// separate runs as they have steps, until all have ended.
func (b *bench) compareMany(ctx context.Context, s *server, people []member, name, where string) error {
	j, err := s.job(people[0].token, name, `{}`)
	if err != nil {
		return err
	}
	single, err := s.job(people[0].token, "Pass", `{}`)
	if err != nil {
		return err
	}
	const runs = manyFlows * manySteps
	flows := s.creates(people, j)
	separate := s.creates(people, single)
	return b.compareRounds(flowRounds, "runs/s",
		side{fmt.Sprintf("%d flows of %d steps, created at once, until all have ended: %s (%s)", manyFlows, manySteps, strings.ToLower(name), where),
			func(time.Duration) (float64, error) { return b.endAll(ctx, s, flows, manyFlows, runs) }},
		side{fmt.Sprintf("%d separate runs of the same tool", runs),
			func(time.Duration) (float64, error) { return b.endAll(ctx, s, separate, runs, runs) }}, 0)
}

// endAll makes so many creates, waits until all runs have ended, and says how
// many runs of tools a second that was.
func (b *bench) endAll(ctx context.Context, s *server, all []target, creates, runs int) (float64, error) {
	var group errgroup.Group
	var next atomic.Int64
	start := time.Now()
	for _, t := range all {
		group.Go(func() error {
			w, err := dial(t.address)
			if err != nil {
				return err
			}
			defer w.Close()
			for next.Add(1) <= int64(creates) {
				if err := w.ask(t.request(), io.Discard); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	err := b.waitForEnd(ctx, s)
	return float64(runs) / time.Since(start).Seconds(), err
}
