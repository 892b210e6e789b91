package comfyui_test

import (
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/comfyui/comfyuitest"
	"atelier/internal/engine/enginetest"
)

func TestAnotherWorkerGoesOn(t *testing.T) {
	r := start(t, comfyuitest.Options{Step: 100 * time.Millisecond})
	j := job(t)
	enginetest.CheckHandover(t, enginetest.Trial{Engine: r, Job: j}, func() int { return len(r.server.Prompts()) })
}

func TestNobodyGoesOn(t *testing.T) {
	for name, o := range map[string]comfyuitest.Options{"now": {Step: time.Hour}, "older": {Step: time.Hour, NoJobs: true, GlobalInterrupt: true}} {
		t.Run(name, func(t *testing.T) {
			r := start(t, o)
			begun := func() int { return len(r.server.Prompts()) }
			enginetest.CheckAbandon(t, enginetest.Trial{Engine: r, Job: job(t)}, begun, r.server.Idle)
		})
	}
}

func TestAbandonNeedsTheServer(t *testing.T) {
	t.Parallel()
	r := start(t, comfyuitest.Options{})
	r.server.Stop()
	e := engine.AsError(r.Abandon(t.Context(), `{"client_id":"a","prompts":["b"]}`))
	if e.Code != engine.Unavailable || !e.Transient {
		t.Errorf("abandon = %v, want one that is worth another try", e)
	}
}
