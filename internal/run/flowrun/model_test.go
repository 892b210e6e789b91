package flowrun_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
)

// The tools of random flows, and their prices for one result.
var randomTools = map[string]string{
	"make":   "price: {type: COST, tokens: 2}\nnum_results: {min: 1, max: 3}\n" + picture + "engine: {name: script}\nfields: [{key: prompt, type: PROMPT, label: P}]\n",
	"change": "price: {type: COST, tokens: 3}\n" + picture + "engine: {name: script}\nfields: [{key: picture, type: IMG, label: P, required: true}]\n",
	"join":   "price: {type: COST, tokens: 5}\n" + picture + "engine: {name: script}\nfields: [{key: pictures, type: IMGS, label: P, required: true, max_items: 12}]\n",
}

var randomPrices = map[string]int64{"make": 2, "change": 3, "join": 5}

// modelStep is a step of a random flow.
type modelStep struct {
	id        string
	tool      string
	n         int64  // results of one run
	source    int    // step whose results it uses; -1: files of the form
	each      bool   // once per result of the source
	when      string // field, or ""
	otherwise string // "", skip or make
}

// randomFlow returns the steps of a random flow.
func randomFlow(random *rand.Rand) (steps []modelStep) {
	bounds := []int64{}
	for i := range 1 + random.IntN(6) {
		s := modelStep{id: fmt.Sprintf("s%d", i), n: 1, source: -1}
		s.tool = []string{"make", "change", "join"}[random.IntN(3)]
		if i > 0 && s.tool != "make" && random.IntN(5) > 0 {
			s.source = random.IntN(i)
		}
		bound := int64(1)
		if s.tool == "make" {
			s.n = 1 + random.Int64N(3)
			bound = s.n
		}
		if s.tool == "change" && s.source >= 0 && random.IntN(2) == 0 {
			s.each = true
			bound = bounds[s.source]
		}
		if i > 0 && random.IntN(4) == 0 {
			s.when = []string{"a", "b"}[random.IntN(2)]
		}
		s.otherwise = []string{"", "", "skip", "make"}[random.IntN(4)]
		bounds = append(bounds, bound)
		steps = append(steps, s)
	}
	last := modelStep{
		id:        fmt.Sprintf("s%d", len(steps)),
		tool:      "join",
		n:         1,
		source:    random.IntN(len(steps)),
		otherwise: []string{"", "make"}[random.IntN(2)],
	}
	return append(steps, last)
}

// manifest returns the flow as a manifest. A last step, which always runs, makes
// the result of the flow.
func manifest(steps []modelStep) string {
	var all []any
	for _, s := range steps {
		one := map[string]any{"id": s.id, "tool": s.tool}
		from := func(form string, pick any) any {
			if s.source < 0 {
				return map[string]any{"field": form}
			}
			return map[string]any{"first_of": []any{map[string]any{"step": steps[s.source].id, "result": pick}, map[string]any{"field": form}}}
		}
		switch {
		case s.tool == "make":
			one["num_results"] = s.n
		case s.tool == "join":
			one["inputs"] = map[string]any{"pictures": from("pictures", "all")}
		case s.each:
			one["for_each"] = map[string]any{"step": steps[s.source].id}
			one["max"] = 12
			one["inputs"] = map[string]any{"picture": map[string]any{"item": true}}
		default:
			one["inputs"] = map[string]any{"picture": from("picture", "first")}
		}
		if s.when != "" {
			one["when"] = map[string]any{"field": s.when, "is": true}
		}
		switch s.otherwise {
		case "skip":
			one["otherwise"] = "skip"
		case "make":
			one["otherwise"] = map[string]any{"tool": "make"}
		}
		all = append(all, one)
	}
	text, _ := json.Marshal(map[string]any{"name": "flow", "with": map[string]any{"steps": all}}) // maps of plain values
	return picture + "fields:\n- {key: picture, type: IMG, label: P, required: true}\n- {key: pictures, type: IMGS, label: P, required: true, max_items: 2}\n" +
		"- {key: a, type: BOOLEAN, label: A, default: false}\n- {key: b, type: BOOLEAN, label: B, default: false}\nengine: " + string(text) + "\n"
}

// modelKey identifies a run of a step, and modelRun is what the model knows of
// it.
type modelKey struct {
	step      int
	otherwise bool
	place     int64
}

type modelRun struct {
	state  run.State
	inputs string // which files it uses
	born   int    // identifies its results
	reused bool
	tokens int64
	n      int64
	cancel bool
}

// model runs a flow in memory.
type model struct {
	steps  []modelStep
	fields map[string]bool
	runs   map[modelKey]modelRun
	before map[modelKey]modelRun // of the run that this one takes up
	births *int
	cancel bool
	state  run.State
	held   int64 // at the start
}

