package runner_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/engine"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
	"atelier/internal/run/runner"
	"atelier/internal/testkit/watch"
)

// TestTransactionsNeverDeadlock has many people and nodes create, claim, poll,
// cancel, hand back, take back and end runs at once.
func TestTransactionsNeverDeadlock(t *testing.T) {
	eachInstallation(t, func(h *installation) {
		if h.DB.Pool() == nil {
			h.Skip("SQLite has one writer at a time")
		}
		ctx := h.Context()
		team := h.Team(1_000_000)
		var callers []principal.Principal
		for range 8 {
			personID := h.Person(1_000_000)
			callers = append(callers, generationtest.Own(personID), generationtest.In(personID, team))
		}
		reaper := build(h, paints, func(p *runner.Parts) { p.Attempts = 1000 })
		var made, steps atomic.Int64
		deadline := time.Now().Add(3 * time.Second)
		dbtest.Together(24, func(i int) {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			worker := fmt.Sprint("worker", i)
			var own []run.Run
			for time.Now().Before(deadline) {
				steps.Add(1)
				var err error
				switch random.IntN(8) {
				case 0, 1, 2:
					who := callers[random.IntN(len(callers))]
					var c generation.Created
					c, err = h.Runs.CreateRun(ctx, h.Draft(who, "cost"))
					if err == nil {
						made.Add(1)
						own = append(own, run.Run{ID: c.Run.ID, AccountID: who.AccountID, PersonID: who.PersonID})
					}
				case 3, 4:
					lease := time.Duration(random.IntN(2)) * time.Minute
					var one run.Run
					var ok bool
					err = h.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
						one, _, ok, err = run.Claim(ctx, tx, run.ClaimOptions{Engine: generationtest.Engine, Worker: worker, Lease: lease, Limit: 20 * random.IntN(2)})
						return err
					})
					if err != nil || !ok || lease == 0 {
						break // lost at once, for the reaper
					}
					if random.IntN(2) == 0 {
						err = h.DB.Write(ctx, func(tx *sqldb.Tx) error {
							_, err := run.Requeue(ctx, tx, run.Lease{ID: one.ID, Attempt: one.Attempt}, run.Returned)
							return err
						})
					} else {
						err = h.Runs.EndRun(ctx, one, generation.Outcome{State: run.Failed, ErrorCode: string(engine.Failed), ErrorText: "no"})
					}
				case 5:
					h.Pass(time.Millisecond)
					err = reaper.Reap(ctx)
				default:
					if len(own) == 0 {
						break
					}
					r := own[random.IntN(len(own))]
					who := principal.Principal{PersonID: r.PersonID, AccountID: r.AccountID}
					if random.IntN(2) == 0 {
						_, err = h.Runs.PollRun(ctx, who, r.ID)
					} else {
						_, _, err = h.Runs.CancelRun(ctx, who, r.ID)
					}
				}
				if err != nil && !errors.Is(err, generation.ErrNotHeld) {
					h.Errorf("step: %v", err)
					return
				}
			}
		})
		// The server counts what a connection saw when that connection has ended.
		h.DB.Pool().Reset()
		watch.Until(h.T, "the end of all other connections", func() bool {
			return h.Count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`) == 0
		})
		deadlocks := h.Count(`SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`)
		if deadlocks != 0 {
			h.Errorf("%d deadlocks in %d steps with %d runs, want none", deadlocks, steps.Load(), made.Load())
		}
	})
}
