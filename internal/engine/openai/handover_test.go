package openai_test

import (
	"strings"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/openai/openaitest"
)

func TestAnotherWorkerGoesOn(t *testing.T) {
	w := begin(t, openaitest.Options{Polls: 100})
	enginetest.CheckHandover(t, w.moving(t), w.created)
}

// moving returns a trial that makes a video.
func (w fixture) moving(t *testing.T) enginetest.Trial {
	t.Helper()
	j := job(t, map[string]any{"call": "videos", "model": "sora-2"}, map[string]any{"prompt": "a fox"}, 1)
	j.OutputType = "VID"
	return enginetest.Trial{Engine: w, Job: j}
}

// created returns the number of videos that were requested.
func (w fixture) created() (n int) {
	for _, r := range w.Requests() {
		if r.Method == "POST" && strings.HasSuffix(r.Path, "/videos") {
			n++
		}
	}
	return n
}

func TestNobodyGoesOn(t *testing.T) {
	w := begin(t, openaitest.Options{Polls: 1 << 20})
	enginetest.CheckAbandon(t, w.moving(t), w.created, func() bool { return w.Working() == 0 })
	if err := w.Abandon(t.Context(), `{"ids":[],"asking":true}`); err != nil {
		t.Errorf("abandon what has no name: %v", err)
	}
	w.Stop()
	if e := engine.AsError(w.Abandon(t.Context(), `{"ids":["a"]}`)); e.Code != engine.Unavailable || !e.Transient {
		t.Errorf("abandon = %v, want one that is worth another try", e)
	}
}
