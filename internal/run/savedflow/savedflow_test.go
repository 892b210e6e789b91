package savedflow_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/dispatch"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/catalog"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
	"atelier/internal/run/flowrun"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
	"atelier/internal/run/savedflow"
)

// studio is an installation in which people save flows. Its tests play the
// worker.
type studio struct {
	*generationtest.Installation
	flows   *savedflow.Service
	decider *flowrun.Decider
	result  int // so that each result differs
}

const picture = "output: {type: IMG, mime_types: [image/png]}\nengine: {name: script}\n"

// tools returns the manifests of the tools of a studio. factor is the greatest
// factor of the tool enlarge.
func tools(factor int) map[string]string {
	return map[string]string{
		"sketch": "price: {type: COST, tokens: 2}\nnum_results: {min: 1, max: 4}\n" + picture +
			"fields: [{key: prompt, type: PROMPT, label: Prompt, required: true, max_length: 300}, {key: style, type: TEXT, label: Style}, {key: seed, type: SEED, label: S}]\n",
		"enlarge": "price: {type: COST, tokens: 3}\n" + picture +
			fmt.Sprintf("fields: [{key: picture, type: IMG, label: Picture, required: true}, {key: factor, type: NUM, label: F, integer: true, min: 1, max: %d, default: 2}]\n", factor),
		"collage": "price: {type: COST, tokens: 1}\n" + picture + "fields: [{key: pictures, type: IMGS, label: Pictures, required: true, max_items: 12}]\n",
	}
}

func eachStudio(t *testing.T, fn func(s *studio)) {
	t.Helper()
	generationtest.EachInstallation(t, generationtest.Unlimited, func(h *generationtest.Installation) {
		h.Apply(tools(8))
		fn(&studio{
			Installation: h,
			flows:        &savedflow.Service{DB: h.DB, Catalog: h.Catalog},
			decider:      &flowrun.Decider{DB: h.DB, Runs: h.Runs, Log: slog.New(slog.DiscardHandler), Loop: dispatch.NewLoop()},
		})
	})
}

// poster is a flow that draws and enlarges a picture.
func poster() savedflow.Draft {
	return savedflow.Draft{
		Name:   "Poster",
		Fields: []any{map[string]any{"key": "prompt", "type": "PROMPT", "label": "Prompt", "required": true, "max_length": int64(300)}},
		Steps: []any{
			map[string]any{"id": "draft", "tool": "sketch", "inputs": map[string]any{"prompt": map[string]any{"field": "prompt"}, "style": "bold"}},
			map[string]any{"id": "large", "tool": "enlarge", "inputs": map[string]any{"picture": map[string]any{"step": "draft"}, "factor": int64(4)}},
		},
	}
}

func (s *studio) save(p principal.Principal, d savedflow.Draft) savedflow.Flow {
	s.Helper()
	f, err := s.flows.Create(s.Context(), p, d)
	if err != nil {
		s.Fatal(describe(err))
	}
	return f
}

func (s *studio) wantCode(err error, code fault.Code, words string) {
	s.Helper()
	if !fault.Is(err, code) || !strings.Contains(describe(err), words) {
		s.Errorf("error = %s, want %s with %q", describe(err), code, words)
	}
}

// describe returns an error with its fields.
func describe(err error) string {
	if err == nil {
		return "none"
	}
	text := err.Error()
	var f *fault.Error
	if errors.As(err, &f) {
		for _, field := range f.Fields {
			text += "\n" + field.Path + ": " + field.Message
		}
	}
	return text
}

func (s *studio) view(p principal.Principal) *catalog.View {
	s.Helper()
	v, err := s.Catalog.ViewOf(s.Context(), generation.AudienceOf(p), p.AccountID)
	s.OK(err)
	return v
}

// draftOf returns the draft of a run of a saved flow.
func (s *studio) draftOf(p principal.Principal, flowID string) generation.Draft {
	s.Helper()
	t, ok := s.view(p).ToolByID(flowID)
	if !ok {
		s.Fatalf("the flow %s is not visible", flowID)
	}
	return generation.Draft{
		Principal: p,
		ToolID:    t.ID,
		ToolHash:  t.Hash,
		Inputs:    map[string]any{"prompt": "a fox"},
	}
}

