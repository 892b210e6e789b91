// Package simulate predicts how long runs wait, for an installation and an
// arrival of runs that the operator describes (a Scenario).
//
// It is a discrete-event simulation: people create runs at random times, every
// engine has as many places as the workers of its pool give it, and a free place
// takes the next run of the engine at once, by the rule of package run. It
// contains no database and no network, and assumes that a run takes as long as
// its tool's duration says. It does not simulate failures, cancelled runs, rate
// limits, runs.max_wait and the memory of built-in engines.
//
// The same scenario with the same seed always gives the same result.
package simulate

import (
	"container/heap"
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"atelier/internal/run/generation"
)

// Simulate runs a scenario that ReadScenario has returned, until its duration has
// passed or ctx ends.
func Simulate(ctx context.Context, s Scenario, seed uint64) (Result, error) {
	m := newSimulation(s)
	m.random = rand.New(rand.NewPCG(seed, seed))
	person := 0
	for group, name := range slices.Sorted(maps.Keys(s.People)) {
		p := newGroup(group, s.People[name])
		for range s.People[name].Count {
			m.scheduleRequest(p, person, p.From)
			person++
		}
	}
	if err := m.advance(ctx, s.Duration); err != nil {
		return Result{}, err
	}
	return m.summarize(seed), nil
}

// simulation is the state of a simulated installation.
type simulation struct {
	scenario Scenario
	random   *rand.Rand
	now      time.Duration
	events   eventHeap
	added    int64 // events so far
	engines  map[string]*engineState
	active   map[int]int // runs that have not ended, by person
	created  int64
	figures  *figures
	started  func(*queuedRun) // called when a run starts; nil in simulations of a whole scenario
}

// engineState is an engine with its queue and places.
type engineState struct {
	queue    *engineQueue
	pool     string
	capacity int
	running  int
}

func newSimulation(s Scenario) *simulation {
	m := &simulation{
		scenario: s,
		engines:  map[string]*engineState{},
		active:   map[int]int{},
		figures:  newFigures(),
	}
	for name, e := range s.Engines {
		m.engines[name] = &engineState{
			queue:    newEngineQueue(),
			pool:     e.Pool,
			capacity: s.capacity(name),
		}
	}
	return m
}

// group is a group of people with the weights of their tools in a fixed order.
type group struct {
	People
	index   int
	tools   []string
	weights []float64 // cumulative
}

func newGroup(index int, p People) *group {
	g := &group{People: p, index: index, tools: slices.Sorted(maps.Keys(p.Tools))}
	sum := 0.0
	for _, tool := range g.tools {
		sum += p.Tools[tool]
		g.weights = append(g.weights, sum)
	}
	return g
}

// chooseTool returns a tool at random, by the weights.
func (g *group) chooseTool(random *rand.Rand) string {
	x := random.Float64() * g.weights[len(g.weights)-1]
	for i, limit := range g.weights {
		if x < limit {
			return g.tools[i]
		}
	}
	return g.tools[len(g.tools)-1]
}

// scheduleRequest schedules the first request of a person after a time.
func (m *simulation) scheduleRequest(g *group, person int, after time.Duration) {
	pause := m.random.ExpFloat64() / g.RequestsPerMinute * float64(time.Minute)
	if pause >= float64(g.Until-after) {
		return
	}
	m.schedule(after+time.Duration(pause), func() {
		for range g.Runs {
			tool := g.chooseTool(m.random)
			m.create(&queuedRun{
				person:    person,
				group:     g.index,
				tool:      tool,
				headStart: m.headStart(m.scenario.Tools[tool].Priority + g.Priority),
				duration:  m.drawDuration(m.scenario.Tools[tool]),
			})
		}
		m.scheduleRequest(g, person, m.now)
	})
}

// headStart returns the head start of a run with a priority in steps.
func (m *simulation) headStart(steps int64) time.Duration {
	return generation.Priorities{Step: *m.scenario.PriorityStep}.HeadStart(steps)
}

// drawDuration returns the duration of a run of a tool.
func (m *simulation) drawDuration(t Tool) time.Duration {
	if t.Variation == 0 {
		return t.Duration
	}
	variance := math.Log(1 + t.Variation*t.Variation)
	factor := math.Exp(m.random.NormFloat64()*math.Sqrt(variance) - variance/2)
	return max(time.Duration(factor*float64(t.Duration)), time.Microsecond)
}

// create queues a run at the present time, unless the person has too many runs
// that have not ended.
func (m *simulation) create(r *queuedRun) {
	engine := m.scenario.Tools[r.tool].Engine
	e := m.engines[engine]
	m.figures.countCreated(e.pool, r)
	if m.active[r.person] >= m.scenario.ActiveRuns {
		m.figures.countRefused(e.pool, r)
		return
	}
	m.active[r.person]++
	m.created++
	r.id = m.created
	r.created = m.now
	e.queue.add(m.now, r)
	m.fill(e)
}

// fill starts runs while the engine has free places.
func (m *simulation) fill(e *engineState) {
	for e.running < e.capacity {
		r := e.queue.next(m.now)
		if r == nil {
			return
		}
		e.running++
		m.figures.countStarted(e.pool, r, m.now, min(m.now+r.duration, m.scenario.Duration))
		if m.started != nil {
			m.started(r)
		}
		m.schedule(m.now+r.duration, func() {
			e.running--
			m.active[r.person]--
			m.fill(e)
		})
	}
}

// schedule calls do at a simulated time.
func (m *simulation) schedule(at time.Duration, do func()) {
	m.added++
	heap.Push(&m.events, event{at: at, number: m.added, do: do})
}

// checkEvery is the number of events after which advance looks whether its
// context has ended.
const checkEvery = 10_000

// advance processes all events up to a simulated time.
func (m *simulation) advance(ctx context.Context, until time.Duration) error {
	for n := 0; len(m.events) > 0 && m.events[0].at <= until; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		next := heap.Pop(&m.events).(event)
		m.now = next.at
		next.do()
	}
	m.now = until
	return nil
}

// event is something that happens at a simulated time. Events at the same time
// happen in the order in which they were scheduled.
type event struct {
	at     time.Duration
	number int64
	do     func()
}

// eventHeap has the next event first.
type eventHeap []event

func (h eventHeap) Len() int { return len(h) }

func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].number < h[j].number
}

func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *eventHeap) Push(x any) { *h = append(*h, x.(event)) }

// Pop implements heap.Interface.
func (h *eventHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = event{}
	*h = (*h)[:last]
	return e
}
