package simulate_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"atelier/internal/operate/simulate"
)

func read(t *testing.T, text string) simulate.Scenario {
	t.Helper()
	s, err := simulate.ReadScenario(strings.NewReader(text), simulate.Changes{Rate: 1})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func run(t *testing.T, s simulate.Scenario, seed uint64) simulate.Result {
	t.Helper()
	r, err := simulate.Simulate(t.Context(), s, seed)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// many has so many people that their requests together are a Poisson process.
const many = `
duration: 2000h
active_runs: 1000
workers: {one: {count: 1}}
engines: {model: {parallel: 1}}
tools: {draw: {engine: model, duration: 60s}}
people: {all: {count: 1000, requests_per_minute: 0.0008, tools: {draw: 1}}}
`

// TestWaitsFollowQueueingTheory compares the mean wait for one place with the
// formula of Pollaczek and Khinchine, which holds for every order that does not
// depend on the durations.
func TestWaitsFollowQueueingTheory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, variation string
		want            float64 // load · duration · (1 + variation²) / (2 · (1 - load)), in seconds
	}{
		{"equal durations", "variation: 0", 0.8 * 60 / (2 * 0.2)},
		{"varying durations", "variation: 1", 0.8 * 60 * 2 / (2 * 0.2)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := read(t, strings.Replace(many, "duration: 60s", "duration: 60s, "+c.variation, 1))
			pool := run(t, s, 1).Pools[0]
			if got := pool.Wait.Mean; math.Abs(got-c.want) > 0.1*c.want {
				t.Errorf("mean wait = %.1f s, want about %.1f s", got, c.want)
			}
			if got := pool.Utilisation; math.Abs(got-0.8) > 0.02 {
				t.Errorf("utilisation = %.3f, want about 0.8", got)
			}
		})
	}
}

// busy has more work than its pool can do, from one person with many runs and
// others with few.
const busy = `
duration: 2h
active_runs: 50
workers: {gpu: {count: 2, pools: [gpu]}, small: {count: 1, pools: [cpu]}}
engines:
  flux: {pool: gpu, parallel_per_node: 2}
  image: {pool: cpu, parallel_per_node: 1}
tools:
  poster: {engine: flux, duration: 30s, variation: 0.2}
  resize: {engine: image, duration: 1s}
people:
  batch: {count: 1, requests_per_minute: 2, runs: 10, tools: {poster: 1}}
  designers: {count: 20, requests_per_minute: 0.1, tools: {poster: 3, resize: 1}}
`

// TestOnePersonDelaysNobodyElse holds that the waits of people with few runs stay
// short, however many runs one person queues.
func TestOnePersonDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	r := run(t, read(t, busy), 1)
	batch, designers := r.People[0], r.People[1]
	if batch.Name != "batch" || designers.Name != "designers" {
		t.Fatalf("groups %s and %s", batch.Name, designers.Name)
	}
	if batch.Wait.P50 < 60 || designers.Wait.P99 > batch.Wait.P50 {
		t.Errorf("batch waits %.1f s (p50), designers %.1f s (p99)", batch.Wait.P50, designers.Wait.P99)
	}
	if batch.Refused == 0 || designers.Refused != 0 || r.Refused != batch.Refused {
		t.Errorf("refused: batch %d, designers %d, all %d", batch.Refused, designers.Refused, r.Refused)
	}
	if batch.Waiting == 0 {
		t.Error("no run waits at the end")
	}

	cpu, gpu := r.Pools[0], r.Pools[1]
	if cpu.Name != "cpu" || cpu.Workers != 1 || cpu.Capacity != 1 || gpu.Name != "gpu" || gpu.Workers != 2 || gpu.Capacity != 4 {
		t.Errorf("pools %+v and %+v", cpu, gpu)
	}
	if gpu.Utilisation < 0.95 || gpu.Utilisation > 1 || cpu.Utilisation > 0.1 {
		t.Errorf("utilisation: gpu %.2f, cpu %.2f", gpu.Utilisation, cpu.Utilisation)
	}
	if first := gpu.Longest[0]; first.Person != "batch 1" || first.Tool != "poster" || first.Wait != gpu.Wait.Longest || len(gpu.Longest) != 5 {
		t.Errorf("longest waits %+v", gpu.Longest)
	}
	if r.Created != batch.Runs+batch.Refused+designers.Runs || batch.Runs+designers.Runs != cpu.Runs+gpu.Runs {
		t.Errorf("the sums differ: %+v", r)
	}
}

