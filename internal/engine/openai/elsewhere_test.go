package openai_test

import (
	"strings"
	"testing"

	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/openai/openaitest"
)

func TestAnotherWorkerGoesOn(t *testing.T) {
	w := begin(t, openaitest.Options{Polls: 100})
	j := job(t, map[string]any{"call": "videos", "model": "sora-2"}, map[string]any{"prompt": "a fox"}, 1)
	j.OutputType = "VID"
	created := func() (n int) {
		for _, r := range w.Requests() {
			if r.Method == "POST" && strings.HasSuffix(r.Path, "/videos") {
				n++
			}
		}
		return n
	}
	enginetest.TakesUp(t, enginetest.Trial{Engine: w, Job: j}, created)
}
