package comfyui_test

import (
	"testing"
	"time"

	"atelier/internal/engine/comfyui/comfyuitest"
	"atelier/internal/engine/enginetest"
)

func TestAnotherWorkerGoesOn(t *testing.T) {
	r := start(t, comfyuitest.Options{Step: 100 * time.Millisecond})
	j := job(t)
	enginetest.TakesUp(t, enginetest.Trial{Engine: r, Job: j}, func() int { return len(r.server.Prompts()) })
}
