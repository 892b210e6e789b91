package flow_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"atelier/internal/catalog/flow"
)

// parse parses settings that are written as JSON.
func parse(t *testing.T, text string) (*flow.Definition, []string) {
	t.Helper()
	d, problems := flow.Parse(decode(t, text))
	var all []string
	for _, p := range problems {
		all = append(all, strings.Join(p.Path, ".")+": "+p.Message)
	}
	return d, all
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var all map[string]any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&all); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return whole(all).(map[string]any)
}

// whole replaces numbers by int64.
func whole(v any) any {
	switch v := v.(type) {
	case json.Number:
		n, _ := v.Int64() // tests use whole numbers
		return n
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = whole(v[key])
		}
	}
	return v
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	step := func(more string) string { return `{"steps": [{"id": "a", "tool": "x"` + more + `}]}` }
	for _, c := range []struct{ with, want string }{
		{`{}`, "steps: must list at least one step"},
		{`{"steps": 1}`, "steps: must be a list"},
		{`{"steps": [1]}`, "steps.0: must be a mapping"},
		{`{"steps": [{"id": "a"}]}`, "steps.0.tool: is required: the slug of a tool"},
		{`{"steps": [{"id": "A b", "tool": "x"}]}`, "steps.0.id: must start with a lower-case letter and have at most 32 lower-case letters, digits and underscores"},
		{`{"steps": [{"id": "a", "tool": "x"}, {"id": "a", "tool": "x"}]}`, "steps.1.id: a is the id of another step"},
		{step(`, "color": 1`), "steps.0.color: is not a known key here"},
		{step(`, "inputs": {"p": {"step": "b"}}`), "steps.0.inputs.p: there is no step b; the steps are a"},
		{step(`, "inputs": {"p": {"step": "a"}}`), "steps.0: step a needs its own results: the steps form a circle"},
		{step(`, "inputs": {"p": {"item": true}}`), "steps.0: uses an item, but has no for_each"},
		{step(`, "inputs": {"p": {"feld": "q"}}`), "steps.0.inputs.p: must have one of the keys value, field, step, item, first_of and all_of"},
		{step(`, "inputs": {"p": {"first_of": []}}`), "steps.0.inputs.p.first_of: must list at least one source"},
		{step(`, "inputs": {"p": {"step": "a", "result": -1}}`), "steps.0.inputs.p.result: must be first, all, or the index of a result, from 0"},
		{step(`, "inputs": {"p": null}`), "steps.0.inputs.p: must have a value"},
		{step(`, "num_results": "two"`), "steps.0.num_results: must be a number or a field"},
		{step(`, "max": 3`), "steps.0.max: needs for_each"},
		{step(`, "for_each": {"field": "f"}`), "steps.0.max: must be a number from 1 to 64: the greatest number of items"},
		{step(`, "for_each": 3, "max": 3`), "steps.0.for_each: must name a field or a step"},
		{step(`, "when": {"field": "f"}`), "steps.0.when: must have one of is, is_not and given"},
		{step(`, "when": {"is": 1}`), "steps.0.when.field: is required"},
		{step(`, "otherwise": "stop"`), `steps.0.otherwise: must be "skip", or a mapping with a tool and its inputs`},
		{`{"steps": [{"id": "a", "tool": "x"}], "results": ["b"]}`, "results.0: there is no step b; the steps are a"},
		{`{"steps": [{"id": "a", "tool": "x"}], "results": ["a", "a"]}`, "results.1: a is listed twice"},
		{
			`{"steps": [{"id": "a", "tool": "x", "inputs": {"p": {"step": "b"}}}, {"id": "b", "tool": "x", "inputs": {"p": {"step": "a"}}}]}`,
			"steps.0: step a needs its own results: the steps form a circle",
		},
	} {
		if _, problems := parse(t, c.with); !slices.Contains(problems, c.want) {
			t.Errorf("%s: %q, want %q", c.with, problems, c.want)
		}
	}
	many := make([]string, flow.MaxSteps+1)
	for i := range many {
		many[i] = fmt.Sprintf(`{"id": "s%d", "tool": "x"}`, i)
	}
	if _, problems := parse(t, `{"steps": [`+strings.Join(many, ",")+`]}`); len(problems) != 1 {
		t.Errorf("too many steps: %q", problems)
	}
}

const chain = `{"steps": [
	{"id": "draw", "tool": "sketch", "inputs": {"prompt": {"field": "prompt"}, "style": "flat"}, "num_results": {"field": "n"}},
	{"id": "large", "tool": "enlarge", "for_each": {"step": "draw"}, "max": 3, "inputs": {"picture": {"item": true}}, "otherwise": {"tool": "resize", "inputs": {"picture": {"item": true}}}},
	{"id": "tune", "tool": "music", "when": {"field": "loud", "is": true}},
	{"id": "film", "tool": "slides", "inputs": {"pictures": {"all_of": [{"field": "cover"}, {"step": "large", "result": "all"}]}, "second": {"step": "draw", "result": 1}, "music": {"step": "tune"}}}
]}`

