package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Result is the outcome of a simulation.
type Result struct {
	Seed     uint64        `json:"seed"`
	Duration float64       `json:"duration_seconds"`
	Created  int64         `json:"created"` // runs that people wanted to create
	Refused  int64         `json:"refused"` // of these, runs above limits.active_runs
	Pools    []PoolResult  `json:"pools"`   // ordered by name
	People   []GroupResult `json:"people"`  // ordered by name
}

// PoolResult has the figures of a pool.
type PoolResult struct {
	Name     string `json:"name"`
	Workers  int    `json:"workers"`
	Capacity int    `json:"capacity"` // runs of all its engines that are executed at the same time
	// Load is the work that arrived, divided by the work that the engine with
	// the highest load can do in the simulated time. From 1 on, the waiting runs
	// become more and more.
	Load float64 `json:"load"`
	// Utilisation is the part of the places that was occupied, on average over
	// the simulated time.
	Utilisation float64 `json:"utilisation"`
	Runs        int64   `json:"runs"`    // accepted runs
	Waiting     int64   `json:"waiting"` // runs that still waited at the end
	Wait        Waits   `json:"wait_seconds"`
	// Longest has the people with the longest waits, the longest first. People
	// who did not wait are not in it.
	Longest []PersonWait `json:"longest"`
}

// GroupResult has the figures of a group of people.
type GroupResult struct {
	Name    string `json:"name"`
	Count   int    `json:"count"`
	Runs    int64  `json:"runs"` // accepted runs
	Refused int64  `json:"refused"`
	Waiting int64  `json:"waiting"` // runs that still waited at the end
	Wait    Waits  `json:"wait_seconds"`
}

// Waits are figures of the times between the creation of a run and its start, in
// seconds. A run that still waited at the end counts with the time that it had
// waited until then.
type Waits struct {
	Mean    float64 `json:"mean"`
	P50     float64 `json:"p50"`
	P95     float64 `json:"p95"`
	P99     float64 `json:"p99"`
	Longest float64 `json:"longest"`
}

// PersonWait is the longest wait of a person in a pool.
type PersonWait struct {
	Person  string  `json:"person"` // name of the group and number in it
	Tool    string  `json:"tool"`
	Created float64 `json:"created_seconds"` // simulated time of the run's creation
	Wait    float64 `json:"wait_seconds"`
	Started bool    `json:"started"` // false if the run still waited at the end
}

// longestPeople is the number of people in PoolResult.Longest.
const longestPeople = 5

// figures collects the figures of a running simulation.
type figures struct {
	pools  map[string]*tally
	groups map[int]*tally
	// longest has the longest wait of each person in each pool.
	longest map[string]map[int]PersonWait
	work    map[string]time.Duration // work that arrived, by tool
}

// tally has the figures of a pool or a group.
type tally struct {
	waits   []time.Duration
	busy    time.Duration
	created int64
	refused int64
	waiting int64
}

func newFigures() *figures {
	return &figures{
		pools:   map[string]*tally{},
		groups:  map[int]*tally{},
		longest: map[string]map[int]PersonWait{},
		work:    map[string]time.Duration{},
	}
}

// tallies returns the two tallies that a run counts for.
func (f *figures) tallies(pool string, r *queuedRun) [2]*tally {
	if f.pools[pool] == nil {
		f.pools[pool] = &tally{}
	}
	if f.groups[r.group] == nil {
		f.groups[r.group] = &tally{}
	}
	return [2]*tally{f.pools[pool], f.groups[r.group]}
}

func (f *figures) countCreated(pool string, r *queuedRun) {
	for _, t := range f.tallies(pool, r) {
		t.created++
	}
	f.work[r.tool] += r.duration
}

func (f *figures) countRefused(pool string, r *queuedRun) {
	for _, t := range f.tallies(pool, r) {
		t.refused++
	}
	f.work[r.tool] -= r.duration
}

// countStarted counts a run that starts now and occupies its place until a time.
func (f *figures) countStarted(pool string, r *queuedRun, now, until time.Duration) {
	for _, t := range f.tallies(pool, r) {
		t.waits = append(t.waits, now-r.created)
		t.busy += until - now
	}
	f.keepLongest(pool, r, now-r.created, true)
}