// done returns the results of a step, each with its origin. ok is false if the
// step is not done.
func (m *model) done(i int) (results []string, ok bool) {
	s := m.steps[i]
	if s.when != "" && !m.fields[s.when] {
		return nil, true
	}
	items, ok := m.items(i)
	if !ok {
		return nil, false
	}
	for place := range items {
		key := modelKey{i, false, int64(place)}
		if m.runs[key].state == run.Failed && s.otherwise != "" {
			if s.otherwise == "skip" {
				continue
			}
			key.otherwise = true
		}
		r := m.runs[key]
		if r.state != run.Succeeded {
			return nil, false
		}
		for k := range r.n {
			results = append(results, fmt.Sprintf("%d.%d", r.born, k))
		}
	}
	return results, true
}

// items returns the files for which the runs of a step run: one for each item,
// as text.
func (m *model) items(i int) (items []string, ok bool) {
	s := m.steps[i]
	if s.source < 0 {
		return []string{"form"}, true
	}
	from, ok := m.done(s.source)
	switch {
	case !ok:
		return nil, false
	case s.each:
		return from, true
	case len(from) == 0:
		return []string{"form"}, true
	case s.tool == "join":
		return []string{fmt.Sprint(from)}, true
	}
	return from[:1], true
}

// advance starts what can start, and ends what must end.
func (m *model) advance() {
	for m.state == run.Running {
		failed := m.cancel
		var ready []modelKey
		inputs := map[modelKey]string{}
		for i, s := range m.steps {
			items, ok := m.items(i)
			if !ok || s.when != "" && !m.fields[s.when] {
				continue
			}
			for place, item := range items {
				key := modelKey{i, false, int64(place)}
				first := m.runs[key].state
				if first == run.Failed && s.otherwise == "make" {
					key.otherwise = true
					item = "none"
				}
				now, began := m.runs[key]
				switch {
				case !began:
					ready = append(ready, key)
					inputs[key] = item
				case now.state == run.Cancelled, now.state == run.Failed && (key.otherwise || s.otherwise == ""):
					failed = true
				}
			}
		}
		active := 0
		for key, r := range m.runs {
			if failed && r.state == run.Queued {
				r.state = run.Cancelled
				m.runs[key] = r
			}
			if failed && r.state == run.Running {
				r.cancel = true
				m.runs[key] = r
			}
			if !r.state.IsEnded() {
				active++
			}
		}
		switch {
		case failed && active == 0 && m.cancel:
			m.state = run.Cancelled
		case failed && active == 0:
			m.state = run.Failed
		case failed:
			return
		case len(ready) == 0 && active > 0:
			return
		case len(ready) == 0:
			results, _ := m.done(len(m.steps) - 1)
			m.state = run.Succeeded
			if len(results) == 0 {
				m.state = run.Failed
			}
		}
		isReused := false
		for _, key := range ready {
			if !failed {
				isReused = m.start(key, inputs[key]) || isReused
			}
		}
		if !isReused && len(ready) > 0 {
			return
		}
	}
}

// start starts a run, or takes over an earlier one.
func (m *model) start(key modelKey, inputs string) (reused bool) {
	s := m.steps[key.step]
	tool := s.tool
	n := s.n
	if key.otherwise {
		tool = "make"
		n = 1
	}
	if old, ok := m.before[key]; ok && old.state == run.Succeeded && (old.inputs == inputs || tool == "make") {
		old.reused = true
		old.tokens = 0
		m.runs[key] = old
		return true
	}
	*m.births++
	m.runs[key] = modelRun{state: run.Queued, inputs: inputs, born: *m.births, tokens: n * randomPrices[tool], n: n}
	return false
}

// bound returns the hold of the flow.
func (m *model) bound() (tokens int64) {
	counts := make([]int64, len(m.steps))
	for i, s := range m.steps {
		if s.when != "" && !m.fields[s.when] {
			continue
		}
		items := int64(1)
		if s.each {
			items = counts[s.source]
		}
		tokens += items * s.n * randomPrices[s.tool]
		counts[i] = items * s.n
		if s.otherwise == "make" {
			tokens += items * randomPrices["make"]
			counts[i] = max(counts[i], items)
		}
	}
	return tokens
}

// charged returns what the runs have cost, and held what is still held.
func (m *model) charged() (charged, held int64) {
	held = m.held
	for _, r := range m.runs {
		if r.state.IsEnded() {
			held -= r.tokens
		}
		if r.state == run.Succeeded {
			charged += r.tokens
		}
	}
	if m.state.IsEnded() {
		held = 0
	}
	return charged, held
}

func (m *model) describe() string {
	all := []string{}
	for key, r := range m.runs {
		all = append(all, fmt.Sprintf("%v %s %t", key, r.state, r.reused))
	}
	slices.Sort(all)
	return fmt.Sprint(m.state, all)
}

// TestRandomFlows runs random flows with random failures, cancellations, lost
// workers and retries, and compares states, results and balances with a model
// after every event.
func TestRandomFlows(t *testing.T) {
	flows := 60
	if testing.Short() {
		flows = 20
	}
	eachStudio(t, func(s *studio) {
		seed := uint64(time.Now().UnixNano())
		s.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 1))
		for i := range flows {
			c := &comparison{studio: s, random: random, person: s.Person(10_000), balance: 10_000}
			steps := randomFlow(random)
			text := manifest(steps)
			s.Apply(with(randomTools, "flow", text))
			c.run(steps)
			if s.Failed() {
				s.Fatalf("flow %d: %s", i, text)
			}
		}
	})
}

