package tiny_test

import (
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
)

// Not parallel: the suite counts goroutines.
func TestConformance(t *testing.T) {
	for _, tt := range []struct {
		name   string
		job    engine.Job
		many   int
		seeded bool
	}{
		{"sketch", job("sketch", values{"steps": int64(1), "size": side(128)}), 2, true},
		{"sketch-from-picture", job("sketch-from-picture", values{"steps": int64(1)}, pngFile(ball(60, 40))), 1, true},
		{"upscale-art", job("upscale-art", nil, pngFile(ball(24, 32))), 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.job.NumResults = tt.many
			e := fresh(t)
			enginetest.CheckEngine(t, enginetest.Case{Engine: e, Job: tt.job, Deterministic: true, Seeded: tt.seeded, Settle: e.Close})
		})
	}
}
