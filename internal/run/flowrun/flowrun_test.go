package flowrun_test

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"atelier/internal/base/dispatch"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/catalog/catalog"
	"atelier/internal/engine"
	"atelier/internal/file/library"
	"atelier/internal/run/flowrun"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
)

// studio is an installation with flows. Its tests play the worker.
type studio struct {
	*generationtest.Installation
	decider *flowrun.Decider
	result  int // so that each result differs
}

const picture = "output: {type: IMG, mime_types: [image/png]}\n"

// manifests are the tools of a studio.
var manifests = map[string]string{
	"sketch": "price: {type: COST, tokens: 2}\nnum_results: {min: 1, max: 4}\n" + picture + "engine: {name: script}\n" +
		"fields: [{key: prompt, type: PROMPT, label: P}, {key: seed, type: SEED, label: S}]\n",
	"enlarge": "price: {type: COST, tokens: 3}\n" + picture + "engine: {name: script}\n" +
		"fields: [{key: picture, type: IMG, label: P, required: true}, {key: factor, type: NUM, label: F, integer: true, min: 1, max: 8, default: 2}]\n",
	"collage": "price: {type: COST, tokens: 1}\n" + picture + "engine: {name: script}\n" +
		"fields: [{key: pictures, type: IMGS, label: P, required: true, max_items: 12}]\n",
	"poster": picture + "fields:\n- {key: prompt, type: PROMPT, label: P, required: true}\n- {key: many, type: NUM, label: N, integer: true, min: 1, max: 4, default: 2}\n" +
		"- {key: large, type: BOOLEAN, label: L, default: true}\n" + `engine:
  name: flow
  with:
    steps:
    - id: draft
      tool: sketch
      inputs: {prompt: {field: prompt}}
      num_results: {field: many}
    - id: large
      tool: enlarge
      for_each: {step: draft}
      max: 4
      drop: true
      when: {field: large, is: true}
      inputs: {picture: {item: true}, factor: 4}
    - id: sheet
      tool: collage
      inputs: {pictures: {first_of: [{step: large, result: all}, {step: draft, result: all}]}}
`,
	"safe": picture + "fields:\n- {key: picture, type: IMG, label: P, required: true}\n" + `engine:
  name: flow
  with:
    steps:
    - id: large
      tool: enlarge
      inputs: {picture: {field: picture}}
      otherwise: {tool: collage, inputs: {pictures: {field: picture}}}
`,
	"outer": picture + "fields:\n- {key: prompt, type: PROMPT, label: P, required: true}\n" + `engine:
  name: flow
  with:
    steps:
    - id: inner
      tool: poster
      inputs: {prompt: {field: prompt}, many: 1}
    - id: large
      tool: enlarge
      inputs: {picture: {step: inner}}
`,
}

func eachStudio(t *testing.T, fn func(s *studio)) {
	t.Helper()
	generationtest.EachInstallation(t, generationtest.Unlimited, func(h *generationtest.Installation) {
		h.Apply(manifests)
		fn(&studio{Installation: h, decider: &flowrun.Decider{DB: h.DB, Runs: h.Runs, Log: slog.New(slog.DiscardHandler), Loop: dispatch.NewLoop()}})
		h.Tidy()
	})
}

// decide lets the flows go on as far as they can without a worker.
func (s *studio) decide() {
	s.Helper()
	for range 20 {
		s.Pass(time.Millisecond)
		s.decider.DecideDue(s.Context())
		if s.Count(`SELECT count(*) FROM flow_run WHERE due <= $1`, s.Now().UnixMicro()) == 0 {
			return
		}
	}
	s.Fatal("the flows do not come to rest")
}

