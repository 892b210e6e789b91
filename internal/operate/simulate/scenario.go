package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"atelier/internal/run/generation"
)

// Scenario describes an installation and the runs that people create on it. The
// names of its fields are those of the settings, the backends file and the
// manifests that they stand for.
type Scenario struct {
	// Duration is the simulated time.
	Duration time.Duration `yaml:"duration"`
	// PriorityStep is the setting runs.priority_step. Default: 1 min.
	PriorityStep *time.Duration `yaml:"priority_step"`
	// ActiveRuns is the setting limits.active_runs. Default: 10.
	ActiveRuns int `yaml:"active_runs"`

	Workers map[string]Workers `yaml:"workers"` // by a name of the operator's choice
	Engines map[string]Engine  `yaml:"engines"` // by the name in manifests
	Tools   map[string]Tool    `yaml:"tools"`
	People  map[string]People  `yaml:"people"` // by a name of the operator's choice
}

// Workers are nodes with the role worker and equal settings.
type Workers struct {
	Count int      `yaml:"count"`
	Pools []string `yaml:"pools"` // the setting pools; all pools if empty
}

// Engine is an entry of the backends file, or a built-in engine.
type Engine struct {
	Pool            string `yaml:"pool"`              // default: default
	Parallel        int    `yaml:"parallel"`          // concurrent runs of all nodes together; 0 if it is not set
	ParallelPerNode int    `yaml:"parallel_per_node"` // concurrent runs of one node; 0 if it is not set
}

// Tool is a tool whose runs take a known time.
type Tool struct {
	Engine   string        `yaml:"engine"`
	Duration time.Duration `yaml:"duration"` // mean duration of a run
	// Variation is the standard deviation of the durations divided by their
	// mean. The durations follow a log-normal distribution; with 0 all are equal.
	Variation float64 `yaml:"variation"`
	Priority  int64   `yaml:"priority"` // as in the manifest
}

// People are a group of people who work alike.
type People struct {
	Count int `yaml:"count"`
	// RequestsPerMinute is the mean rate at which each person makes requests.
	// The requests are independent of each other (a Poisson process).
	RequestsPerMinute float64 `yaml:"requests_per_minute"`
	// Runs is the number of runs that each request creates at once. Default: 1.
	Runs int `yaml:"runs"`
	// Tools has the tools that the people choose from, with their weights.
	Tools    map[string]float64 `yaml:"tools"`
	Priority int64              `yaml:"priority"` // of the people's role, as in runs.role_priorities
	From     time.Duration      `yaml:"from"`     // simulated time of the first requests
	Until    time.Duration      `yaml:"until"`    // simulated time of the last requests; default: the end
}

// Limits on the size of a scenario, which keep the memory of a simulation below
// about a gigabyte.
const (
	maxPeople = 100_000
	maxRuns   = 5_000_000
)

const (
	defaultStep       = time.Minute
	defaultActiveRuns = 10
	defaultPool       = "default"
)

// Changes replace parts of a scenario, to compare it with others.
type Changes struct {
	Duration time.Duration  // 0: as in the scenario
	Rate     float64        // factor for the requests of all people
	Workers  map[string]int // number of workers by their name
}

// ReadScenario reads a scenario in YAML, applies changes to it and fills in its
// defaults. The returned error lists all problems of the scenario.
func ReadScenario(r io.Reader, c Changes) (Scenario, error) {
	var s Scenario
	d := yaml.NewDecoder(r)
	d.KnownFields(true)
	if err := d.Decode(&s); err != nil && !errors.Is(err, io.EOF) {
		return Scenario{}, err
	}
	if err := s.apply(c); err != nil {
		return Scenario{}, err
	}
	s.fillDefaults()
	return s, s.validate()
}

func (s *Scenario) apply(c Changes) error {
	s.Duration = cmp.Or(c.Duration, s.Duration)
	for name, p := range s.People {
		p.RequestsPerMinute *= c.Rate
		s.People[name] = p
	}
	for name, count := range c.Workers {
		w, ok := s.Workers[name]
		if !ok {
			return fmt.Errorf("workers: there is no entry %s", name)
		}
		w.Count = count
		s.Workers[name] = w
	}
	return nil
}

func (s *Scenario) fillDefaults() {
	if s.PriorityStep == nil {
		step := defaultStep
		s.PriorityStep = &step
	}
	s.ActiveRuns = cmp.Or(s.ActiveRuns, defaultActiveRuns)
	for name, e := range s.Engines {
		e.Pool = cmp.Or(e.Pool, defaultPool)
		s.Engines[name] = e
	}
	for name, p := range s.People {
		p.Runs = cmp.Or(p.Runs, 1)
		p.Until = cmp.Or(p.Until, s.Duration)
		s.People[name] = p
	}
}

