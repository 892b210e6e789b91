package engine_test

import (
	"errors"
	"math"
	"slices"
	"sync"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
)

func TestSeedOf(t *testing.T) {
	t.Parallel()
	j := engine.Job{Seed: 7}
	if got := j.SeedOf(0); got != 7 {
		t.Errorf("seed of the first = %d, want the job's own", got)
	}
	// What was made of them is made again: they stay.
	if a, b := j.SeedOf(1), j.SeedOf(2); a != 2767685996 || b != 3303668989 {
		t.Errorf("seeds = %d, %d", a, b)
	}
	if next := (engine.Job{Seed: 8}); j.SeedOf(1) == next.SeedOf(0) || j.SeedOf(1) == next.SeedOf(1) {
		t.Error("neighbouring seeds share results")
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	j := engine.Job{Values: map[string]any{"whole": int64(3), "float": 4.5, "large": 1e9, "none": math.NaN(), "text": "5"}}
	for key, want := range map[string]float64{"whole": 3, "float": 4.5, "large": 10, "none": 7, "text": 7, "absent": 7} {
		if got := j.NumberInput(key, 7, 0, 10); got != want {
			t.Errorf("number %s = %v, want %v", key, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	var r enginetest.Recorder
	whole := engine.NewSpan(&r)
	whole.ReportProgress(0)
	first, second := whole.NthOf(0, 2), whole.NthOf(1, 2)
	first.ReportProgress(0.5)
	first.ReportProgress(0.505) // not worth telling
	first.ReportProgress(0.2)   // models with several bars start again
	second.SubSpan(0.5, 1).ReportProgress(0)
	first.ReportProgress(math.NaN())
	second.ReportProgress(3)
	second.ReportProgress(1)
	if got, want := r.Fractions(), []float64{0, 0.25, 0.75, 1}; !slices.Equal(got, want) {
		t.Errorf("progress = %v, want %v", got, want)
	}
	engine.Span{}.ReportProgress(0.5) // nobody hears it
}

func TestTheEndOfAWaitIsReported(t *testing.T) {
	t.Parallel()
	var r enginetest.Recorder
	whole := engine.NewSpan(&r)
	whole.ReportProgress(0.5)
	whole.ReportProgress(0.5)
	whole.ReportQueued(2)
	whole.ReportQueued(1)
	whole.ReportProgress(0.2)
	engine.Span{}.ReportQueued(1)
	if got := r.Fractions(); !slices.Equal(got, []float64{0.5, 0.5}) || !slices.Equal(r.QueuePositions(), []int{2, 1}) {
		t.Errorf("progress = %v and positions = %v, want 0.5 before and after the positions 2 and 1", got, r.QueuePositions())
	}
}

func TestSpansOfSeveralTogether(t *testing.T) {
	t.Parallel()
	var r enginetest.Recorder
	whole := engine.NewSpan(&r)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for k := range 100 {
				whole.NthOf(i, 4).ReportProgress(float64(k) / 100)
			}
		})
	}
	all.Wait()
	if got := r.Fractions(); !slices.IsSorted(got) {
		t.Errorf("progress = %v, want it to grow", got)
	}
}

func TestSetting(t *testing.T) {
	t.Parallel()
	var with struct {
		Model string         `json:"model"`
		Input map[string]any `json:"input"`
	}
	if err := engine.DecodeSetting(`{"model":"x","input":{"a":1.50}}`, &with); err != nil || with.Model != "x" {
		t.Errorf("setting = %+v, %v", with, err)
	}
	if n, ok := with.Input["a"].(interface{ String() string }); !ok || n.String() != "1.50" {
		t.Errorf("number = %v, want it as it is written", with.Input["a"])
	}
	for _, text := range []string{``, `[]`, `{"mode":"x"}`, `{"model":1}`} {
		if e, ok := errors.AsType[*engine.Error](engine.DecodeSetting(text, &with)); !ok || e.Transient || e.Message != engine.ErrMisconfigured.Message {
			t.Errorf("%s: %v, want what the operator has to mend", text, e)
		}
	}
}