// finish plays the worker until nothing is left to do.
func (s *studio) finish() {
	s.Helper()
	for range 40 {
		s.Pass(time.Second)
		s.decider.DecideDue(s.Context())
		if s.Count(`SELECT count(*) FROM run WHERE stage = 'queued' AND engine <> 'flow'`) == 0 {
			if s.Count(`SELECT count(*) FROM flow_run WHERE due IS NOT NULL`) == 0 {
				return
			}
			continue
		}
		r := s.Claim("worker")
		s.Pass(time.Second)
		end := generation.Outcome{State: run.Succeeded, Took: time.Second}
		for range r.NumResults {
			s.result++
			end.Results = append(end.Results, generation.StoredResult{StoredFile: s.Take(generationtest.PNG(s.result))})
		}
		s.OK(s.Runs.EndRun(s.Context(), r, end))
	}
	s.Fatal("the flows do not come to rest")
}

// wantRun runs a flow, and checks its price.
func (s *studio) wantRun(d generation.Draft, tokens int64) generation.Record {
	s.Helper()
	r := s.Create(d)
	s.finish()
	rec, err := s.Runs.GetStatus(s.Context(), d.Principal.AccountID, r.ID)
	s.OK(err)
	if rec.State != run.Succeeded || rec.TokensCharged != tokens {
		s.Errorf("run = %s %q, charged %d, want %d", rec.State, rec.ErrorText, rec.TokensCharged, tokens)
	}
	return rec
}

func TestSaveAndRun(t *testing.T) {
	eachStudio(t, func(s *studio) {
		anna := generationtest.Own(s.Person(100))
		bert := generationtest.Own(s.Person(100))
		f := s.save(anna, poster())
		if f.Version != 1 || f.Slug == "" || f.TeamID() != "" || f.PersonID != anna.PersonID {
			s.Errorf("flow = %+v", f)
		}
		if rec := s.wantRun(s.draftOf(anna, f.ID), 5); rec.ToolName != "Poster" || rec.Steps[0].ToolName != "sketch" {
			s.Errorf("names in the record = %q, %q", rec.ToolName, rec.Steps[0].ToolName)
		}

		// Nobody else sees it.
		if _, ok := s.view(bert).ToolByID(f.ID); ok {
			s.Error("another person sees the flow among the tools")
		}
		d := s.draftOf(anna, f.ID)
		d.Principal = bert
		_, err := s.Runs.CreateRun(s.Context(), d)
		s.wantCode(err, fault.NotFound, "")
		_, err = s.flows.Get(s.Context(), bert, f.ID)
		s.wantCode(err, fault.NotFound, "")
		_, err = s.flows.Update(s.Context(), bert, f.ID, 1, poster())
		s.wantCode(err, fault.NotFound, "")
		s.wantCode(s.flows.Delete(s.Context(), bert, f.ID), fault.NotFound, "")
		_, err = s.flows.Versions(s.Context(), bert, f.ID)
		s.wantCode(err, fault.NotFound, "")
		if all, err := s.flows.List(s.Context(), bert); err != nil || len(all) != 0 {
			s.Errorf("another person lists %v, %v", all, err)
		}

		// A run that was accepted goes on with its version, also when the flow
		// is changed and deleted.
		old := s.draftOf(anna, f.ID)
		first := s.Create(old)
		changed := poster()
		changed.Name = "  Large poster "
		changed.Steps = changed.Steps[:1]
		s.Pass(time.Second)
		g, err := s.flows.Update(s.Context(), anna, f.ID, 1, changed)
		s.OK(err)
		if g.Version != 2 || g.Name != "Large poster" || g.Hash == f.Hash || g.Slug != f.Slug || !g.Updated.After(g.Created) {
			s.Errorf("changed flow = %+v", g.SavedFlow)
		}
		_, err = s.Runs.CreateRun(s.Context(), old)
		s.wantCode(err, fault.ToolSchemaStale, "")
		s.wantRun(s.draftOf(anna, f.ID), 2)
		s.OK(s.flows.Delete(s.Context(), anna, f.ID))
		s.finish()
		if rec, err := s.Runs.GetStatus(s.Context(), anna.AccountID, first.ID); err != nil || rec.State != run.Succeeded || rec.TokensCharged != 5 {
			s.Errorf("the run before the change = %s, charged %d, %v", rec.State, rec.TokensCharged, err)
		}
		_, err = s.Runs.CreateRun(s.Context(), old)
		s.wantCode(err, fault.NotFound, "")
		s.wantCode(s.flows.Delete(s.Context(), anna, f.ID), fault.NotFound, "")
		_, err = s.flows.Get(s.Context(), anna, f.ID)
		s.wantCode(err, fault.NotFound, "")
	})
}

