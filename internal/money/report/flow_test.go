package report_test

import (
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/dispatch"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/money/report"
	"atelier/internal/people/principal"
	"atelier/internal/run/flowrun"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
)

const (
	picture = "output: {type: IMG, mime_types: [image/png]}\n"
	script  = picture + "engine: {name: script}\n"
	steps   = "engine: {name: flow, with: {steps: ["
)

// flowTools are tools and flows: print makes drafts and enlarges the first, and
// series has a print as its first step.
var flowTools = map[string]string{
	"sketch":  "price: {type: COST, tokens: 2}\nnum_results: {min: 1, max: 4}\n" + script + "fields: [{key: prompt, type: PROMPT, label: P}]\n",
	"enlarge": "price: {type: COST, tokens: 3}\n" + script + "fields: [{key: picture, type: IMG, label: P, required: true}]\n",
	"print": picture + "fields:\n- {key: prompt, type: PROMPT, label: P}\n- {key: many, type: NUM, label: N, integer: true, min: 1, max: 4, default: 2}\n" +
		steps + "{id: draft, tool: sketch, inputs: {prompt: {field: prompt}}, num_results: {field: many}}, {id: large, tool: enlarge, inputs: {picture: {step: draft}}}], results: [draft, large]}}\n",
	"series": picture + "fields: [{key: prompt, type: PROMPT, label: P}]\n" +
		steps + "{id: first, tool: print, inputs: {prompt: {field: prompt}}}, {id: last, tool: enlarge, inputs: {picture: {step: first}}}], results: [first, last]}}\n",
}

// flowFixture is an installation whose tests play the worker of flows.
type flowFixture struct {
	fixture
	decider *flowrun.Decider
}

func eachFlowFixture(t *testing.T, begin time.Time, allowance int64, fn func(w flowFixture)) {
	t.Helper()
	dbtest.EachFixture(t, generationtest.Checks, func(d dbtest.Fixture) {
		d.Pass(begin.Sub(d.Now()))
		h := generationtest.New(d, func(s *generation.Settings) { generationtest.Unlimited(s); s.MonthlyAllowance = allowance })
		h.Apply(flowTools)
		fn(flowFixture{fixture{h}, &flowrun.Decider{DB: h.DB, Runs: h.Runs, Log: slog.New(slog.DiscardHandler), Loop: dispatch.NewLoop()}})
	})
}

// decide lets the flows go on as far as they can without a worker.
func (w flowFixture) decide() {
	w.Helper()
	for range 20 {
		w.Pass(time.Millisecond)
		w.decider.DecideDue(w.Context())
		if w.Count(`SELECT count(*) FROM flow_run WHERE due <= $1`, w.Now().UnixMicro()) == 0 {
			return
		}
	}
	w.Fatal("the flows do not come to rest")
}

func (w flowFixture) start(who principal.Principal, slug, prompt, retryOf string) run.Run {
	w.Helper()
	d := w.Draft(who, slug)
	d.Inputs = map[string]any{"prompt": prompt}
	d.RetryOf = retryOf
	r := w.Create(d)
	w.decide()
	return r
}

// work claims the next run and ends it after two seconds.
func (w flowFixture) work(success bool) {
	w.Helper()
	w.Pass(time.Second)
	r := w.Claim("worker")
	w.Pass(2 * time.Second)
	if success {
		w.succeed(r, int(r.NumResults))
	} else {
		w.fail(r)
	}
	w.decide()
}

func (w flowFixture) stop(who principal.Principal, id string) {
	w.Helper()
	_, _, err := w.Runs.CancelRun(w.Context(), who, id)
	w.OK(err)
	w.decide()
}

// flows returns the flows that people started and that have ended, with the
// totals that their records show.
func (w flowFixture) flows() (all []report.EndedRun) {
	w.Helper()
	ids := dbtest.Get(w.Fixture, func(tx *sqldb.Tx) ([]string, error) {
		return sqldb.All(w.Context(), tx, `SELECT id FROM run WHERE engine = 'flow' AND parent_id IS NULL AND status <> 'pending'`, nil, func(row sqldb.Scanner) (id string, err error) {
			err = row.Scan(&id)
			return id, err
		})
	})
	for _, id := range ids {
		r := w.Run(id)
		rec, err := w.Runs.GetStatus(w.Context(), r.AccountID, id)
		w.OK(err)
		all = append(all, report.EndedRun{
			CompanyID: r.CompanyID, TeamID: r.TeamID, PersonID: r.PersonID, ToolID: r.ToolID, Status: r.State.PublicStatus(), Results: int64(len(rec.Outputs)),
			TokensCharged: rec.TokensCharged, AllowanceUsed: rec.AllowanceUsed, Started: rec.Started, Finished: rec.Finished,
		})
	}
	return all
}

