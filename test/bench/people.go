package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/money/ledger"
	"atelier/internal/people/credential"
	"atelier/internal/people/person"
)

// member is somebody who creates runs, with a personal token.
type member struct{ id, tokenID, token string }

// wealth is what each of them can spend.
const wealth = 10_000_000

// gather makes people behind the server's back: one at a time through its
// commands would take longer than everything else.
func gather(ctx context.Context, s *server, n int) ([]member, error) {
	db, err := sqldb.Open(ctx, s.databaseURL(), sqldb.Options{MaxConns: 2, Now: time.Now})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	hash, err := person.HashPassword(ctx, password)
	if err != nil {
		return nil, err
	}
	var all []member
	for len(all) < n {
		some, err := gatherSome(ctx, db, hash, len(all), min(n-len(all), gatherBatch))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// gatherBatch is how many people are made in one transaction, whose duration the
// program limits.
const gatherBatch = 50

func gatherSome(ctx context.Context, db *sqldb.DB, hash string, first, n int) (all []member, err error) {
	err = db.Write(ctx, func(tx *sqldb.Tx) error {
		all = nil
		for i := range n {
			p, err := person.Create(ctx, tx, person.Draft{Email: fmt.Sprintf("bench-%d@example.com", first+i), PasswordHash: hash})
			if err != nil {
				return err
			}
			t, secret, err := credential.Create(ctx, tx, credential.Draft{PersonID: p.ID, MintedBy: p.ID, Name: "bench"})
			if err != nil {
				return err
			}
			if _, err := ledger.Grant(ctx, tx, p.ID, wealth, ledger.Granted, "bench"); err != nil {
				return err
			}
			all = append(all, member{p.ID, t.ID, secret})
		}
		return nil
	})
	return all, err
}

// job is what people have a tool do.
type job struct{ toolID, hash, inputs string }

// job finds the tool with a name.
func (s *server) job(token, tool, inputs string) (j job, err error) {
	j.inputs = inputs
	j.toolID, j.hash, err = s.tool(token, tool)
	return j, err
}

// payload is the body of a create.
func (j job) payload() string {
	text, err := json.Marshal(map[string]any{"tool_id": j.toolID, "tool_fields_hash": j.hash, "inputs": json.RawMessage(j.inputs)})
	if err != nil {
		panic(err) // the inputs are our own
	}
	return string(text)
}

// creates are the requests that create a run for each of the people.
func (s *server) creates(people []member, j job) []target {
	all := make([]target, len(people))
	for i, m := range people {
		all[i] = s.with("/api/v2/generate")
		all[i].token, all[i].body = m.token, j.payload()
	}
	return all
}