func TestVersions(t *testing.T) {
	eachStudio(t, func(s *studio) {
		anna := generationtest.Own(s.Person(100))
		f := s.save(anna, poster())
		d := poster()
		d.Description = "For the wall."
		g, err := s.flows.Update(s.Context(), anna, f.ID, 1, d)
		s.OK(err)

		// The same request again, whose first response was lost, changes nothing.
		again, err := s.flows.Update(s.Context(), anna, f.ID, 1, d)
		s.OK(err)
		if again.Version != 2 || again.Hash != g.Hash {
			s.Errorf("repeated change = version %d", again.Version)
		}
		d.Description = "For the door."
		_, err = s.flows.Update(s.Context(), anna, f.ID, 1, d)
		s.wantCode(err, fault.PreconditionFailed, "has changed")

		all, err := s.flows.Versions(s.Context(), anna, f.ID)
		s.OK(err)
		if len(all) != 2 || all[0].Number != 2 || all[0].Draft.Description != "For the wall." || all[1].Draft.Description != "" || len(all[1].Draft.Steps) != 2 {
			s.Errorf("versions = %+v", all)
		}
		for i := range int64(catalog.MaxFlowVersions) {
			d.Description = fmt.Sprint(i)
			_, err = s.flows.Update(s.Context(), anna, f.ID, 2+i, d)
			s.OK(err)
		}
		all, err = s.flows.Versions(s.Context(), anna, f.ID)
		s.OK(err)
		if len(all) != catalog.MaxFlowVersions || all[0].Number != 102 || all[99].Number != 3 {
			s.Errorf("%d versions are kept, from %d to %d", len(all), all[0].Number, all[len(all)-1].Number)
		}
	})
}