func TestUsageByFlow(t *testing.T) {
	eachFlowFixture(t, time.Date(2026, 11, 15, 22, 0, 0, 0, time.UTC), 5, func(w flowFixture) {
		companyID := w.Company()
		anna := generationtest.In(w.Person(0), w.TeamOf(companyID, 1000))
		q := report.Query{CompanyID: companyID}
		prints, series := w.Tool("print").ID, w.Tool("series").ID
		want := func(what, flow string, c report.Count) {
			w.Helper()
			rows := w.usage(q, []report.Dimension{report.Flow}, 10)
			i := slices.IndexFunc(rows, func(r report.Row) bool { return r.FlowID == flow })
			if i < 0 {
				w.Fatalf("%s: no row among %+v", what, rows)
			}
			c.Took = rows[i].Took // agree compares it
			if rows[i].Count != c || c.Took < time.Second {
				w.Errorf("%s: %+v, want %+v", what, rows, c)
			}
			w.agree(q)
		}

		w.start(anna, "print", "a fox", "")
		if rows := w.usage(q, []report.Dimension{report.Flow}, 10); len(rows) != 0 {
			w.Errorf("a flow that runs: %+v", rows)
		}
		w.work(true)
		w.work(true)
		c := report.Count{Runs: 1, Succeeded: 1, Results: 3, TokensCharged: 2, AllowanceUsed: 5}
		want("a flow that succeeded", prints, c)

		failed := w.start(anna, "print", "an owl", "")
		w.work(true)
		w.work(false)
		c.Runs++
		c.Failed++
		c.TokensCharged += 4
		want("a flow that failed half way", prints, c)

		w.start(anna, "print", "an owl", failed.ID)
		w.work(true)
		c.Runs++
		c.Succeeded++
		c.Results += 3
		c.TokensCharged += 3
		want("a retry that took over a step", prints, c)

		stopped := w.start(anna, "print", "a hen", "")
		w.stop(anna, stopped.ID)
		w.Pass(time.Minute)
		w.decide()
		c.Runs++
		c.Cancelled++
		want("a flow that was cancelled before its first step", prints, c)

		outer := w.start(anna, "series", "a cat", "")
		w.work(true)
		w.work(true)
		w.work(false)
		want("a flow in a flow that failed is no flow that succeeded", prints, c)
		s := report.Count{Runs: 1, Failed: 1, TokensCharged: 7}
		want("a flow in a flow", series, s)

		w.start(anna, "series", "a cat", outer.ID)
		w.work(true)
		s.Runs++
		s.Succeeded++
		s.Results += 4
		s.TokensCharged += 3
		want("a retry that took over a flow", series, s)

		w.start(generationtest.Own(w.Person(100)), "print", "a dog", "") // of no company
		w.work(true)
		w.work(true)
		w.agree(q)
		for _, zone := range []string{"Europe/Paris", "Asia/Tokyo", "UTC"} {
			w.setZone(companyID, zone)
			w.agree(q)
			want("in "+zone, series, s)
		}
		for _, d := range []report.Dimension{report.Tool, report.Plugin, report.Credential} {
			by := []report.Dimension{report.Day, report.Flow, d}
			if problem := report.GroupProblem(by); !strings.Contains(problem, string(d)) {
				w.Errorf("the problem with %v is %q", by, problem)
			}
			err := w.DB.Read(w.Context(), func(tx *sqldb.Tx) error { _, err := report.Usage(w.Context(), tx, q, by, nil, 1); return err })
			if err == nil {
				w.Errorf("a report by %v", by)
			}
		}
	})
}

// agree holds the report by flow against the records, and against the reports on
// runs: everything in the fixture is a flow or a step, so the costs are equal.
func (w flowFixture) agree(q report.Query) {
	w.Helper()
	by := []report.Dimension{report.Flow, report.Day}
	rows, total := count(w.flows(), q, by, w.zone(q.CompanyID))
	if got := w.usage(q, by, 2); !slices.Equal(got, rows) {
		w.Errorf("by flow and day: %+v\nwant %+v", got, rows)
	}
	flows, runs := w.total(q, report.Flow), w.total(q)
	if flows != total {
		w.Errorf("flows = %+v, want %+v", flows, total)
	}
	var tools report.Count
	for _, row := range w.usage(q, []report.Dimension{report.Tool}, 10) {
		tools.TokensCharged += row.TokensCharged
		tools.AllowanceUsed += row.AllowanceUsed
		tools.Runs += row.Runs
	}
	if tools.TokensCharged != runs.TokensCharged || tools.AllowanceUsed != runs.AllowanceUsed || tools.Runs != runs.Runs {
		w.Errorf("tools = %+v, want %+v", tools, runs)
	}
	if w.Count(`SELECT count(*) FROM run WHERE status = 'pending'`) == 0 && (flows.TokensCharged != runs.TokensCharged || flows.AllowanceUsed != runs.AllowanceUsed) {
		w.Errorf("flows = %+v, but runs = %+v", flows, runs)
	}
}

