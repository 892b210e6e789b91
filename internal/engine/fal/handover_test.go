package fal_test

import (
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/fal"
	"atelier/internal/engine/fal/faltest"
)

func TestAnotherWorkerGoesOn(t *testing.T) {
	w := start(t, faltest.Options{Takes: time.Second})
	enginetest.CheckHandover(t, enginetest.Trial{Engine: w.engine, Job: painting(painter, 1)}, w.Creates)
}

func TestNobodyGoesOn(t *testing.T) {
	w := start(t, faltest.Options{Takes: time.Hour})
	idle := func() bool { return w.Running() == 0 }
	enginetest.CheckAbandon(t, enginetest.Trial{Engine: w.engine, Job: painting(painter, 2)}, w.Creates, idle)
	for _, left := range []string{`{"app":"fal-ai/painter","ids":[""],"creating":true}`, `{"app":"../x","ids":["a"]}`, `{"ids":["a"]}`} {
		if err := w.engine.Abandon(t.Context(), left); err != nil {
			t.Errorf("abandon %s: %v, want nil where nothing can be done", left, err)
		}
	}
	away := fal.New(call(t, "http://127.0.0.1:1", "key"), fal.Options{})
	if e := engine.AsError(away.Abandon(t.Context(), `{"app":"fal-ai/painter","ids":["a"]}`)); e.Code != engine.Unavailable || !e.Transient {
		t.Errorf("abandon = %v, want one that is worth another try", e)
	}
}