func TestProblemsNameStepAndField(t *testing.T) {
	eachStudio(t, func(s *studio) {
		anna := generationtest.Own(s.Person(100))
		step := func(d *savedflow.Draft, i int) map[string]any { return d.Steps[i].(map[string]any) }
		for name, one := range map[string]struct {
			change func(d *savedflow.Draft)
			want   string
		}{
			"no name":      {func(d *savedflow.Draft) { d.Name = " " }, "A name is required"},
			"no steps":     {func(d *savedflow.Draft) { d.Steps = nil }, "steps"},
			"unknown tool": {func(d *savedflow.Draft) { step(d, 0)["tool"] = "nothing" }, "steps.0.tool"},
			"unknown step": {func(d *savedflow.Draft) {
				step(d, 1)["inputs"] = map[string]any{"picture": map[string]any{"step": "x"}}
			}, "steps.1.inputs.picture"},
			"wrong type": {func(d *savedflow.Draft) {
				step(d, 1)["inputs"].(map[string]any)["picture"] = map[string]any{"field": "prompt"}
			}, "steps.1.inputs.picture"},
			"out of range": {func(d *savedflow.Draft) { step(d, 1)["inputs"].(map[string]any)["factor"] = int64(9) }, "steps.1.inputs.factor"},
			"circle": {func(d *savedflow.Draft) {
				step(d, 0)["inputs"].(map[string]any)["style"] = map[string]any{"step": "large"}
			}, "steps"},
			"bad field": {func(d *savedflow.Draft) {
				d.Fields = []any{map[string]any{"key": "prompt", "type": "NOTHING", "label": "P"}}
			}, "fields.0.type"},
			"not a step": {func(d *savedflow.Draft) { d.Steps = []any{"draft"} }, "steps.0"},
			"large": {func(d *savedflow.Draft) {
				step(d, 0)["inputs"].(map[string]any)["style"] = strings.Repeat("x", 300<<10)
			}, "at most"},
			"own hashes": {func(d *savedflow.Draft) {
				d.Fields = append(d.Fields, map[string]any{"key": "x", "type": "IMG", "label": "X", "avatar": "a.png"})
			}, "fields.1"},
		} {
			d := poster()
			one.change(&d)
			_, err := s.flows.Create(s.Context(), anna, d)
			if !fault.Is(err, fault.Invalid) || !strings.Contains(describe(err), one.want) {
				s.Errorf("%s: %s, want %q", name, describe(err), one.want)
			}
		}
		if n := s.Count(`SELECT count(*) FROM saved_flow`) + s.Count(`SELECT count(*) FROM tool WHERE saved`); n != 0 {
			s.Errorf("%d rows were stored", n)
		}

		c, err := s.flows.Check(s.Context(), anna, poster())
		s.OK(err)
		if len(c.Problems) != 0 || c.Bounds == nil || c.Bounds.Tokens != 5 {
			s.Errorf("check = %+v", c)
		}
		priceless := poster()
		priceless.Steps = append(priceless.Steps, map[string]any{"id": "last", "tool": "nowhere"})
		c, err = s.flows.Check(s.Context(), anna, priceless)
		s.OK(err)
		if len(c.Problems) != 1 || c.Bounds != nil {
			s.Errorf("check with an unknown tool = %+v, want a problem and no price", c)
		}
	})
}

// TestFlowsDoNotContainThemselves: a flow whose new version would contain it,
// directly or in another flow, stays as it was and can be run.
func TestFlowsDoNotContainThemselves(t *testing.T) {
	eachStudio(t, func(s *studio) {
		around := func(inner savedflow.Flow) savedflow.Draft {
			d := poster()
			d.Steps = []any{map[string]any{"id": "inner", "tool": inner.Slug, "inputs": map[string]any{"prompt": map[string]any{"field": "prompt"}}}}
			return d
		}
		anna := generationtest.Own(s.Person(100))
		inner := s.save(anna, poster())
		outer := s.save(anna, around(inner))
		for _, f := range []savedflow.Flow{inner, outer} {
			_, err := s.flows.Update(s.Context(), anna, f.ID, 1, around(outer))
			s.wantCode(err, fault.Invalid, "steps.0.tool: a flow cannot contain itself: "+outer.Slug)
		}
		s.wantRun(s.draftOf(anna, outer.ID), 5)
	})
}

