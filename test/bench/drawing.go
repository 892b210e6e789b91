package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// model is the tool of the picture model of our own, with a seed for every run.
const model = `name: Model
price: {type: COST, tokens: 1}
output: {type: IMG, mime_types: [image/png]}
engine: {name: tiny, with: {operation: sketch}}
fields: [{key: prompt, type: PROMPT, label: Prompt}, {key: seed, type: SEED, label: Seed}]
`

const (
	timed     = 8                     // pictures one by one
	pollers   = 2                     // connections that ask
	pollEvery = 10 * time.Millisecond // each of them
	pollSpan  = 10 * time.Second
	pollTurns = 3 // of idle and drawing
)

// drawing measures the picture model through the API: how long a picture takes,
// and what polls wait while it draws on all cores.
func (b *bench) drawing(ctx context.Context) error {
	s, err := b.serve(ctx, "drawing", settings{tools: map[string]string{"tags.yaml": tags, "model.yaml": model}})
	if err != nil {
		return err
	}
	defer s.stop()
	people, err := gather(ctx, s, 2)
	if err != nil {
		return err
	}
	j, err := s.job(people[0].token, "Model", `{"prompt":"penguin in the snow"}`)
	if err != nil {
		return err
	}
	all := s.creates(people, j)
	f, err := follow(all[0])
	if err != nil {
		return err
	}
	defer f.close()
	path, _, err := f.run() // the first opens the model
	if err != nil {
		return err
	}
	var took []time.Duration
	for range timed {
		_, d, err := f.run()
		if err != nil {
			return err
		}
		took = append(took, d)
	}
	times("create to the event done of a picture of 512 pixels in 6 steps, one at a time", "pictures", took)

	t := s.with(path)
	t.token = people[0].token
	var quiet, busy []time.Duration
	for range pollTurns {
		some, err := polls(t, pollSpan)
		if err != nil {
			return err
		}
		quiet = append(quiet, some...)
		some, drawn, err := whileDrawing(all, func() ([]time.Duration, error) { return polls(t, pollSpan) })
		if err != nil {
			return err
		}
		busy = append(busy, some...)
		fmt.Printf("%9.2f s a picture while others poll (%d drawn)\n", pollSpan.Seconds()/float64(max(drawn, 1)), drawn)
	}
	fmt.Println()
	times("GET status_url of a finished run, every 10 ms on 2 connections, idle", "polls", quiet)
	times("the same while the model draws on all cores", "polls", busy)
	fmt.Printf("%9.2f times the p99 of idle, %.2f times the median\n\n", ratio(busy, quiet, 0.99), ratio(busy, quiet, 0.5))
	return nil
}

// ratio compares two lists at a share of their length.
func ratio(a, base []time.Duration, share float64) float64 {
	at := func(all []time.Duration) float64 {
		all = slices.Sorted(slices.Values(all))
		return all[int(share*float64(len(all)-1))].Seconds()
	}
	return at(a) / at(base)
}

// whileDrawing has a picture drawn for each of the targets, again and again,
// until do has ended.
func whileDrawing(all []target, do func() ([]time.Duration, error)) (took []time.Duration, drawn int64, err error) {
	var group errgroup.Group
	var over atomic.Bool
	var count atomic.Int64
	begun := make(chan struct{}, len(all))
	for _, t := range all {
		group.Go(func() error {
			f, err := follow(t)
			begun <- struct{}{}
			if err != nil {
				return err
			}
			defer f.close()
			for !over.Load() {
				if _, _, err := f.run(); err != nil {
					return err
				}
				count.Add(1)
			}
			return nil
		})
	}
	for range all {
		<-begun
	}
	took, err = do()
	drawn = count.Load()
	over.Store(true)
	if e := group.Wait(); err == nil {
		err = e
	}
	return took, drawn, err
}

// polls asks at a steady pace, and counts from when each was due: one that is
// late makes the next late, and both count.
func polls(t target, span time.Duration) ([]time.Duration, error) {
	var group errgroup.Group
	took := make([][]time.Duration, pollers)
	for i := range took {
		group.Go(func() error {
			w, err := dial(t.address)
			if err != nil {
				return err
			}
			defer w.Close()
			request := t.request()
			start := time.Now().Add(pollEvery * time.Duration(i) / pollers)
			for due := start; due.Sub(start) < span; due = due.Add(pollEvery) {
				time.Sleep(time.Until(due))
				if err := w.ask(request, io.Discard); err != nil {
					return err
				}
				took[i] = append(took[i], time.Since(due))
			}
			return nil
		})
	}
	err := group.Wait()
	return slices.Concat(took...), err
}
