package chaos

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

// Names of the flows.
const (
	fan     = "Fan"     // a list of results, and a step that may fail
	careful = "Careful" // steps with replacements
	nested  = "Nested"  // both flows as steps
)

// flowFields are the fields of every flow: what its steps do, and how many
// results the first one is asked for.
const flowFields = `output: {type: IMG, mime_types: [image/png]}
fields:
  - {key: make, type: TEXT_AREA, label: Make, max_length: 10000}
  - {key: change, type: TEXT_AREA, label: Change, max_length: 10000}
  - {key: attempt, type: TEXT_AREA, label: Attempt, max_length: 10000}
  - {key: spare, type: TEXT_AREA, label: Spare, max_length: 10000}
  - {key: join, type: TEXT_AREA, label: Join, max_length: 10000}
  - {key: many, type: NUM, label: Many, integer: true, min: 1, max: 3, default: 1}
`

// flowManifests are the flows by the names of their files.
var flowManifests = map[string]string{
	"fan.yaml": "name: " + fan + "\n" + flowFields + `engine:
  name: flow
  with:
    steps:
      - {id: make, tool: scripted, inputs: {script: {field: make}}, num_results: {field: many}}
      - {id: change, tool: scripted, for_each: {step: make}, max: 4, inputs: {script: {field: change}, picture: {item: true}}}
      - {id: attempt, tool: scripted, inputs: {script: {field: attempt}}, otherwise: skip}
      - {id: join, tool: scripted, inputs: {script: {field: join}, picture: {step: change}}}
    results: [change, join]
`,
	"careful.yaml": "name: " + careful + "\n" + flowFields + `engine:
  name: flow
  with:
    steps:
      - id: attempt
        tool: scripted
        inputs: {script: {field: attempt}}
        otherwise: {tool: scripted, inputs: {script: {field: spare}}}
      - id: change
        tool: scripted
        for_each: {step: attempt}
        max: 4
        inputs: {script: {field: change}, picture: {item: true}}
        otherwise: {tool: scripted, inputs: {script: {field: spare}}}
      - {id: join, tool: scripted, inputs: {script: {field: join}, picture: {step: change}}}
`,
	"nested.yaml": "name: " + nested + "\n" + flowFields + `engine:
  name: flow
  with:
    steps:
      - id: careful
        tool: careful
        inputs: {change: {field: change}, attempt: {field: attempt}, spare: {field: spare}, join: {field: join}}
      - id: fan
        tool: fan
        inputs: {make: {field: make}, change: {field: change}, attempt: {field: attempt}, join: {field: join}, many: {field: many}}
      - {id: join, tool: scripted, inputs: {script: {field: join}, picture: {step: fan}}}
    results: [join, careful]
`,
}

// flowPoints are the crash points that are reached only with flows.
var flowPoints = []string{"flow.before_commit", "flow.after_advance"}

// TestFlowChaos has clients at work, most of them with flows, while the program
// is killed again and again: at random moments, and while it decides about the
// next steps of a flow.
func TestFlowChaos(t *testing.T) {
	t.Parallel()
	for i, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			w := newInstallation(t, engine, 1+i, chosenSeed(t), load{
				flowShare: 80,
				noEvents:  true, // those of flows are in TestChaos; the lease of an event outlives its sender by half a minute
				perMinute: 60,
				perHour:   600,
				perFault:  6,
			})
			w.storm(w.killInFlows)
			w.judge()
			t.Logf("%s, seed %d: %s; %s; %s", engine, w.seed, w.summary(), w.faultSummary(), w.flowSummary())
		})
	}
}

// killInFlows kills processes, every second time at a crash point of flows.
func (w *installation) killInFlows(chance *rand.Rand) {
	for i := range *flowKills {
		<-time.After(between(chance, 100*time.Millisecond, 1500*time.Millisecond))
		if i%2 == 0 {
			w.crashAtPoint(flowPoints, chance)
		} else {
			w.kill(w.someServer(chance), between(chance, 0, 300*time.Millisecond))
		}
		w.check()
		w.rounds.Add(1)
	}
}

// flowPlan is what a flow shall do.
type flowPlan struct {
	name      string
	many      int // results that the step make is asked for
	delivered int // results that it delivers
	fails     map[string]bool
}

