package simulate_test

import (
	"strings"
	"testing"

	"atelier/internal/operate/simulate"
)

// FuzzReadScenario proves that a scenario is refused, or that its numbers can be
// simulated: times are in order, every tool has an engine, and the number of runs
// is bounded.
func FuzzReadScenario(f *testing.F) {
	const whole = `duration: 1h
workers: {gpu: {count: 2, pools: [gpu]}}
engines: {comfyui: {pool: gpu, parallel_per_node: 1}}
tools: {draw: {engine: comfyui, duration: 30s, variation: 0.5}}
people: {artists: {count: 5, requests_per_minute: 0.5, tools: {draw: 1}}}
`
	for _, text := range []string{whole, strings.ReplaceAll(whole, "artists", "100%d"), strings.ReplaceAll(whole, "0.5", ".nan"), strings.ReplaceAll(whole, "30s", "9223372036s"), "", "duration: 1h", "duration: 10m\nengines: {a: {}}\nworkers: {w: {count: 2}}\n", "people: {a: {requests_per_minute: .inf}}", "people: {a: {requests_per_minute: -1}}", "x: &a [*a]", "duration: 1h\npeople: {a: }"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := simulate.ReadScenario(strings.NewReader(text), simulate.Changes{Rate: 1})
		if err != nil {
			if reason := err.Error(); reason == "" || strings.Contains(reason, "%!") && !strings.Contains(text, "%!") {
				t.Errorf("%q is refused with the reason %q", text, reason)
			}
			return
		}
		if s.Duration <= 0 || s.PriorityStep == nil || s.ActiveRuns < 1 || len(s.Workers)*len(s.Engines)*len(s.Tools)*len(s.People) == 0 {
			t.Errorf("%q = %+v", text, s)
		}
		runs := 0.0
		for name, p := range s.People {
			if !(p.RequestsPerMinute > 0) || p.From < 0 || p.From >= p.Until || p.Until > s.Duration {
				t.Errorf("%q: %s = %+v", text, name, p)
			}
			for tool := range p.Tools {
				if _, ok := s.Engines[s.Tools[tool].Engine]; !ok {
					t.Errorf("%q: the tool %s has no engine", text, tool)
				}
			}
			runs += float64(p.Count*p.Runs) * p.RequestsPerMinute * (p.Until - p.From).Minutes()
		}
		if !(runs <= 5_000_000) {
			t.Errorf("%q has %v runs", text, runs)
		}
	})
}