// work claims the next run, which must be of the given tool, and ends it. A
// failure is an error text, or "" for success.
func (s *studio) work(slug, failure string) run.Run {
	s.Helper()
	s.Pass(time.Second)
	r := s.Claim("worker")
	if want := s.Tool(slug).ID; r.ToolID != want {
		s.Fatalf("claimed a run of %s, want %s", s.Catalog.CurrentSnapshot().ToolName(r.ToolID), slug)
	}
	s.Pass(time.Second)
	end := generation.Outcome{State: run.Failed, ErrorCode: string(engine.Failed), ErrorText: failure}
	if failure == "" {
		end = generation.Outcome{State: run.Succeeded, Results: s.results(r.NumResults), Took: time.Second}
	}
	s.OK(s.Runs.EndRun(s.Context(), r, end))
	s.decide()
	return s.Run(r.ID)
}

func (s *studio) results(n int64) (all []generation.StoredResult) {
	for range n {
		s.result++
		all = append(all, generation.StoredResult{StoredFile: s.Take(generationtest.PNG(s.result))})
	}
	return all
}

// begin creates a run of a flow and lets its first steps start.
func (s *studio) begin(personID, slug string, inputs map[string]any, change func(*generation.Draft)) run.Run {
	s.Helper()
	d := s.Draft(generationtest.Own(personID), slug)
	d.Inputs = inputs
	if change != nil {
		change(&d)
	}
	r := s.Create(d)
	s.decide()
	return r
}

func (s *studio) record(id string) generation.Record {
	s.Helper()
	r := s.Run(id)
	rec, err := s.Runs.GetStatus(s.Context(), r.AccountID, id)
	s.OK(err)
	return rec
}