func TestNext(t *testing.T) {
	t.Parallel()
	d, problems := parse(t, chain)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	inputs := map[string]any{"prompt": "fox", "n": int64(2), "loud": true, "cover": "c"}
	children := map[flow.Key]flow.Child{}
	starts := func(p flow.Plan) (all []string) {
		for _, s := range p.Start {
			text, _ := json.Marshal(s.Inputs) // strings
			n := int64(0)
			if s.NumResults != nil {
				n = *s.NumResults
			}
			all = append(all, fmt.Sprintf("%s/%t/%d %s %d %s", s.Step, s.Otherwise, s.Place, s.Tool, n, text))
		}
		return all
	}
	want := func(p flow.Plan, all ...string) {
		t.Helper()
		if got := starts(p); !reflect.DeepEqual(got, all) {
			t.Errorf("starts %q, want %q", got, all)
		}
	}
	want(d.Next(inputs, children), `draw/false/0 sketch 2 {"prompt":"fox","style":"flat"}`, `tune/false/0 music 0 {}`)
	children[flow.Key{Step: "draw"}] = flow.Child{State: flow.Succeeded, Results: []any{"d1", "d2"}}
	children[flow.Key{Step: "tune"}] = flow.Child{State: flow.Active}
	want(d.Next(inputs, children), `large/false/0 enlarge 0 {"picture":"d1"}`, `large/false/1 enlarge 0 {"picture":"d2"}`)
	children[flow.Key{Step: "large"}] = flow.Child{State: flow.Succeeded, Results: []any{"l1"}}
	children[flow.Key{Step: "large", Place: 1}] = flow.Child{State: flow.Failed}
	want(d.Next(inputs, children), `large/true/1 resize 0 {"picture":"d2"}`)
	children[flow.Key{Step: "large", Otherwise: true, Place: 1}] = flow.Child{State: flow.Succeeded, Results: []any{"r2"}}
	want(d.Next(inputs, children)) // the tune is still active
	children[flow.Key{Step: "tune"}] = flow.Child{State: flow.Succeeded, Results: []any{"t"}}
	want(d.Next(inputs, children), `film/false/0 slides 0 {"music":"t","pictures":["c","l1","r2"],"second":"d2"}`)
	film := flow.Key{Step: "film"}
	children[film] = flow.Child{State: flow.Failed}
	if p := d.Next(inputs, children); p.Failed == nil || *p.Failed != film || !p.Ended {
		t.Errorf("after a failure: %+v", p)
	}
	children[film] = flow.Child{State: flow.Succeeded, Results: []any{"f"}}
	if p := d.Next(inputs, children); !p.Ended || !reflect.DeepEqual(p.Results, []any{"f"}) || !reflect.DeepEqual(p.Makers, []flow.Key{film}) {
		t.Errorf("at the end: %+v", p)
	}
	if got := d.Ancestors("film"); !reflect.DeepEqual(got, []string{"draw", "large", "tune"}) {
		t.Errorf("ancestors = %q", got)
	}

	// Without music and cover, the film has only what there is.
	quiet := map[string]any{"prompt": "fox", "n": int64(1), "loud": false}
	children = map[flow.Key]flow.Child{
		{Step: "draw"}:  {State: flow.Succeeded, Results: []any{"d1"}},
		{Step: "large"}: {State: flow.Succeeded, Results: []any{"l1"}},
	}
	want(d.Next(quiet, children), `film/false/0 slides 0 {"pictures":["l1"]}`)
}

func TestBounds(t *testing.T) {
	t.Parallel()
	d, _ := parse(t, chain)
	facts := func(slug string) flow.ToolFacts {
		prices := map[string]int64{"sketch": 2, "enlarge": 3, "resize": 0, "music": 4, "slides": 10}
		f := flow.ToolFacts{Tokens: func(n int64) int64 { return n * prices[slug] }, MinResults: 1, MaxResults: 1, Runs: 1}
		if slug == "sketch" {
			f.MaxResults = 3
		}
		return f
	}
	all := d.Bounds(nil, facts)
	if all.Tokens != 3*2+3*3+4+10 || all.Runs != 1+3+3+1+1 || all.Results != 1 || all.Overfull != nil {
		t.Errorf("bounds = %+v", all)
	}
	if want := "6 (draw) + 3 × 3 (large) + 3 × 0 (large, otherwise) + 4 (tune) + 10 (film) = 29 tokens at most"; all.Formula() != want {
		t.Errorf("formula = %q, want %q", all.Formula(), want)
	}
	quiet := d.Bounds(map[string]any{"prompt": "fox", "n": int64(1), "loud": false}, facts)
	if quiet.Tokens != 2+3+10 {
		t.Errorf("bounds = %+v", quiet)
	}
	d.StepByID("large").Max = 2
	if over := d.Bounds(nil, facts); over.Overfull == nil || over.Overfull.ID != "large" || over.Items != 3 {
		t.Errorf("bounds = %+v", over)
	}
}
