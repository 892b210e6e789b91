package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// noop is a tool that gives a tiny picture at once. Its engine
// is in test builds only.
const noop = `name: Noop
description: Makes a tiny picture at once, for measuring only.
tags: [image]
price: {type: COST, tokens: 1}
output: {type: IMG, mime_types: [image/png]}
engine: {name: script}
fields: [{key: script, type: TEXT_AREA, label: Script}]
`

// follower creates runs and follows them to their end, one after another.
type follower struct {
	create          []byte
	token           string
	creates, events *wire
}

func follow(t target) (*follower, error) {
	creates, err := dial(t.address)
	if err != nil {
		return nil, err
	}
	events, err := dial(t.address)
	if err != nil {
		return nil, errors.Join(err, creates.Close())
	}
	return &follower{t.request(), t.token, creates, events}, nil
}

func (f *follower) close() {
	f.creates.Close()
	f.events.Close()
}

// run creates a run, waits for the event done, and gives its path.
func (f *follower) run() (path string, took time.Duration, err error) {
	e, err := f.finish(f.create)
	return e.path, e.took, err
}

// ending is the end of a run that was followed.
type ending struct {
	path string
	took time.Duration
	data string // of the event done
}

// finish creates a run with any request, and waits for the event done.
func (f *follower) finish(create []byte) (ending, error) {
	fail := func(err error) (ending, error) { return ending{}, err }
	start := time.Now()
	var body strings.Builder
	if err := f.creates.ask(create, &body); err != nil {
		return fail(err)
	}
	var made struct {
		StatusURL string `json:"status_url"`
	}
	if err := json.Unmarshal([]byte(body.String()), &made); err != nil {
		return fail(err)
	}
	u, err := url.Parse(made.StatusURL)
	if err != nil {
		return fail(err)
	}
	var stream strings.Builder
	ask := target{address: u.Host, path: u.Path + "/events", token: f.token}
	if err := f.events.ask(ask.request(), &stream); err != nil {
		return fail(err)
	}
	took := time.Since(start) // the stream ends with that event
	_, done, ok := strings.Cut(stream.String(), "event: done\n")
	if !ok || !strings.Contains(done, `"status":"succeeded"`) {
		return fail(fmt.Errorf("a run ended with %.1000q", stream.String()))
	}
	_, data, _ := strings.Cut(done, "data: ")
	data, _, _ = strings.Cut(data, "\n")
	return ending{path: u.Path, took: took, data: data}, nil
}

// status measures asking for a run that has ended.
func (b *bench) status(ctx context.Context) error {
	s, err := b.serve(ctx, "status", settings{tools: map[string]string{"tags.yaml": tags, "sketch.yaml": sketch}})
	if err != nil {
		return err
	}
	defer s.stop()
	people, err := gather(ctx, s, 1)
	if err != nil {
		return err
	}
	j, err := s.job(people[0].token, "Sketch", words)
	if err != nil {
		return err
	}
	f, err := follow(s.creates(people, j)[0])
	if err != nil {
		return err
	}
	defer f.close()
	path, _, err := f.run()
	if err != nil {
		return err
	}
	t := s.with(path)
	t.token = people[0].token
	body, err := fetch(t)
	if err != nil {
		return err
	}
	floor, err := b.serveBare(ctx, body)
	if err != nil {
		return err
	}
	return b.compare("req/s", asking("GET status_url of a finished run, one result (personal token, SQLite)", t),
		asking(fmt.Sprintf("bare handler, the same %d bytes", len(body)), floor), 0.35)
}

// runLatency measures how long a run takes that does nothing, from the create's
// first byte to the event done, on the client's clock.
func (b *bench) runLatency(ctx context.Context) error {
	if err := b.runLatencyOn(ctx, "SQLite", ""); err != nil {
		return err
	}
	return b.onPostgres(ctx, func(address string) error { return b.runLatencyOn(ctx, "PostgreSQL", address) })
}

func (b *bench) runLatencyOn(ctx context.Context, where, database string) error {
	s, err := b.serve(ctx, "latency-"+where, settings{tags: "failpoint", tools: map[string]string{"tags.yaml": tags, "noop.yaml": noop}, database: database})
	if err != nil {
		return err
	}
	defer s.stop()
	people, err := gather(ctx, s, 8)
	if err != nil {
		return err
	}
	j, err := s.job(people[0].token, "Noop", `{}`)
	if err != nil {
		return err
	}
	all := s.creates(people, j)
	if _, err := runs(all[:1], 20); err != nil { // the first few prepare statements
		return err
	}
	for _, c := range []struct{ at, each int }{{1, 300}, {8, 100}} {
		took, err := runs(all[:c.at], c.each)
		if err != nil {
			return err
		}
		times(fmt.Sprintf("create to the event done of a tool that does nothing, %d at a time (%s)", c.at, where), "runs", took)
	}
	return nil
}

// runs has each of the targets create and follow so many runs.
func runs(all []target, each int) ([]time.Duration, error) {
	var group errgroup.Group
	took := make([]time.Duration, len(all)*each)
	for i, t := range all {
		group.Go(func() error {
			f, err := follow(t)
			if err != nil {
				return err
			}
			defer f.close()
			for k := range each {
				if _, took[i*each+k], err = f.run(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return took, group.Wait()
}