// steps describes the steps of a flow, as in "draft succeeded, large[1] queued".
func (s *studio) steps(id string) string {
	s.Helper()
	var all []string
	for _, step := range s.record(id).Steps {
		text := step.Step
		if step.Otherwise {
			text += "/otherwise"
		}
		if step.Place > 0 {
			text += "[" + string(rune('0'+step.Place)) + "]"
		}
		if step.Reused {
			text += " reused"
		}
		all = append(all, text+" "+string(step.Run.State))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func (s *studio) wantBalance(personID string, available, held int64) {
	s.Helper()
	if b := s.Balance(personID); b.Tokens != available || b.Held != held {
		s.Errorf("balance = %d available, %d held, want %d, %d", b.Tokens, b.Held, available, held)
	}
	if v, err := s.DB.VerifyChecks(s.Context(), generationtest.Checks); err != nil || len(v) != 0 {
		s.Errorf("checks = %v, %v", v, err)
	}
}

func (s *studio) wantSteps(id, want string) {
	s.Helper()
	if got := s.steps(id); got != want {
		s.Errorf("steps = %s\nwant  = %s", got, want)
	}
}

func TestFlowRunsItsSteps(t *testing.T) {
	eachStudio(t, func(s *studio) {
		anna := s.Person(100)
		r := s.begin(anna, "poster", map[string]any{"prompt": "a fox"}, nil)
		s.wantSteps(r.ID, "draft queued")
		queues := dbtest.Get(s.Fixture, func(tx *sqldb.Tx) ([]run.Queue, error) { return run.Queues(s.Context(), tx) })
		if len(queues) != 1 || queues[0].Engine != "script" || queues[0].Waiting != 1 || queues[0].Active != 0 {
			s.Errorf("queues = %+v, want one step that waits", queues)
		}
		s.wantBalance(anna, 100-11, 11) // 2 sketches of 2, 2 enlargements of 3, 1 collage

		s.work("sketch", "")
		s.wantSteps(r.ID, "draft succeeded, large queued, large[1] queued")
		s.wantBalance(anna, 100-11, 11-4)
		s.work("enlarge", "")
		if rec := s.record(r.ID); rec.Progress == nil || *rec.Progress < 300 || *rec.Progress > 900 || rec.Started.IsZero() {
			s.Errorf("progress = %v, started %v", rec.Progress, rec.Started)
		}
		s.work("enlarge", "")
		s.wantSteps(r.ID, "draft succeeded, large succeeded, large[1] succeeded, sheet queued")
		sheet := s.work("collage", "")

		rec := s.record(r.ID)
		if rec.State != run.Succeeded || rec.TokensCharged != 11 || len(rec.Outputs) != 1 {
			s.Fatalf("flow = %s %q, charged %d, %d results", rec.State, rec.ErrorText, rec.TokensCharged, len(rec.Outputs))
		}
		s.wantBalance(anna, 89, 0)
		if rec.Outputs[0].Library != sheet.LibraryID {
			s.Error("the result of the flow is not that of its last step")
		}
		if sheet.Prompt != "a fox" {
			s.Errorf("prompt of the last step = %q, want that of the flow", sheet.Prompt)
		}
		if n := s.Count(`SELECT count(*) FROM result WHERE intermediate AND deleted IS NULL`); n != 2 {
			s.Errorf("%d intermediate results are left, want the 2 drafts", n)
		}
		if n := s.Count(`SELECT count(*) FROM result WHERE intermediate AND deleted IS NOT NULL`); n != 2 {
			s.Errorf("%d intermediate results were dropped, want the 2 enlargements", n)
		}
		if n := s.Count(`SELECT count(*) FROM rate_log`); n != 1 {
			s.Errorf("the flow counts as %d creates", n)
		}
	})
}

func TestFlowSkipsSteps(t *testing.T) {
	eachStudio(t, func(s *studio) {
		anna := s.Person(100)
		r := s.begin(anna, "poster", map[string]any{"prompt": "a fox", "large": false, "many": int64(1)}, nil)
		s.wantBalance(anna, 97, 3)
		s.work("sketch", "")
		s.work("collage", "")
		if rec := s.record(r.ID); rec.State != run.Succeeded || rec.TokensCharged != 3 {
			s.Errorf("flow = %s, charged %d", rec.State, rec.TokensCharged)
		}
		s.wantBalance(anna, 97, 0)
	})
}

func TestFailedStepEndsFlow(t *testing.T) {
	eachStudio(t, func(s *studio) {
		anna := s.Person(100)
		r := s.begin(anna, "poster", map[string]any{"prompt": "a fox"}, func(d *generation.Draft) { d.WebhookURL = "https://example.com/hook" })
		s.work("sketch", "")
		s.work("enlarge", "The machine is on fire.")
		rec := s.record(r.ID)
		if want := "The step large (item 1, enlarge) failed: The machine is on fire."; rec.State != run.Failed || rec.ErrorText != want {
			s.Errorf("flow = %s %q, want %q", rec.State, rec.ErrorText, want)
		}
		s.wantSteps(r.ID, "draft succeeded, large failed, large[1] cancelled")
		s.wantBalance(anna, 96, 0)
		if n := s.Count(`SELECT count(*) FROM webhook_event`); n != 1 {
			s.Errorf("%d webhook events, want 1", n)
		}

		// A retry takes over what has succeeded, and pays only for the rest.
		again := s.begin(anna, "poster", map[string]any{"prompt": "a fox"}, func(d *generation.Draft) { d.RetryOf = r.ID })
		s.wantSteps(again.ID, "draft reused succeeded, large queued, large[1] queued")
		s.work("enlarge", "")
		s.work("enlarge", "")
		s.work("collage", "")
		if rec := s.record(again.ID); rec.State != run.Succeeded || rec.TokensCharged != 7 || rec.Seed != r.Seed {
			s.Errorf("retry = %s, charged %d, seed %d, want %d", rec.State, rec.TokensCharged, rec.Seed, r.Seed)
		}
		s.wantBalance(anna, 89, 0)

		// With other inputs nothing is taken over.
		other := s.begin(anna, "poster", map[string]any{"prompt": "an owl"}, func(d *generation.Draft) { d.RetryOf = r.ID })
		s.wantSteps(other.ID, "draft queued")
	})
}

func TestOtherwise(t *testing.T) {
	eachStudio(t, func(s *studio) {
		anna := s.Person(100)
		file := s.Take(generationtest.PNG(1))
		inputs := map[string]any{"picture": map[string]any{"kind": "MULTIPART", "file_index": int64(0)}}
		r := s.begin(anna, "safe", inputs, func(d *generation.Draft) { d.Files = append(d.Files, file) })
		s.wantBalance(anna, 96, 4)
		s.work("enlarge", "Too small.")
		s.wantSteps(r.ID, "large failed, large/otherwise queued")
		s.work("collage", "")
		if rec := s.record(r.ID); rec.State != run.Succeeded || rec.TokensCharged != 1 {
			s.Errorf("flow = %s %s, charged %d", rec.State, rec.ErrorText, rec.TokensCharged)
		}
		s.wantBalance(anna, 99, 0)
	})
}

func TestCancelReachesAllSteps(t *testing.T) {
	eachStudio(t, func(s *studio) {
		anna := s.Person(100)
		r := s.begin(anna, "outer", map[string]any{"prompt": "a fox"}, nil)
		s.work("sketch", "")
		running := s.Claim("worker")
		_, _, err := s.Runs.CancelRun(s.Context(), generationtest.Own(anna), r.ID)
		s.OK(err)
		s.decide()
		if !s.Run(running.ID).Cancel {
			s.Error("the running step was not cancelled")
		}
		if s.Run(r.ID).State.IsEnded() {
			s.Error("the flow ended before its step")
		}
		s.OK(s.Runs.EndRun(s.Context(), running, generation.Outcome{State: run.Cancelled}))
		s.decide()
		s.Pass(time.Minute)
		s.decide()
		if rec := s.record(r.ID); rec.State != run.Cancelled {
			s.Errorf("flow = %s %s", rec.State, s.steps(r.ID))
		}
		s.wantBalance(anna, 98, 0)
	})
}

func TestFlowInFlow(t *testing.T) {
	eachStudio(t, func(s *studio) {
		anna := s.Person(100)
		r := s.begin(anna, "outer", map[string]any{"prompt": "a fox"}, nil)
		for _, tool := range []string{"sketch", "enlarge", "collage", "enlarge"} {
			s.work(tool, "")
		}
		rec := s.record(r.ID)
		if rec.State != run.Succeeded || len(rec.Outputs) != 1 {
			s.Fatalf("flow = %s %q: %s", rec.State, rec.ErrorText, s.steps(r.ID))
		}
		if rec.TokensCharged != 9 || rec.Steps[0].Run.TokensCharged != 6 || rec.Started.IsZero() {
			s.Errorf("the flow cost %d, the flow in it %d; started %v", rec.TokensCharged, rec.Steps[0].Run.TokensCharged, rec.Started)
		}
		s.wantBalance(anna, 100-9, 0)
	})
}

// TestReusedFlowInFlow checks that a flow in a flow is taken over as a whole, and
// that lists show its results once.
func TestReusedFlowInFlow(t *testing.T) {
	eachStudio(t, func(s *studio) {
		anna := s.Person(100)
		inputs := map[string]any{"prompt": "a fox"}
		r := s.begin(anna, "outer", inputs, nil)
		for _, tool := range []string{"sketch", "enlarge", "collage"} {
			s.work(tool, "")
		}
		s.work("enlarge", "Too large.")
		for range 2 {
			again := s.begin(anna, "outer", inputs, func(d *generation.Draft) { d.RetryOf = r.ID })
			s.wantSteps(again.ID, "inner reused succeeded, large queued")
			s.work("enlarge", "")
		}
		s.wantBalance(anna, 100-6-2*3, 0)
		all, err := s.Runs.ListRuns(s.Context(), anna, run.Filter{}, nil, 10)
		s.OK(err)
		for _, rec := range all {
			if one := s.record(rec.ID); len(rec.Steps[0].Outputs) != 1 || len(one.Steps[0].Outputs) != 1 || len(rec.Outputs) != len(one.Outputs) {
				s.Errorf("the step has %d results in a list and %d by itself", len(rec.Steps[0].Outputs), len(one.Steps[0].Outputs))
			}
		}
	})
}

func TestFlowRefusals(t *testing.T) {
	eachStudio(t, func(s *studio) {
		poor := s.Person(10)
		d := s.Draft(generationtest.Own(poor), "poster")
		d.Inputs = map[string]any{"prompt": "a fox"}
		if _, err := s.Runs.CreateRun(s.Context(), d); !fault.Is(err, fault.InsufficientBalance) {
			s.Errorf("without tokens: %v", err)
		}
		cost, err := s.Runs.PriceDraft(s.Context(), d)
		if err != nil || cost.Tokens != 11 || cost.Blocked == "" {
			s.Errorf("price = %+v, %v", cost, err)
		}
		stale := d
		s.Apply(with(manifests, "enlarge", strings.Replace(manifests["enlarge"], "tokens: 3", "tokens: 4", 1)))
		if _, err := s.Runs.CreateRun(s.Context(), stale); !fault.Is(err, fault.ToolSchemaStale) {
			s.Errorf("after a tool of the flow has changed: %v", err)
		}
		if s.Tool("poster").Price.Tokens != 4*2+4*4+1 {
			s.Errorf("price of the flow = %d", s.Tool("poster").Price.Tokens)
		}
		d = s.Draft(generationtest.Own(poor), "poster")
		blocked := generationtest.Own(poor)
		blocked.Role.ToolsBlocked = []string{s.Tool("collage").ID}
		d.Principal = blocked
		if _, err := s.Runs.CreateRun(s.Context(), d); !fault.Is(err, fault.Forbidden) || !strings.Contains(err.Error(), "step sheet") {
			s.Errorf("without permission for a step: %v", err)
		}
		s.remove("collage")
		d.Principal = generationtest.Own(poor)
		if _, err := s.Runs.CreateRun(s.Context(), d); !fault.Is(err, fault.Forbidden) || !strings.Contains(err.Error(), "step sheet") {
			s.Errorf("after a tool of the flow was removed: %v", err)
		}
	})
}

// remove removes a tool from the catalog, although flows name it.
func (s *studio) remove(slug string) {
	s.Helper()
	files := fstest.MapFS{}
	for one, text := range manifests {
		if one != slug {
			files[one+".yaml"] = &fstest.MapFile{Data: []byte("name: " + one + "\n" + text)}
		}
	}
	set, err := catalog.Read(catalog.ManifestFolder{Source: catalog.Directory, Files: files})
	s.OK(err)
	_, err = catalog.Apply(s.Context(), s.DB, set)
	s.OK(err)
	_, err = s.Catalog.RefreshSnapshot(s.Context())
	s.OK(err)
}

func with(all map[string]string, slug, text string) map[string]string {
	changed := map[string]string{slug: text}
	for one, manifest := range all {
		if one != slug {
			changed[one] = manifest
		}
	}
	return changed
}

// TestToolChangesUnderFlow checks that a flow that was accepted goes on with the
// versions of its tools that it was accepted with.
func TestToolChangesUnderFlow(t *testing.T) {
	eachStudio(t, func(s *studio) {
		anna := s.Person(100)
		r := s.begin(anna, "poster", map[string]any{"prompt": "a fox", "many": int64(1)}, nil)
		old := s.Tool("enlarge").Hash
		s.Apply(with(manifests, "enlarge", strings.Replace(manifests["enlarge"], "tokens: 3", "tokens: 40", 1)))
		s.work("sketch", "")
		large := s.work("enlarge", "")
		if large.ToolHash != old || large.TokensCharged != 3 {
			s.Errorf("the step ran with the new version for %d tokens", large.TokensCharged)
		}
		s.work("collage", "")
		if rec := s.record(r.ID); rec.State != run.Succeeded {
			s.Errorf("flow = %s %s", rec.State, rec.ErrorText)
		}
	})
}

func TestRecordOfFlow(t *testing.T) {
	eachStudio(t, func(s *studio) {
		anna := s.Person(100)
		r := s.begin(anna, "poster", map[string]any{"prompt": "a fox", "many": int64(1)}, nil)
		revision := s.record(r.ID).Revision
		s.work("sketch", "")
		rec := s.record(r.ID)
		if rec.Revision <= revision {
			s.Error("the revision of the flow did not grow")
		}
		revisions := dbtest.Get(s.Fixture, func(tx *sqldb.Tx) ([]run.Revision, error) {
			return run.PendingRevisions(s.Context(), tx, []string{anna})
		})
		if len(revisions) != 1 || revisions[0].Number != rec.Revision {
			s.Errorf("revisions = %v, want that of the flow, %d", revisions, rec.Revision)
		}
		text, err := json.Marshal(rec.RunJSON(library.URLSigner{Key: []byte("k"), BaseURL: "http://x", Lifetime: time.Hour, Now: s.Now}, anna))
		s.OK(err)
		for _, want := range []string{`"step":"draft"`, `"status":"succeeded"`, `"intermediate":true`, `"tool_name":"sketch"`, `"tokens_charged":2`} {
			if !strings.Contains(string(text), want) {
				s.Errorf("the record lacks %s: %s", want, text)
			}
		}
		all, err := s.Runs.ListRuns(s.Context(), anna, run.Filter{}, nil, 10)
		if err != nil || len(all) != 1 {
			s.Errorf("%d runs are listed, %v", len(all), err)
		}
	})
}

// TestFlowChecksFindDamage breaks each rule about flows once.
func TestFlowChecksFindDamage(t *testing.T) {
	eachStudio(t, func(s *studio) {
		anna := s.Person(100)
		ended := s.begin(anna, "poster", map[string]any{"prompt": "a fox", "large": false, "many": int64(1)}, nil)
		s.work("sketch", "")
		s.work("collage", "")
		r := s.begin(anna, "poster", map[string]any{"prompt": "a fox", "many": int64(1)}, nil)
		s.work("sketch", "")
		large := s.record(r.ID).Steps[1].Run.ID
		found := map[string]bool{}
		const totals = "the totals of an ended flow are those of its steps, and a pending flow has none"
		for _, c := range []struct {
			check, damage string
			args          []any
		}{
			{"every flow, and no other run, has a row that says when its steps are decided", `DELETE FROM flow_run WHERE run_id = $1`, []any{r.ID}},
			{"a pending flow is due or waits for a step, and an ended one is not due", `UPDATE flow_run SET due = 1 WHERE run_id = $1`, []any{ended.ID}},
			{"a pending flow is due or waits for a step, and an ended one is not due", `DELETE FROM flow_step WHERE run_id = $1`, []any{large}},
			{"all steps of a flow that has ended have ended", `UPDATE run SET parent_id = $1 WHERE id = $2`, []any{ended.ID, large}},
			{"a run of a step belongs to one flow, with its account and person", `UPDATE run SET parent_id = NULL, account_id = 'other' WHERE id = $1`, []any{r.ID}},
			{"a step of a flow is a run of the flow, or a finished run that it took over", `UPDATE flow_step SET reused = TRUE WHERE run_id = $1`, []any{large}},
			{"the steps of a flow hold no more than the flow", `UPDATE run SET tokens_held = 100 WHERE id = $1`, []any{large}},
			{totals, `UPDATE flow_run SET tokens_charged = tokens_charged + 1 WHERE run_id = $1`, []any{ended.ID}},
			{totals, `UPDATE flow_run SET allowance_used = 1 WHERE run_id = $1`, []any{r.ID}},
			{totals, `UPDATE flow_run SET results = 0 WHERE run_id = $1`, []any{ended.ID}},
			{totals, `UPDATE flow_run SET started = NULL WHERE run_id = $1`, []any{ended.ID}},
			{totals, `UPDATE flow_step SET reused = TRUE WHERE flow_id = $1`, []any{ended.ID}},
			{"a flow that succeeded has results, and no other flow", `UPDATE flow_step SET delivered = NULL WHERE flow_id = $1`, []any{ended.ID}},
		} {
			if got := s.Damage(run.FlowChecks, c.damage, c.args...); !got[c.check] {
				s.Errorf("%s %v: found by %v, want %q", c.damage, c.args, got, c.check)
			}
			found[c.check] = true
		}
		for _, c := range run.FlowChecks {
			if !found[c.Name] {
				s.Errorf("nothing broke %q", c.Name)
			}
		}
	})
}
