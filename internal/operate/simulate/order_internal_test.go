package simulate

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/engine"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
	"atelier/internal/run/runner"
	"atelier/internal/testkit/watch"
)

// TestOrderIsThatOfTheDatabase creates and claims runs of random people, with
// random head starts and pauses, in the database and in an engineQueue, and
// compares every claim.
func TestOrderIsThatOfTheDatabase(t *testing.T) {
	dbtest.EachFixture(t, run.Checks, func(w dbtest.Fixture) {
		toolID := ids.New()
		w.Exec(`INSERT INTO tool_version (hash, definition) VALUES ('v1:test', '{}')`)
		w.Exec(`INSERT INTO tool (id, slug, source, definition, hash, removed, created, updated) VALUES ($1, $1, 'directory', '{}', 'v1:test', FALSE, 1, 1)`, toolID)
		people := make([]string, 6)
		for i := range people {
			people[i] = ids.New()
			w.Exec(`INSERT INTO person (id, email, email_key, email_verified, password_hash, created) VALUES ($1, $1, $1, TRUE, '', 1)`, people[i])
		}
		slices.Sort(people) // equal turns are ordered by the id

		begin := w.Now()
		queue := newEngineQueue()
		random := rand.New(rand.NewPCG(21, 7))
		pauses := []time.Duration{0, time.Second, time.Second, 30 * time.Second, 30 * time.Second, time.Minute, 11 * time.Minute}
		claimed, found := 0, 0
		for step := range 400 {
			w.Pass(pauses[random.IntN(len(pauses))])
			now := w.Now().Sub(begin)
			if random.IntN(2) == 0 {
				r := &queuedRun{
					id:        int64(step),
					person:    random.IntN(len(people)),
					created:   now,
					headStart: time.Duration(random.IntN(5)-2) * 30 * time.Second,
				}
				queue.add(now, r)
				w.Do(func(tx *sqldb.Tx) error {
					if err := run.Enqueue(w.Context(), tx, "script", people[r.person], r.headStart); err != nil {
						return err
					}
					return run.Add(w.Context(), tx, run.Run{
						ID:         runID(r.id),
						LibraryID:  ids.New(),
						PersonID:   people[r.person],
						AccountID:  people[r.person],
						ToolID:     toolID,
						ToolHash:   "v1:test",
						Engine:     "script",
						Inputs:     "{}",
						NumResults: 1,
						PollAfter:  time.Second,
						HeadStart:  r.headStart,
					}, nil)
				})
				continue
			}

			claimed++
			got := ""
			w.Do(func(tx *sqldb.Tx) error {
				r, _, ok, err := run.Claim(w.Context(), tx, run.ClaimOptions{Engine: "script", Worker: "worker", Lease: time.Hour})
				got = ""
				if ok {
					got = r.ID
				}
				return err
			})
			want := ""
			if r := queue.next(now); r != nil {
				want = runID(r.id)
				found++
			}
			if got != want {
				w.Fatalf("claim %d took the run %q, the simulation %q", claimed, got, want)
			}
		}
		if found < 100 {
			w.Errorf("only %d of %d claims found a run", found, claimed)
		}
	})
}

// runID returns the id of a run; the ids of later runs are greater.
func runID(n int64) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }

// request is a run that a person creates in TestServiceIsThatOfAWorker.
type request struct {
	at       time.Duration
	person   int
	tool     string
	duration time.Duration
}

// TestServiceIsThatOfAWorker has a real worker with two places execute runs of
// fixed durations, and compares the order and the times of their starts with a
// simulation. The clock of the database moves only from event to event, so the
// speed of the machine does not matter.
func TestServiceIsThatOfAWorker(t *testing.T) {
	priorities := generation.Priorities{Step: time.Minute}
	change := func(s *generation.Settings) {
		generationtest.Unlimited(s)
		s.Priorities = priorities
	}
	generationtest.EachInstallation(t, change, func(h *generationtest.Installation) {
		const manifest = "price: {type: FREE}\noutput: {type: IMG, mime_types: [image/png]}\nengine: {name: script}\n"
		steps := map[string]int64{"normal": 0, "urgent": 2, "patient": -1}
		manifests := map[string]string{}
		for tool, priority := range steps {
			manifests[tool] = manifest + fmt.Sprintf("priority: %d\n", priority)
		}
		h.Apply(manifests)
		people := make([]string, 5)
		for i := range people {
			people[i] = h.Person(0)
		}
		slices.Sort(people)
		requests := mixedRequests(len(people))

		want := simulateRequests(requests, steps, priorities.Step)
		got := executeRequests(h, requests, people)
		if !slices.Equal(got, want) {
			h.Errorf("the worker started\n%v\nthe simulation\n%v", got, want)
		}
		waited := 0
		for i, s := range want {
			if i > 0 && s.number < want[i-1].number {
				waited++
			}
		}
		if waited < 3 {
			h.Errorf("%d runs were overtaken: the requests do not test the order", waited)
		}
	})
}

