package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"strings"
	"time"

	"github.com/google/uuid"

	"atelier/internal/base/ids"
	"atelier/internal/base/pubsub"
	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/catalog"
	"atelier/internal/money/budget"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation"
	"atelier/internal/run/policy"
	"atelier/internal/run/run"
)

// statement is one that a create sends, with arguments for whoever creates now.
type statement struct {
	text  string
	reads bool // gives rows
	args  []func(*creation) any
}

// creation is what differs from one create to the next.
type creation struct {
	now   time.Time
	who   member
	runID string
	fresh map[string]string // ids by those that the captured create had
}

func newCreation(who member, now time.Time) (*creation, error) {
	id, err := uuid.NewV7()
	return &creation{now: now, who: who, runID: id.String(), fresh: map[string]string{}}, err
}

func (c *creation) id(captured string) string {
	if c.fresh[captured] == "" {
		c.fresh[captured] = ids.New()
	}
	return c.fresh[captured]
}

// values are the arguments of a statement.
func (s *statement) values(c *creation) []any {
	all := make([]any, len(s.args))
	for i, make := range s.args {
		all[i] = make(c)
	}
	return all
}

// heard is a statement as it was sent.
type heard struct {
	text string
	args []any
}

// capture has the program's own code create runs for a person and learns what
// it sends. The texts that the other side replays are these, so the two cannot
// drift apart; an argument that it cannot tell how to make is an error.
func capture(ctx context.Context, s *server, m member, j job) ([]statement, error) {
	var sent []heard
	db, err := sqldb.Open(ctx, s.databaseURL(), sqldb.Options{MaxConns: 4, Now: time.Now, Trace: func(query string, args []any) {
		sent = append(sent, heard{query, append([]any(nil), args...)})
	}})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	tools := catalog.New(db, slog.New(slog.DiscardHandler))
	if _, err := tools.RefreshSnapshot(ctx); err != nil {
		return nil, err
	}
	service := generation.New(generation.Parts{
		DB: db, Catalog: tools, Policy: &policy.Checker{Rules: policy.Default()}, Guard: webhook.NewGuard(nil), Hub: pubsub.New(), Budgets: &budget.Service{},
		Settings: generation.Settings{
			InputFiles: 12, MetadataBytes: 8 << 10, PluginLength: 64, ActiveRuns: 1_000_000, CreatePerMinute: 1_000_000, CreatePerHour: 1_000_000, NumResults: 64,
			PollMin: time.Second, PollMax: 10 * time.Second,
		},
		Queued: func(string) {}, Ended: func() {},
	})
	draft := generation.Draft{
		Principal: principal.Principal{PersonID: m.id, AccountID: m.id, Credential: principal.Credential{Kind: principal.PersonalToken, ID: m.tokenID}},
		ToolID:    j.toolID, ToolHash: j.hash,
	}
	if err := json.Unmarshal([]byte(j.inputs), &draft.Inputs); err != nil {
		return nil, err
	}
	var made [3]run.Run // the first one of a person differs
	var traces [3][]heard
	for i := range made {
		sent = nil
		created, err := service.CreateRun(ctx, draft)
		if err != nil {
			return nil, fmt.Errorf("create to capture: %w", err)
		}
		made[i] = created.Run
		traces[i] = sent
	}
	return learn(m, made[1], made[2], traces[1], traces[2])
}

// learn compares what two creates of one person sent.
func learn(m member, a, b run.Run, as, bs []heard) ([]statement, error) {
	if len(as) == 0 || len(as) != len(bs) {
		return nil, fmt.Errorf("one create sent %d statements, the next %d", len(as), len(bs))
	}
	all := make([]statement, len(as))
	for i := range as {
		if as[i].text != bs[i].text || len(as[i].args) != len(bs[i].args) {
			return nil, fmt.Errorf("creates differ: %s and %s", as[i].text, bs[i].text)
		}
		text := strings.ToUpper(strings.TrimSpace(as[i].text))
		all[i] = statement{text: as[i].text, reads: strings.HasPrefix(text, "SELECT") || strings.Contains(text, "RETURNING")}
		for k := range as[i].args {
			make, err := maker(m, a, b, as[i].args[k], bs[i].args[k])
			if err != nil {
				return nil, fmt.Errorf("%s: $%d: %w", as[i].text, k+1, err)
			}
			all[i].args = append(all[i].args, make)
		}
	}
	return all, nil
}

// maker tells how an argument comes about.
func maker(m member, a, b run.Run, x, y any) (func(*creation) any, error) {
	if x, ok := x.(sqldb.Time); ok {
		y, _ := y.(sqldb.Time)
		offset := x.Sub(a.Created)
		if y.Sub(b.Created) != offset {
			return nil, fmt.Errorf("times %v and %v", x, y)
		}
		return func(c *creation) any { return c.now.Add(offset).UnixMicro() }, nil
	}
	if x, ok := x.(string); ok {
		y, _ := y.(string)
		switch {
		case x == a.ID && y == b.ID:
			return func(c *creation) any { return c.runID }, nil
		case x == m.tokenID && x == y:
			return func(c *creation) any { return c.who.tokenID }, nil
		case strings.Contains(x, m.id) && x == y:
			before, after, _ := strings.Cut(x, m.id)
			return func(c *creation) any { return before + c.who.id + after }, nil
		case x != y && ids.Valid(x) && ids.Valid(y):
			return func(c *creation) any { return c.id(x) }, nil
		}
	}
	if x == a.Seed && y == b.Seed {
		return func(*creation) any { return int64(rand.Uint32()) }, nil
	}
	if !reflect.DeepEqual(x, y) {
		return nil, fmt.Errorf("nobody knows how to make %v and %v", x, y)
	}
	return func(*creation) any { return x }, nil
}