// TestSeedRepeatsResult holds that a result depends on the scenario and the seed
// alone.
func TestSeedRepeatsResult(t *testing.T) {
	t.Parallel()
	first := run(t, read(t, busy), 5)
	if again := run(t, read(t, busy), 5); !reflect.DeepEqual(again, first) {
		t.Errorf("the same seed gives\n%+v\nand\n%+v", first, again)
	}
	if other := run(t, read(t, busy), 6); other.Pools[1].Wait == first.Pools[1].Wait {
		t.Error("another seed gives the same waits")
	}
}

// TestCapacity compares the places of an engine with those that the workers have
// for an entry of the backends file.
func TestCapacity(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		engine string
		want   int
	}{
		{"{}", 1},
		{"{parallel: 4}", 4},
		{"{parallel_per_node: 2}", 6},
		{"{parallel: 4, parallel_per_node: 2}", 4},
		{"{parallel: 9, parallel_per_node: 2}", 6},
	} {
		text := strings.Replace(many, "{parallel: 1}", c.engine, 1)
		text = strings.Replace(text, "one: {count: 1}", "one: {count: 3}", 1)
		text = strings.Replace(text, "2000h", "1h", 1)
		if got := run(t, read(t, text), 1).Pools[0].Capacity; got != c.want {
			t.Errorf("%s: capacity = %d, want %d", c.engine, got, c.want)
		}
	}
}

// TestChanges applies changes to a scenario.
func TestChanges(t *testing.T) {
	t.Parallel()
	change := func(c simulate.Changes) (simulate.Scenario, error) {
		return simulate.ReadScenario(strings.NewReader(busy), c)
	}
	s, err := change(simulate.Changes{Rate: 2, Duration: time.Hour, Workers: map[string]int{"gpu": 5}})
	if err != nil {
		t.Fatal(err)
	}
	if s.Duration != time.Hour || s.Workers["gpu"].Count != 5 || s.People["batch"].RequestsPerMinute != 4 || s.People["batch"].Until != time.Hour {
		t.Errorf("changed to %+v", s)
	}
	if _, err := change(simulate.Changes{Rate: 1, Workers: map[string]int{"gpus": 5}}); err == nil || err.Error() != "workers: there is no entry gpus" {
		t.Errorf("unknown workers: %v", err)
	}
	if _, err := change(simulate.Changes{Rate: 1, Workers: map[string]int{"gpu": 0}}); err == nil || err.Error() != "engines: flux: no worker serves the pool gpu" {
		t.Errorf("no workers: %v", err)
	}
}

// TestProblems finds all problems of scenarios.
func TestProblems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, old, new, want string }{
		{"too long", "2h", "9000h", "duration: must be more than 0 and at most 8784h"},
		{"unknown key", "active_runs", "active_run", "field active_run not found"},
		{"no active run", "active_runs: 50", "active_runs: -1", "active_runs: must be at least 1"},
		{"unknown pool", "pools: [cpu]", "pools: [cpus]", "workers: small: pools: no engine is in the pool cpus"},
		{"unknown engine", "engine: image", "engine: picture", `tools: resize: engine: there is no engine "picture"`},
		{"unknown tool", "poster: 3", "posters: 3", "people: designers: tools: there is no tool posters"},
		{"no weight", "{poster: 1}", "{poster: 0}", "people: batch: tools: at least one tool with a weight above 0 is required"},
		{"no duration", "duration: 1s", "duration: 0s", "tools: resize: duration: must be more than 0 and at most 24h"},
		{"priority", "runs: 10", "priority: 11", "people: batch: priority: must be from -10 to 10"},
		{"times", "runs: 10", "from: 1h, until: 30m", "people: batch: from and until: must be within the duration, in this order"},
		{"not a number", "requests_per_minute: 2", "requests_per_minute: .nan", "people: batch: requests_per_minute: must be more than 0 and at most 6000"},
		{"too many runs", "requests_per_minute: 2,", "requests_per_minute: 6000,", "the people would create about 7200240 runs, the maximum is 5000000; choose a shorter duration"},
	} {
		text := strings.Replace(busy, c.old, c.new, 1)
		if text == busy {
			t.Fatalf("%s: nothing is replaced", c.name)
		}
		_, err := simulate.ReadScenario(strings.NewReader(text), simulate.Changes{Rate: 1})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	_, err := simulate.ReadScenario(strings.NewReader(""), simulate.Changes{Rate: 1})
	for _, want := range []string{"duration: ", "workers: at least one", "engines: at least one", "tools: at least one", "people: at least one"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("an empty scenario: %v, want %s", err, want)
		}
	}
}