// validate returns an error that lists all problems of the scenario.
func (s Scenario) validate() error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if s.Duration <= 0 || s.Duration > 366*24*time.Hour {
		bad("duration: must be more than 0 and at most 8784h")
	}
	if s.PriorityStep == nil || *s.PriorityStep < 0 || *s.PriorityStep > 24*time.Hour {
		bad("priority_step: must be from 0 to 24h")
	}
	if s.ActiveRuns < 1 {
		bad("active_runs: must be at least 1")
	}
	for what, n := range map[string]int{"workers": len(s.Workers), "engines": len(s.Engines), "tools": len(s.Tools), "people": len(s.People)} {
		if n == 0 {
			bad("%s: at least one entry is required", what)
		}
	}
	for name, w := range s.Workers {
		if w.Count < 0 || w.Count > 10_000 {
			bad("workers: %s: count: must be from 0 to 10000", name)
		}
		for _, pool := range w.Pools {
			if !slices.ContainsFunc(slices.Collect(maps.Values(s.Engines)), func(e Engine) bool { return e.Pool == pool }) {
				bad("workers: %s: pools: no engine is in the pool %s", name, pool)
			}
		}
	}
	for name, e := range s.Engines {
		if min(e.Parallel, e.ParallelPerNode) < 0 || max(e.Parallel, e.ParallelPerNode) > 1000 {
			bad("engines: %s: parallel and parallel_per_node must be from 0 to 1000", name)
		}
		if s.capacity(name) == 0 {
			bad("engines: %s: no worker serves the pool %s", name, e.Pool)
		}
	}
	for name, t := range s.Tools {
		if _, ok := s.Engines[t.Engine]; !ok {
			bad("tools: %s: engine: there is no engine %q", name, t.Engine)
		}
		if t.Duration <= 0 || t.Duration > 24*time.Hour {
			bad("tools: %s: duration: must be more than 0 and at most 24h", name)
		}
		if !(t.Variation >= 0 && t.Variation <= 10) {
			bad("tools: %s: variation: must be from 0 to 10", name)
		}
		if t.Priority < -generation.MaxPriority || t.Priority > generation.MaxPriority {
			bad("tools: %s: priority: must be from -%d to %d", name, generation.MaxPriority, generation.MaxPriority)
		}
	}
	people := 0
	for name, p := range s.People {
		problems = append(problems, s.validatePeople(name, p)...)
		people += p.Count
	}
	if people > maxPeople {
		bad("people: there are %d, the maximum is %d", people, maxPeople)
	}
	if n := s.expectedRuns(); n > maxRuns {
		bad("the people would create about %.0f runs, the maximum is %d; choose a shorter duration", n, maxRuns)
	}
	slices.SortFunc(problems, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(problems...)
}

func (s Scenario) validatePeople(name string, p People) (problems []error) {
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("people: %s: %s", name, fmt.Sprintf(format, args...)))
	}
	if p.Count < 1 || p.Count > maxPeople {
		bad("count: must be from 1 to %d", maxPeople)
	}
	if !(p.RequestsPerMinute > 0 && p.RequestsPerMinute <= 6000) {
		bad("requests_per_minute: must be more than 0 and at most 6000")
	}
	if p.Runs < 1 || p.Runs > 1000 {
		bad("runs: must be from 1 to 1000")
	}
	if p.Priority < -generation.MaxPriority || p.Priority > generation.MaxPriority {
		bad("priority: must be from -%d to %d", generation.MaxPriority, generation.MaxPriority)
	}
	if p.From < 0 || p.From >= p.Until || p.Until > s.Duration {
		bad("from and until: must be within the duration, in this order")
	}
	sum := 0.0
	for tool, weight := range p.Tools {
		if _, ok := s.Tools[tool]; !ok {
			bad("tools: there is no tool %s", tool)
		}
		if !(weight >= 0 && weight <= 1e6) {
			bad("tools: %s: the weight must be from 0 to 1000000", tool)
		}
		sum += weight
	}
	if !(sum > 0) {
		bad("tools: at least one tool with a weight above 0 is required")
	}
	return problems
}

// expectedRuns returns the mean number of runs that all people create.
func (s Scenario) expectedRuns() (n float64) {
	for _, p := range s.People {
		n += float64(p.Count) * p.RequestsPerMinute * (p.Until - p.From).Minutes() * float64(p.Runs)
	}
	if math.IsNaN(n) {
		return math.Inf(1)
	}
	return n
}

// capacity returns the number of runs of an engine that all workers together
// execute at the same time.
func (s Scenario) capacity(engine string) int {
	e := s.Engines[engine]
	limit := e.Parallel
	perNode := cmp.Or(e.ParallelPerNode, e.Parallel)
	if perNode == 0 { // the default of model servers
		limit = 1
		perNode = 1
	}
	places := perNode * s.countWorkers(e.Pool)
	if limit > 0 {
		places = min(places, limit)
	}
	return places
}

// countWorkers returns the number of workers that serve a pool.
func (s Scenario) countWorkers(pool string) (n int) {
	for _, w := range s.Workers {
		if len(w.Pools) == 0 || slices.Contains(w.Pools, pool) {
			n += w.Count
		}
	}
	return n
}