func TestShare(t *testing.T) {
	eachStudio(t, func(s *studio) {
		of := s.Company()
		look := s.TeamOf(of, 100)
		film := s.TeamOf(of, 100)
		other := s.TeamOf(s.Company(), 100)
		anna := s.Person(0)
		bert := s.Person(0)
		lead := generationtest.In(anna, look)
		lead.CompanyID = of
		lead.Role.Permissions = append(lead.Role.Permissions, company.ManageTeam)
		member := generationtest.In(bert, look)
		member.CompanyID = of
		film2 := generationtest.In(bert, film)
		film2.CompanyID = of
		outside := generationtest.In(bert, other)

		f := s.save(member, poster())
		if f.TeamID() != look {
			s.Errorf("team = %s, want %s", f.TeamID(), look)
		}
		if _, ok := s.view(film2).ToolByID(f.ID); ok {
			s.Error("another team sees a flow that is not shared")
		}
		shared := poster()
		shared.Shared = true
		_, err := s.flows.Update(s.Context(), member, f.ID, 1, shared)
		s.wantCode(err, fault.Forbidden, "share")
		_, err = s.flows.Update(s.Context(), lead, f.ID, 1, shared)
		s.OK(err)
		s.wantRun(s.draftOf(film2, f.ID), 5)
		if b := s.Balance(film); b.Tokens != 95 {
			s.Errorf("the team that ran the flow has %d tokens, want 95", b.Tokens)
		}
		if _, ok := s.view(outside).ToolByID(f.ID); ok {
			s.Error("another company sees the flow")
		}
		if got, err := s.flows.Get(s.Context(), film2, f.ID); err != nil || !got.Draft.Shared {
			s.Errorf("get = %+v, %v", got, err)
		}
		if all, err := s.flows.List(s.Context(), film2); err != nil || len(all) != 1 {
			s.Errorf("list = %v, %v", all, err)
		}
		_, err = s.flows.Update(s.Context(), film2, f.ID, 2, poster())
		s.wantCode(err, fault.NotFound, "")
		s.wantCode(s.flows.Delete(s.Context(), film2, f.ID), fault.NotFound, "")

		// A manager can change what a member made, a member not what others made.
		g := s.save(lead, poster())
		_, err = s.flows.Update(s.Context(), member, g.ID, 1, poster())
		s.wantCode(err, fault.Forbidden, "Only the person")
		s.wantCode(s.flows.Delete(s.Context(), member, g.ID), fault.Forbidden, "Only the person")
		_, err = s.flows.Create(s.Context(), generationtest.Own(anna), shared)
		s.wantCode(err, fault.Forbidden, "share")
	})
}

func TestToolsChange(t *testing.T) {
	eachStudio(t, func(s *studio) {
		anna := generationtest.Own(s.Person(100))
		f := s.save(anna, poster())
		outer := s.save(anna, savedflow.Draft{
			Name:   "Outer",
			Fields: poster().Fields,
			Steps: []any{
				map[string]any{"id": "inner", "tool": f.Slug, "inputs": map[string]any{"prompt": map[string]any{"field": "prompt"}}},
				map[string]any{"id": "sheet", "tool": "collage", "inputs": map[string]any{"pictures": map[string]any{"step": "inner"}}},
			},
		})
		before := s.draftOf(anna, outer.ID)
		s.wantRun(before, 6)

		// A tool that a step uses has changed: the flow is stale, and runs again
		// once it was read again.
		s.Apply(tools(6))
		_, err := s.Runs.CreateRun(s.Context(), before)
		s.wantCode(err, fault.ToolSchemaStale, "")
		s.wantRun(s.draftOf(anna, outer.ID), 6)

		// The constant of a step does not fit any more.
		s.Apply(tools(3))
		_, err = s.Runs.CreateRun(s.Context(), s.draftOf(anna, f.ID))
		s.wantCode(err, fault.Invalid, "large")

		// The tool of a step is gone.
		rest := tools(8)
		delete(rest, "enlarge")
		s.Apply(rest)
		d := before
		_, err = s.Runs.CreateRun(s.Context(), d)
		s.wantCode(err, fault.Forbidden, "inner")
		d.ToolID = f.ID
		_, err = s.Runs.CreateRun(s.Context(), d)
		s.wantCode(err, fault.Forbidden, "large")
		if _, err := s.flows.Get(s.Context(), anna, f.ID); err != nil {
			s.Errorf("the flow cannot be read any more: %v", err)
		}
		s.Apply(tools(8))
		s.wantRun(s.draftOf(anna, outer.ID), 6)
		if held := s.Balance(anna.AccountID).Held; held != 0 {
			s.Errorf("%d tokens are held", held)
		}
	})
}

