package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"atelier/internal/base/sqldb"
)

// sketch is a tool that costs something and takes a few words.
const sketch = `name: Sketch
description: Makes a picture out of a few words and a seed, for measuring only.
tags: [image]
price: {type: COST, tokens: 1}
num_results: {max: 4}
output: {type: IMG, mime_types: [image/png]}
engine: {name: image, with: {operation: gradient}}
fields: [{key: prompt, type: PROMPT, label: Prompt}]
`

const words = `{"prompt": "a red fox in the snow"}`

// creating starts a server that creates runs and does not run them, with people
// who have each created one: what the first one costs more is over then.
func (b *bench) creating(ctx context.Context, name, database string) (*server, []member, job, error) {
	fail := func(err error) (*server, []member, job, error) { return nil, nil, job{}, err }
	s, err := b.serve(ctx, name, settings{tools: map[string]string{"tags.yaml": tags, "sketch.yaml": sketch}, database: database, roles: "api"})
	if err != nil {
		return fail(err)
	}
	people, err := gather(ctx, s, b.people)
	if err != nil {
		return fail(err)
	}
	j, err := s.job(people[0].token, "Sketch", words)
	if err != nil {
		return fail(err)
	}
	return s, people, j, greet(s.creates(people, j))
}

// greet asks each once.
func greet(all []target) error {
	w, err := dial(all[0].address)
	if err != nil {
		return err
	}
	defer w.Close()
	for _, t := range all {
		if err := w.ask(t.request(), io.Discard); err != nil {
			return err
		}
	}
	return nil
}

// creates measures creating runs against the same SQL without the program.
func (b *bench) creates(ctx context.Context) error {
	if err := b.createsOn(ctx, "SQLite with synchronous=FULL", ""); err != nil {
		return err
	}
	pg, err := b.startPostgres()
	if err != nil {
		return err
	}
	if pg == nil {
		fmt.Print("PostgreSQL is not installed: nothing is measured on it\n\n")
		return nil
	}
	address, err := pg.createDatabase(ctx)
	if err != nil {
		return err
	}
	return b.createsOn(ctx, "PostgreSQL with fsync", address)
}

func (b *bench) createsOn(ctx context.Context, where, database string) error {
	s, people, j, err := b.creating(ctx, "creates-"+strings.Fields(where)[0], database)
	if err != nil {
		return err
	}
	defer s.stop()
	all, err := capture(ctx, s, people[0], j)
	if err != nil {
		return err
	}
	driver, err := openRaw(ctx, s, all)
	if err != nil {
		return err
	}
	defer driver.close()
	before, err := countRuns(ctx, s)
	if err != nil {
		return err
	}
	var replayed atomic.Int64
	program := posting(fmt.Sprintf("POST /generate (%d people, no worker, %s)", len(people), where), s.creates(people, j))
	bare := replaying(ctx, fmt.Sprintf("its %d statements through the driver, %d at once", len(all), connections), driver, people, &replayed)
	if err := b.compare("creates/s", program, bare, 0.7); err != nil {
		return err
	}
	// What was replayed must have been creates: the rows are there and nothing
	// about them is wrong.
	after, err := countRuns(ctx, s)
	if err != nil {
		return err
	}
	if grew, least := after-before, replayed.Load(); grew < least {
		return fmt.Errorf("%d runs came into being, less than the %d replayed", grew, least)
	}
	return s.check(ctx)
}

// ownRules are the checks that find rows which the program did not write: those
// that this command writes itself have no seals and are in no log.
var ownRules = []string{"every row matches its seal", "the grants in the ledger match the audit log"}

// check fails where the database breaks an invariant.
func (s *server) check(ctx context.Context) error {
	out, failed := s.command(ctx, "check")
	var found struct {
		Violations []struct{ Check, Row string }
	}
	if err := json.Unmarshal(out, &found); err != nil {
		return errors.Join(failed, err)
	}
	for _, v := range found.Violations {
		if !slices.Contains(ownRules, v.Check) {
			return fmt.Errorf("atelier check: %s: %s", v.Check, v.Row)
		}
	}
	return nil
}

func countRuns(ctx context.Context, s *server) (n int64, err error) {
	db, err := sqldb.Open(ctx, s.databaseURL(), sqldb.Options{MaxConns: 2, Now: time.Now})
	if err != nil {
		return 0, err
	}
	defer db.Close()
	err = db.QueryRow(ctx, `SELECT count(*) FROM run`).Scan(&n)
	return n, err
}