// comparison compares the runs of one flow with the model.
type comparison struct {
	*studio
	random  *rand.Rand
	person  string
	balance int64
	births  int
	file    string
}

func (c *comparison) run(steps []modelStep) {
	c.Helper()
	c.file = c.Upload(c.person, c.person, generationtest.PNG(1))
	ref := map[string]any{"kind": "UPLOAD_REF", "id": c.file}
	fields := map[string]bool{"a": c.random.IntN(2) == 0, "b": c.random.IntN(2) == 0}
	inputs := map[string]any{"picture": ref, "pictures": []any{ref, ref}, "a": fields["a"], "b": fields["b"]}
	var before map[modelKey]modelRun
	retryOf := ""
	for range 3 {
		m := &model{
			steps:  steps,
			fields: fields,
			runs:   map[modelKey]modelRun{},
			before: before,
			births: &c.births,
			state:  run.Running,
		}
		m.held = m.bound()
		flow := c.begin(c.person, "flow", inputs, func(d *generation.Draft) { d.RetryOf = retryOf })
		m.advance()
		c.compare(flow.ID, m)
		for events := 0; m.state == run.Running && !c.Failed() && events < 200; events++ {
			c.event(flow.ID, m)
			c.decide()
			c.Pass(3 * time.Second)
			c.decide()
			m.advance()
			c.compare(flow.ID, m)
		}
		charged, _ := m.charged()
		c.balance -= charged
		if m.state == run.Succeeded || c.Failed() {
			return
		}
		retryOf = flow.ID
		before = m.runs
	}
}

// event lets one thing happen.
func (c *comparison) event(flowID string, m *model) {
	c.Helper()
	rec := c.record(flowID)
	var queued, running []generation.StepRecord
	for _, step := range rec.Steps {
		switch step.Run.State {
		case run.Queued:
			queued = append(queued, step)
		case run.Running:
			running = append(running, step)
		default:
		}
	}
	what := c.random.IntN(20)
	switch {
	case what == 0:
		_, _, err := c.Runs.CancelRun(c.Context(), generationtest.Own(c.person), flowID)
		c.OK(err)
		m.cancel = true
	case len(running) > 0 && (what < 12 || len(queued) == 0):
		c.endOne(running[c.random.IntN(len(running))], m)
	case len(queued) > 0:
		c.Pass(time.Second)
		claimed := c.Claim("worker")
		i := slices.IndexFunc(queued, func(s generation.StepRecord) bool { return s.Run.ID == claimed.ID })
		key := keyOf(queued[i])
		r := m.runs[key]
		r.state = run.Running
		m.runs[key] = r
	}
}

// endOne ends a running run of a step: it succeeds, fails, notices that it was
// cancelled, or loses its worker.
func (c *comparison) endOne(step generation.StepRecord, m *model) {
	c.Helper()
	c.Pass(time.Second)
	key := keyOf(step)
	r := m.runs[key]
	end := generation.Outcome{State: run.Succeeded, Took: time.Second}
	switch what := c.random.IntN(10); {
	case r.cancel && what < 7:
		end = generation.Outcome{State: run.Cancelled}
	case what < 2:
		end = generation.Outcome{State: run.Failed, ErrorCode: "ENGINE_FAILED", ErrorText: "Failed."}
	case what == 2 && !r.cancel:
		c.Do(func(tx *sqldb.Tx) error { return run.RequeueLost(c.Context(), tx, []run.Run{step.Run}) })
		r.state = run.Queued
		m.runs[key] = r
		return
	default:
		end.Results = c.results(step.Run.NumResults)
	}
	c.OK(c.Runs.EndRun(c.Context(), step.Run, end))
	r.state = end.State
	m.runs[key] = r
}

func keyOf(s generation.StepRecord) (key modelKey) {
	_, _ = fmt.Sscanf(s.Step, "s%d", &key.step) // ids are given by randomFlow
	key.otherwise = s.Otherwise
	key.place = s.Place
	return key
}

// compare compares the flow with the model.
func (c *comparison) compare(flowID string, m *model) {
	c.Helper()
	rec := c.record(flowID)
	got := &model{state: rec.State, runs: map[modelKey]modelRun{}}
	for _, step := range rec.Steps {
		got.runs[keyOf(step)] = modelRun{state: step.Run.State, reused: step.Reused}
	}
	if got.describe() != m.describe() {
		c.Errorf("flow  = %s %s\nmodel = %s", got.describe(), rec.ErrorText, m.describe())
	}
	charged, held := m.charged()
	if b := c.Balance(c.person); b.Held != held || b.Tokens != c.balance-charged-held || rec.TokensCharged != charged {
		c.Errorf("balance = %+v, record charged %d; model: %d left, %d held, %d charged", b, rec.TokensCharged, c.balance-charged-held, held, charged)
	}
	if m.state == run.Succeeded {
		results, _ := m.done(len(m.steps) - 1)
		if len(rec.Outputs) != len(results) {
			c.Errorf("%d results, want %d", len(rec.Outputs), len(results))
		}
	}
}
