package replicate_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/replicate"
	"atelier/internal/engine/replicate/replicatetest"
)

func TestAnotherWorkerGoesOn(t *testing.T) {
	w := start(t, replicatetest.Options{Takes: time.Second})
	enginetest.CheckHandover(t, enginetest.Trial{Engine: w.engine, Job: painting(official, 1)}, w.Creates)
}

func TestNobodyGoesOn(t *testing.T) {
	w := start(t, replicatetest.Options{Takes: time.Hour})
	idle := func() bool { return w.Running() == 0 }
	enginetest.CheckAbandon(t, enginetest.Trial{Engine: w.engine, Job: painting(official, 1)}, w.Creates, idle)
	if e := engine.AsError(replicate.New(call(t, "http://127.0.0.1:1", "r8"), replicate.Options{}).Abandon(t.Context(), `{"ids":["a"]}`)); e.Code != engine.Unavailable || !e.Transient {
		t.Errorf("abandon = %v, want one that is worth another try", e)
	}
}

// TestNobodyGoesOnWithoutAnAnswer abandons predictions whose ids nobody knows.
func TestNobodyGoesOnWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	creating := func(note string) bool { return strings.Contains(note, "creating") }
	for name, tt := range map[string]struct {
		twins, after int
	}{"one": {1, 0}, "twins": {2, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, replicatetest.Options{Takes: time.Hour})
			j := painting(official, 1)
			left := w.die(t, j, creating)
			other := painting(`"model":"`+replicatetest.Film+`"`, 1) // of another tool, with the same inputs
			for _, j := range append(slices.Repeat([]engine.Job{j}, tt.twins), other) {
				w.die(t, j, func(note string) bool { return !creating(note) })
			}
			w.engine = w.another()
			if err := w.engine.Abandon(t.Context(), left); err != nil {
				t.Errorf("abandon: %v", err)
			}
			if n := w.Running(); n != tt.after+1 {
				t.Errorf("predictions that run on = %d, want %d", n, tt.after+1)
			}
		})
	}
}