// flowOrder turns an order into one of a flow. Some go on from a run that has
// ended, with the same inputs.
func (c *client) flowOrder(o *order) {
	if before := c.retryable(); before != nil && c.chance.IntN(4) == 0 {
		o.account = before.account
		o.plan.flow = before.order.plan.flow
		o.inputs = before.order.inputs
		o.retryOf = before.id
	} else {
		c.planFlow(o)
	}
	tool := c.w.flows[o.plan.flow.name]
	body := map[string]any{
		"tool_id": tool.id, "tool_fields_hash": tool.hash, "inputs": o.inputs,
		"metadata": map[string]any{"order": o.id},
	}
	if o.retryOf != "" {
		body["retry_of"] = o.retryOf
	}
	if o.plan.webhook {
		body["webhook_url"] = "https://" + c.w.sinkProxy.address + "/hook"
	}
	var err error
	if o.body, err = json.Marshal(body); err != nil {
		c.w.t.Error(err)
	}
}

// retryable is the newest run of a flow of which the client knows that it has
// ended, or nil.
func (c *client) retryable() *ticket {
	for _, run := range slices.Backward(c.runs) {
		if run.isEnded && run.order.plan.flow != nil {
			return run
		}
	}
	return nil
}

// planFlow thinks of what a flow shall do.
func (c *client) planFlow(o *order) {
	p := &flowPlan{name: []string{fan, careful, nested}[c.chance.IntN(3)], many: 1 + c.chance.IntN(3)}
	p.delivered = 1 + c.chance.IntN(p.many)
	p.fails = map[string]bool{
		"make":    c.chance.IntN(15) == 0,
		"change":  c.chance.IntN(8) == 0,
		"attempt": c.chance.IntN(3) == 0,
		"join":    c.chance.IntN(12) == 0,
	}
	o.plan.flow = p
	o.inputs = map[string]any{"many": p.many}
	for _, field := range []string{"make", "change", "attempt", "spare", "join"} {
		s := plan{
			delivered: 1,
			fails:     p.fails[field],
			echoes:    field == "change" || field == "join",
			brief:     c.chance.IntN(4) > 0, // all of them together would take too long
		}
		if field == "make" {
			s.delivered = p.delivered
		}
		o.inputs[field] = c.script(s)
	}
}

// hold is what a run of the flow holds: the price of all that it may have to do.
// What a flow in the flow is asked for is not known then.
func (p *flowPlan) hold() int64 {
	const (
		carefulRuns = 5
		fanRuns     = 4 + 4 + 1 + 1
	)
	switch p.name {
	case fan:
		return int64(p.many+p.many+1+1) * unit
	case careful:
		return carefulRuns * unit
	}
	return (carefulRuns + fanRuns + 1) * unit
}

// stepEnd is how a run of a step ends if nobody cancels it.
type stepEnd struct {
	status  string
	results int64
}

// expect returns how the runs of the steps end that start if nobody cancels
// them, by their place, as in "change/1". Those of flows in the flow begin with
// the step and a dot.
func (p *flowPlan) expect() (steps map[string]stepEnd, status string) {
	switch p.name {
	case fan:
		return p.expectFan()
	case careful:
		return p.expectCareful()
	}
	steps = map[string]stepEnd{}
	add := func(id string, inner map[string]stepEnd, status string, results int) {
		end := stepEnd{status: status}
		if status == "succeeded" {
			end.results = int64(results)
		}
		steps[id+"/0"] = end
		for key, one := range inner {
			steps[id+"."+key] = one
		}
	}
	inner, carefulStatus := p.expectCareful()
	add("careful", inner, carefulStatus, 1)
	inner, fanStatus := p.expectFan()
	add("fan", inner, fanStatus, p.delivered+1)
	if fanStatus == "succeeded" {
		p.addStep(steps, "join", 0)
	}
	for _, id := range []string{"careful", "fan", "join"} {
		if steps[id+"/0"].status != "succeeded" {
			return steps, "failed"
		}
	}
	return steps, "succeeded"
}

func (p *flowPlan) expectFan() (steps map[string]stepEnd, status string) {
	steps = map[string]stepEnd{}
	p.addStep(steps, "attempt", 0) // the flow goes on without it
	if !p.addStep(steps, "make", 0) {
		return steps, "failed"
	}
	for i := range p.delivered {
		p.addStep(steps, "change", i)
	}
	if p.fails["change"] || !p.addStep(steps, "join", 0) {
		return steps, "failed"
	}
	return steps, "succeeded"
}

func (p *flowPlan) expectCareful() (steps map[string]stepEnd, status string) {
	steps = map[string]stepEnd{}
	for _, id := range []string{"attempt", "change"} {
		if !p.addStep(steps, id, 0) {
			steps[id+"/otherwise/0"] = stepEnd{status: "succeeded", results: 1}
		}
	}
	if !p.addStep(steps, "join", 0) {
		return steps, "failed"
	}
	return steps, "succeeded"
}