// TestFlowReportsEqualTheRecords has random flows end in random ways, and
// compares reports of all kinds with the records of the flows.
func TestFlowReportsEqualTheRecords(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	eachFlowFixture(t, time.Date(2018, 11, 2, 20, 11, 3, 456789000, time.UTC), 20, func(w flowFixture) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		companyID := w.Company()
		w.setZone(companyID, "America/Sao_Paulo")
		teams := []string{w.TeamOf(companyID, 100_000), w.TeamOf(companyID, 100_000), w.TeamOf(w.Company(), 100_000)}
		people := []string{w.Person(0), w.Person(0), w.Person(0)}
		started := map[string]principal.Principal{}
		var ids []string
		for len(ids) < 60 || w.Count(`SELECT count(*) FROM run WHERE status = 'pending'`) > 0 {
			w.Pass(time.Duration(rnd.Int64N(int64(40 * time.Minute))))
			w.decide()
			switch dice := rnd.IntN(10); {
			case len(ids) < 60 && dice < 3:
				who := generationtest.In(people[rnd.IntN(len(people))], teams[rnd.IntN(len(teams))])
				slug, retryOf := []string{"print", "series"}[rnd.IntN(2)], ""
				if len(ids) > 0 && rnd.IntN(3) == 0 {
					retryOf = ids[rnd.IntN(len(ids))]
					who = started[retryOf]
					slug = w.slugOf(retryOf)
					if !w.Run(retryOf).State.IsEnded() {
						continue
					}
				}
				r := w.start(who, slug, "a fox", retryOf)
				started[r.ID] = who
				ids = append(ids, r.ID)
			case len(ids) > 0 && dice == 3:
				id := ids[rnd.IntN(len(ids))]
				if !w.Run(id).State.IsEnded() {
					w.stop(started[id], id)
				}
			case w.Count(`SELECT count(*) FROM run WHERE stage = 'queued'`) > 0:
				w.work(rnd.IntN(5) > 0)
			}
		}
		all := w.flows()
		if len(all) != 60 {
			w.Fatalf("%d flows have ended", len(all))
		}
		q := report.Query{CompanyID: companyID}
		for _, zone := range []string{"", "Asia/Kathmandu", "Pacific/Apia", "UTC", "America/Sao_Paulo"} {
			if zone != "" {
				w.setZone(companyID, zone)
			}
			filters := report.Query{TeamID: teams[rnd.IntN(3)], ToolID: w.Tool("series").ID, Email: people[rnd.IntN(3)] + "@example.com"}
			w.compareGroups(rnd, all, q, ofFlows, filters)
			w.compareGroups(rnd, w.ended(), q, ofRuns, filters)
		}
		w.agree(q)
		w.Do(func(tx *sqldb.Tx) error { return report.Recount(w.Context(), tx, companyID) })
		w.agree(q)
	})
}

func (w flowFixture) slugOf(id string) string {
	w.Helper()
	if w.Run(id).ToolID == w.Tool("print").ID {
		return "print"
	}
	return "series"
}

// TestFlowChecksSeeWhatIsWrong breaks each rule about the totals of flows.
func TestFlowChecksSeeWhatIsWrong(t *testing.T) {
	eachFlowFixture(t, time.Date(2026, 11, 15, 9, 0, 0, 0, time.UTC), 0, func(w flowFixture) {
		who := generationtest.In(w.Person(0), w.TeamOf(w.Company(), 100))
		w.start(who, "print", "a fox", "")
		w.work(true)
		w.work(true)
		const match, ends = "the totals of flows match the flows", "a total counts flows, each with one final state"
		for damage, want := range map[string][]string{
			`UPDATE report_flow SET tokens_charged = tokens_charged + 1`: {match},
			`UPDATE report_flow SET took_ms = took_ms + 1`:               {match},
			`UPDATE report_flow SET person_id = 'x'`:                     {match},
			`UPDATE report_flow SET succeeded = 0`:                       {match, ends},
			`UPDATE report_flow SET results = -1`:                        {match, ends},
			`DELETE FROM report_flow`:                                    {match},
			`UPDATE flow_run SET results = results + 1`:                  {match},
		} {
			found := w.Damage(report.Checks, damage)
			for _, name := range want {
				if !found[name] {
					w.Errorf("%s: not found by %q", damage, name)
				}
			}
			if len(found) != len(want) {
				w.Errorf("%s: found %v, want %q", damage, found, want)
			}
		}
	})
}