// mixedRequests returns requests of which more arrive than two places can serve
// for a while: one person asks for many runs at once, others for few, with three
// priorities.
func mixedRequests(people int) (all []request) {
	random := rand.New(rand.NewPCG(3, 9))
	tools := []string{"normal", "normal", "urgent", "patient"}
	for i := range 6 {
		all = append(all, request{at: time.Duration(i) * time.Millisecond, person: 0, tool: "normal", duration: 40*time.Second + 3*time.Millisecond})
	}
	at := time.Second
	for range 22 {
		at += time.Duration(3_000+random.IntN(30_000)) * time.Millisecond
		all = append(all, request{
			at:       at,
			person:   random.IntN(people),
			tool:     tools[random.IntN(len(tools))],
			duration: time.Duration(10_001+random.IntN(50_000)) * time.Millisecond,
		})
	}
	return all
}

// start is the start of the execution of a run.
type start struct {
	number int // of the request
	at     time.Duration
}

// places is the number of runs that are executed at the same time.
const places = 2

// simulateRequests returns the starts of runs in a simulation.
func simulateRequests(requests []request, steps map[string]int64, step time.Duration) (starts []start) {
	s := Scenario{
		Duration:     24 * time.Hour,
		PriorityStep: &step,
		ActiveRuns:   1000,
		Workers:      map[string]Workers{"worker": {Count: 1}},
		Engines:      map[string]Engine{"script": {Pool: "cpu", ParallelPerNode: places}},
		Tools:        map[string]Tool{},
	}
	for tool, priority := range steps {
		s.Tools[tool] = Tool{Engine: "script", Priority: priority}
	}
	m := newSimulation(s)
	m.started = func(r *queuedRun) { starts = append(starts, start{int(r.id) - 1, m.now}) }
	for _, r := range requests {
		m.schedule(r.at, func() {
			m.create(&queuedRun{person: r.person, tool: r.tool, headStart: m.headStart(steps[r.tool]), duration: r.duration})
		})
	}
	if err := m.advance(context.Background(), s.Duration); err != nil {
		panic(err) // the context does not end
	}
	return starts
}

// gate is an engine whose jobs end when the test says so.
type gate struct {
	reached chan string
	mu      sync.Mutex
	ends    map[string]chan struct{}
}

// Run implements engine.Engine.
func (g *gate) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	end := make(chan struct{})
	g.mu.Lock()
	g.ends[j.RunID] = end
	g.mu.Unlock()
	g.reached <- j.RunID
	select {
	case <-end:
		return engine.Fail(engine.Failed, "The test needs no result.")
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) release(runID string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.ends[runID])
}

// executeRequests returns the starts of runs that a real worker executes.
func executeRequests(h *generationtest.Installation, requests []request, people []string) (starts []start) {
	h.Helper()
	g := &gate{reached: make(chan string, len(requests)), ends: map[string]chan struct{}{}}
	worker := runner.New(runner.Parts{
		DB:      h.DB,
		Blobs:   h.Blobs,
		Intake:  h.Intake,
		Catalog: h.Catalog,
		Runs:    h.Runs,
		Hub:     h.Hub,
		Log:     slog.New(slog.DiscardHandler),
		Now:     time.Now,
		Slots:   map[string]engine.Slots{generationtest.Engine: {Engine: g, Parallel: places}},
		Settings: runner.Settings{
			Lease:       24 * time.Hour, // the clock of the database jumps
			Attempts:    3,
			MaxWait:     24 * time.Hour,
			Drain:       time.Minute,
			OutputBytes: 1 << 16,
		},
	})
	h.Queued = func(engine string) { worker.NoticeQueued(engine) }
	ctx, stop := context.WithCancel(context.WithoutCancel(h.Context()))
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			h.Errorf("run: %v", err)
		}
	}()

	type execution struct {
		runID string
		end   time.Duration
	}
	begin := h.Now()
	numbers := map[string]int{}
	var running []execution
	waiting := 0
	for next := 0; next < len(requests) || len(running) > 0; {
		slices.SortFunc(running, func(a, b execution) int { return int(a.end - b.end) })
		if len(running) == 0 || next < len(requests) && requests[next].at < running[0].end {
			r := requests[next]
			h.Pass(r.at - h.Now().Sub(begin))
			numbers[h.Create(h.Draft(generationtest.Own(people[r.person]), r.tool)).ID] = next
			next++
			waiting++
		} else {
			h.Pass(running[0].end - h.Now().Sub(begin))
			id := running[0].runID
			running = running[1:]
			g.release(id)
			watch.Until(h.T, "the end of a run", func() bool { return h.Run(id).State.IsEnded() })
		}
		for waiting > 0 && len(running) < places {
			id := ""
			watch.Until(h.T, "the start of a run", func() bool {
				select {
				case id = <-g.reached:
					return true
				default:
					return false
				}
			})
			at := h.Run(id).Started.Sub(begin)
			starts = append(starts, start{numbers[id], at})
			running = append(running, execution{id, at + requests[numbers[id]].duration})
			waiting--
		}
	}
	return starts
}