// addStep adds how a run of a step ends and reports whether it succeeds.
func (p *flowPlan) addStep(steps map[string]stepEnd, id string, place int) bool {
	end := stepEnd{status: "succeeded", results: 1}
	switch {
	case p.fails[id]:
		end = stepEnd{status: "failed"}
	case id == "make":
		end.results = int64(p.delivered)
	}
	steps[fmt.Sprintf("%s/%d", id, place)] = end
	return !p.fails[id]
}

// step is a run of a step, as the database has it.
type step struct {
	flow      string // the run of the flow that it belongs to
	top       string // the run that the client created
	key       string // its place, as in flowPlan.expect
	run       string
	isFlow    bool
	status    string
	held      int64
	charged   int64
	results   int64
	successes int64 // attempts that succeeded
}

// readSteps reads the runs of the steps of all flows.
func (w *installation) readSteps(runs map[string]record) {
	w.t.Helper()
	db := dbtest.Open(w.t, w.database)
	defer db.Close()
	w.steps = map[string]*step{}
	w.taken = map[string]map[string]string{}
	children := int64(0)
	err := db.Read(w.t.Context(), func(tx *sqldb.Tx) error {
		clear(w.steps)
		clear(w.taken)
		if err := tx.QueryRow(w.t.Context(), `SELECT count(*) FROM run WHERE parent_id IS NOT NULL`).Scan(&children); err != nil {
			return err
		}
		return tx.EachRow(w.t.Context(), `
			SELECT s.flow_id, s.step, s.otherwise, s.place, s.reused, r.id, r.engine = 'flow', r.status, r.tokens_held, coalesce(r.tokens_charged, 0), r.results,
				(SELECT count(*) FROM run_attempt a WHERE a.run_id = r.id AND a.outcome = 'succeeded')
			FROM flow_step s JOIN run r ON r.id = s.run_id`, nil, w.addStep)
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if int64(len(w.steps)) != children {
		w.t.Errorf("%d runs belong to flows, and %d are steps of them", children, len(w.steps))
	}
	for _, s := range w.steps {
		w.place(s)
		if runs[s.top] == nil {
			w.t.Errorf("step %s of run %s belongs to no run of a client", s.key, s.flow)
		}
	}
}

// addStep keeps a row of readSteps.
func (w *installation) addStep(row sqldb.Scanner) error {
	var s step
	var id string
	var otherwise, reused bool
	var place int64
	err := row.Scan(&s.flow, &id, &otherwise, &place, &reused, &s.run, &s.isFlow, &s.status, &s.held, &s.charged, &s.results, &s.successes)
	if err != nil {
		return err
	}
	s.key = fmt.Sprintf("%s/%d", id, place)
	if otherwise {
		s.key = fmt.Sprintf("%s/otherwise/%d", id, place)
	}
	if reused {
		if w.taken[s.flow] == nil {
			w.taken[s.flow] = map[string]string{}
		}
		w.taken[s.flow][s.key] = s.run
		return nil
	}
	if w.steps[s.run] != nil {
		w.t.Errorf("run %s is two steps", s.run)
	}
	w.steps[s.run] = &s
	return nil
}

// place finds the run of the client that a step belongs to, through the flow in
// which its flow is a step.
func (w *installation) place(s *step) {
	s.top = s.flow
	if outer := w.steps[s.flow]; outer != nil {
		s.top = outer.flow
		id, _, _ := strings.Cut(outer.key, "/")
		s.key = id + "." + s.key
	}
}

// stepsOf returns the runs of the steps of a flow, with those of flows in it.
func (w *installation) stepsOf(id string) (all []*step) {
	for _, s := range w.steps {
		if s.top == id {
			all = append(all, s)
		}
	}
	return all
}

// charged is what a run cost, with its steps.
func (w *installation) charged(id string, r record) int64 {
	if w.order(r).plan.flow == nil {
		return int64(r["tokens_charged"].(float64))
	}
	tokens := int64(0)
	for _, s := range w.stepsOf(id) {
		tokens += s.charged
	}
	return tokens
}

// judgeFlow holds how a flow and its steps ended against what they were to do.
func (w *installation) judgeFlow(id string, r record, p *flowPlan, cancelled bool) {
	want, end := p.expect()
	status := r["status"].(string)
	if status != end && (status != "cancelled" || !cancelled) {
		w.t.Errorf("flow %s was to end as %s: %+v: %v", id, end, p, r)
	}
	if got := int64(r["tokens_charged"].(float64)); got != w.charged(id, r) || r["tokens_held"] != 0.0 {
		w.t.Errorf("flow %s (%s) cost %d tokens and holds %v; its steps cost %d", id, p.name, got, r["tokens_held"], w.charged(id, r))
	}
	if (status == "succeeded") != (len(r["outputs"].([]any)) > 0) {
		w.t.Errorf("flow %s ended as %s with %d results", id, status, len(r["outputs"].([]any)))
	}
	said := map[string]string{}
	steps, _ := r["steps"].([]any) // a flow that was cancelled at once has none
	for _, one := range steps {
		v := one.(map[string]any)
		said[v["request_id"].(string)] = v["status"].(string)
	}
	seen := map[string]bool{}
	for _, s := range w.stepsOf(id) {
		if seen[s.key] {
			w.t.Errorf("flow %s has the step %s twice", id, s.key)
		}
		seen[s.key] = true
		w.judgeStep(s, want[s.key])
		if s.flow == id && said[s.run] != s.status {
			w.t.Errorf("step %s of flow %s ended as %s, and the flow says %q", s.key, id, s.status, said[s.run])
		}
		if s.status == "cancelled" && status == "succeeded" {
			w.t.Errorf("step %s of flow %s was cancelled, and the flow succeeded", s.key, id)
		}
	}
	w.judgeTaken(id, r, seen, said)
	missing := slices.DeleteFunc(slices.Collect(maps.Keys(want)), func(key string) bool { return seen[key] || w.isTaken(id, key) })
	if status == "succeeded" && len(missing) > 0 {
		w.t.Errorf("flow %s succeeded without the steps %v", id, missing)
	}
}

// judgeTaken expects a flow to have taken over what the run before had finished,
// and nothing else.
func (w *installation) judgeTaken(id string, r record, seen map[string]bool, said map[string]string) {
	before := w.order(r).retryOf
	finished := maps.Clone(w.taken[before])
	if finished == nil {
		finished = map[string]string{}
	}
	for _, s := range w.steps {
		if s.flow == before && s.status == "succeeded" {
			finished[s.key] = s.run
		}
	}
	for key, run := range w.taken[id] {
		if finished[key] != run || seen[key] || said[run] != "succeeded" {
			w.t.Errorf("flow %s took over run %s as step %s, which was run %q before, and says %q of it", id, run, key, finished[key], said[run])
		}
	}
	for key := range finished {
		if seen[key] {
			w.t.Errorf("flow %s did the step %s again", id, key)
		}
	}
}

// isTaken reports whether a flow took over a step, or the flow in which it is.
// A flow in the flow takes over steps as well.
func (w *installation) isTaken(id, key string) bool {
	outer, inner, _ := strings.Cut(key, ".")
	for _, s := range w.steps {
		if s.flow == id && s.key == outer+"/0" && w.taken[s.run][inner] != "" {
			return true
		}
	}
	return w.taken[id][key] != "" || w.taken[id][outer+"/0"] != ""
}

// judgeStep holds a run of a step against what it was to do. A run that was
// cancelled with its flow may have done less.
func (w *installation) judgeStep(s *step, want stepEnd) {
	if want.status == "" || s.status != want.status && s.status != "cancelled" {
		w.t.Errorf("step %s of flow %s ended as %s, want %q", s.key, s.top, s.status, want.status)
		return
	}
	results, successes := int64(0), int64(0)
	if s.status == "succeeded" && !s.isFlow {
		results, successes = want.results, 1
	}
	if s.results != results || s.charged != results*unit || s.successes != successes {
		w.t.Errorf("step %s of flow %s ended as %s with %d results for %d tokens and %d successful attempts, want %d, %d and %d",
			s.key, s.top, s.status, s.results, s.charged, s.successes, results, results*unit, successes)
	}
}

// part is what a run still held when it ended. Its steps had got the rest.
func (w *installation) part(id string, held int64) int64 {
	for _, s := range w.steps {
		if s.flow == id {
			held -= s.held
		}
	}
	return held
}

// flowSummary says how the flows ended, in a line.
func (w *installation) flowSummary() string {
	n := map[string]int{}
	for _, s := range w.steps {
		n[s.status]++
	}
	for _, all := range w.taken {
		n["taken over"] += len(all)
	}
	return fmt.Sprintf("flows: %v, %d retries; steps: %v", w.flowEnds, w.retries, n)
}

// withoutLinks is a record whose steps have results without addresses, which are
// made at each read.
func withoutLinks(r record) record {
	steps, ok := r["steps"].([]any)
	if !ok {
		return r
	}
	r = maps.Clone(r)
	var all []any
	for _, one := range steps {
		s := maps.Clone(one.(map[string]any))
		var outputs []any
		for _, output := range s["outputs"].([]any) {
			o := maps.Clone(output.(map[string]any))
			for _, name := range []string{"url", "thumb_url", "preview_url"} {
				delete(o, name)
			}
			outputs = append(outputs, o)
		}
		s["outputs"] = outputs
		all = append(all, s)
	}
	r["steps"] = all
	return r
}