// countWaiting counts a run that still waits at the end.
func (f *figures) countWaiting(pool string, r *queuedRun, now time.Duration) {
	for _, t := range f.tallies(pool, r) {
		t.waits = append(t.waits, now-r.created)
		t.waiting++
	}
	f.keepLongest(pool, r, now-r.created, false)
}

func (f *figures) keepLongest(pool string, r *queuedRun, wait time.Duration, started bool) {
	if f.longest[pool] == nil {
		f.longest[pool] = map[int]PersonWait{}
	}
	if wait.Seconds() <= f.longest[pool][r.person].Wait {
		return
	}
	f.longest[pool][r.person] = PersonWait{
		Tool:    r.tool,
		Created: r.created.Seconds(),
		Wait:    wait.Seconds(),
		Started: started,
	}
}

// summarize returns the result of a simulation that has reached its end.
func (m *simulation) summarize(seed uint64) Result {
	f := m.figures
	for _, e := range m.engines {
		for _, r := range e.queue.remaining() {
			f.countWaiting(e.pool, r, m.now)
		}
	}
	result := Result{
		Seed:     seed,
		Duration: m.scenario.Duration.Seconds(),
		Pools:    []PoolResult{},
		People:   []GroupResult{},
	}
	names := m.personNames()
	pools := map[string]bool{}
	for _, e := range m.engines {
		pools[e.pool] = true
	}
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		result.Pools = append(result.Pools, m.summarizePool(name, names))
	}
	for i, name := range slices.Sorted(maps.Keys(m.scenario.People)) {
		t := f.groups[i]
		if t == nil {
			t = &tally{}
		}
		result.Created += t.created
		result.Refused += t.refused
		result.People = append(result.People, GroupResult{
			Name:    name,
			Count:   m.scenario.People[name].Count,
			Runs:    t.created - t.refused,
			Refused: t.refused,
			Waiting: t.waiting,
			Wait:    summarizeWaits(t.waits),
		})
	}
	return result
}

func (m *simulation) summarizePool(name string, people []string) PoolResult {
	t := m.figures.pools[name]
	if t == nil {
		t = &tally{}
	}
	p := PoolResult{
		Name:    name,
		Workers: m.scenario.countWorkers(name),
		Runs:    t.created - t.refused,
		Waiting: t.waiting,
		Wait:    summarizeWaits(t.waits),
		Longest: []PersonWait{},
	}
	for engine, e := range m.engines {
		if e.pool != name {
			continue
		}
		p.Capacity += e.capacity
		work := time.Duration(0)
		for tool, spent := range m.figures.work {
			if m.scenario.Tools[tool].Engine == engine {
				work += spent
			}
		}
		p.Load = max(p.Load, work.Seconds()/(float64(e.capacity)*m.scenario.Duration.Seconds()))
	}
	p.Utilisation = t.busy.Seconds() / (float64(p.Capacity) * m.scenario.Duration.Seconds())

	longest := m.figures.longest[name]
	order := slices.SortedFunc(maps.Keys(longest), func(a, b int) int {
		return cmp.Or(cmp.Compare(longest[b].Wait, longest[a].Wait), cmp.Compare(a, b))
	})
	for _, person := range order[:min(len(order), longestPeople)] {
		one := longest[person]
		one.Person = people[person]
		p.Longest = append(p.Longest, one)
	}
	return p
}

// personNames returns the names of all people by their number: the name of their
// group and their number in it.
func (m *simulation) personNames() (names []string) {
	for _, group := range slices.Sorted(maps.Keys(m.scenario.People)) {
		for i := range m.scenario.People[group].Count {
			names = append(names, fmt.Sprintf("%s %d", group, i+1))
		}
	}
	return names
}

// summarizeWaits sorts waits and returns their figures.
func summarizeWaits(waits []time.Duration) Waits {
	if len(waits) == 0 {
		return Waits{}
	}
	slices.Sort(waits)
	sum := 0.0
	for _, w := range waits {
		sum += w.Seconds()
	}
	// percentile returns the smallest wait that p percent of the runs do not exceed.
	percentile := func(p int) float64 { return waits[(len(waits)*p+99)/100-1].Seconds() }
	return Waits{
		Mean:    sum / float64(len(waits)),
		P50:     percentile(50),
		P95:     percentile(95),
		P99:     percentile(99),
		Longest: waits[len(waits)-1].Seconds(),
	}
}