func TestPolicyReadsFlows(t *testing.T) {
	eachStudio(t, func(s *studio) {
		anna := generationtest.Own(s.Person(100))
		const forbidden = "child porn"
		constant := poster()
		constant.Steps[0].(map[string]any)["inputs"].(map[string]any)["style"] = forbidden
		preset := poster()
		preset.Fields[0].(map[string]any)["default"] = forbidden
		for _, d := range []savedflow.Draft{constant, preset} {
			f := s.save(anna, d)
			draft := s.draftOf(anna, f.ID)
			_, err := s.Runs.CreateRun(s.Context(), draft)
			s.wantCode(err, fault.ContentPolicyViolation, "")

			outer := s.save(anna, savedflow.Draft{
				Name:   "Outer",
				Fields: poster().Fields,
				Steps:  []any{map[string]any{"id": "inner", "tool": f.Slug, "inputs": map[string]any{"prompt": map[string]any{"field": "prompt"}}}},
			})
			_, err = s.Runs.CreateRun(s.Context(), s.draftOf(anna, outer.ID))
			s.wantCode(err, fault.ContentPolicyViolation, "")
		}
		if n := s.Count(`SELECT count(*) FROM run`); n != 0 {
			s.Errorf("%d runs were accepted", n)
		}
	})
}

func TestFromResult(t *testing.T) {
	eachStudio(t, func(s *studio) {
		anna := generationtest.Own(s.Person(100))
		upload := s.Upload(anna.PersonID, anna.AccountID, generationtest.PNG(9000))
		runTool := func(slug string, n int64, inputs map[string]any) generation.Record {
			d := s.Draft(anna, slug)
			d.Inputs = inputs
			if n > 1 {
				d.NumResults = &n
			}
			r := s.Create(d)
			s.finish()
			rec, err := s.Runs.GetStatus(s.Context(), anna.AccountID, r.ID)
			s.OK(err)
			return rec
		}
		item := func(rec generation.Record, i int) map[string]any {
			return map[string]any{"kind": "LIBRARY_REF", "id": rec.Outputs[i].Library + ":" + rec.Outputs[i].ID}
		}
		drawn := runTool("sketch", 2, map[string]any{"prompt": "a red fox", "style": "bold", "seed": int64(7)})
		large := runTool("enlarge", 1, map[string]any{"picture": item(drawn, 1), "factor": int64(3)})
		sheet := runTool("collage", 1, map[string]any{"pictures": []any{item(large, 0), item(drawn, 0), map[string]any{"kind": "UPLOAD_REF", "id": upload}}})

		d, err := s.flows.FromResult(s.Context(), anna, item(sheet, 0)["id"].(string))
		s.OK(err)
		var order []string
		for _, one := range d.Steps {
			order = append(order, one.(map[string]any)["id"].(string))
		}
		if !slices.Equal(order, []string{"sketch", "enlarge", "collage"}) || len(d.Fields) != 2 {
			s.Fatalf("draft = %+v", d)
		}
		f := s.save(anna, d)
		draft := s.draftOf(anna, f.ID)
		draft.Inputs = map[string]any{"prompt": "an owl", "picture": map[string]any{"kind": "UPLOAD_REF", "id": upload}}
		rec := s.wantRun(draft, 2*2+3+1)
		if len(rec.Steps) != 3 || len(rec.Outputs) != 1 {
			s.Errorf("the flow made %d steps and %d results", len(rec.Steps), len(rec.Outputs))
		}

		_, err = s.flows.FromResult(s.Context(), generationtest.Own(s.Person(0)), item(sheet, 0)["id"].(string))
		s.wantCode(err, fault.NotFound, "")
		s.Apply(map[string]string{"sketch": tools(8)["sketch"], "collage": tools(8)["collage"]})
		_, err = s.flows.FromResult(s.Context(), anna, item(sheet, 0)["id"].(string))
		s.wantCode(err, fault.Invalid, "no longer exists")
	})
}

func TestLimitOfFlows(t *testing.T) {
	eachStudio(t, func(s *studio) {
		anna := generationtest.Own(s.Person(100))
		var last savedflow.Flow
		for range savedflow.MaxFlows {
			last = s.save(anna, poster())
		}
		_, err := s.flows.Create(s.Context(), anna, poster())
		s.wantCode(err, fault.Invalid, "at most 200")
		_, err = s.flows.Update(s.Context(), anna, last.ID, 1, savedflow.Draft{Name: "Changed", Fields: poster().Fields, Steps: poster().Steps})
		s.OK(err)
		s.OK(s.flows.Delete(s.Context(), anna, last.ID))
		s.save(anna, poster())
	})
}

func TestChecksFindDamage(t *testing.T) {
	eachStudio(t, func(s *studio) {
		s.save(generationtest.Own(s.Person(100)), poster())
		for damage, want := range map[string]string{
			`UPDATE tool SET saved = FALSE WHERE saved`:               "every saved flow has a tool, which is removed when the flow is deleted",
			`UPDATE tool SET removed = TRUE WHERE saved`:              "every saved flow has a tool, which is removed when the flow is deleted",
			`UPDATE tool SET saved = TRUE WHERE slug = 'sketch'`:      "every saved flow has a tool, which is removed when the flow is deleted",
			`DELETE FROM saved_flow_version`:                          "the current version of every saved flow is stored",
			`UPDATE saved_flow SET version = 2 WHERE deleted IS NULL`: "the current version of every saved flow is stored",
		} {
			if found := s.Damage(catalog.Checks, damage); !found[want] {
				s.Errorf("%s: the checks found %v", damage, found)
			}
		}
	})
}

func TestEraseFlows(t *testing.T) {
	eachStudio(t, func(s *studio) {
		anna := generationtest.Own(s.Person(100))
		bert := generationtest.Own(s.Person(100))
		secret := poster()
		secret.Name = "Secret name"
		secret.Steps[0].(map[string]any)["inputs"].(map[string]any)["style"] = "secret style"
		f := s.save(anna, secret)
		_, err := s.flows.Update(s.Context(), anna, f.ID, 1, poster())
		s.OK(err)
		kept := s.save(bert, secret)
		s.wantRun(s.draftOf(anna, f.ID), 5)
		s.Do(func(tx *sqldb.Tx) error { return catalog.EraseFlows(s.Context(), tx, anna.AccountID) })
		if all, err := s.flows.List(s.Context(), anna); err != nil || len(all) != 0 {
			s.Errorf("flows = %v, %v", all, err)
		}
		for _, query := range []string{
			`SELECT count(*) FROM saved_flow WHERE name LIKE '%ecret%'`, `SELECT count(*) FROM saved_flow_version WHERE definition LIKE '%ecret%'`,
			`SELECT count(*) FROM tool WHERE definition LIKE '%ecret%'`, `SELECT count(*) FROM tool_version WHERE definition LIKE '%ecret%'`,
		} {
			if n := s.Count(query); n != 1 {
				s.Errorf("%s = %d, want only that of the other person", query, n)
			}
		}
		s.wantRun(s.draftOf(bert, kept.ID), 5)
	})
}

func TestNamesOfTools(t *testing.T) {
	eachStudio(t, func(s *studio) {
		anna := generationtest.Own(s.Person(100))
		f := s.save(anna, poster())
		tool := s.Tool("sketch").ID
		want := map[string]string{tool: "sketch", f.ID: "Poster"}
		names := func() {
			s.Helper()
			got, err := s.Catalog.ToolNames(s.Context(), []string{f.ID, tool, "unknown", f.ID, ""})
			if err != nil || !maps.Equal(got, want) {
				s.Errorf("names = %v, %v, want %v", got, err, want)
			}
		}
		names()
		s.OK(s.flows.Delete(s.Context(), anna, f.ID))
		names()

		// Names of the catalog need no query.
		ctx, cancel := context.WithCancel(s.Context())
		cancel()
		if got, err := s.Catalog.ToolNames(ctx, []string{tool, ""}); err != nil || got[tool] != "sketch" {
			s.Errorf("names = %v, %v", got, err)
		}
		if _, err := s.Catalog.ToolNames(ctx, []string{tool, f.ID}); !errors.Is(err, context.Canceled) {
			s.Errorf("a query of a cancelled request: %v", err)
		}
	})
}
