package image_test

import (
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/image"
)

// Not parallel: the suite counts goroutines.
func TestConformance(t *testing.T) {
	picture := pngFile(photo(160, 120))
	small := size(96, 64)
	for _, tt := range []struct {
		name   string
		job    engine.Job
		many   int
		seeded bool
	}{
		{"gradient", job("gradient", values{"style": "mesh", "size": small}), 3, true},
		{"pattern", job("pattern", values{"motif": "cells", "size": small}), 3, true},
		{"resize", job("resize", values{"size": small}, picture), 2, false},
		{"upscale", job("upscale", values{"factor": int64(2)}, picture), 1, false},
		{"crop", job("crop", nil, jpegFile(photo(160, 120))), 1, false},
		{"adjust", job("adjust", values{"exposure": 0.5}, picture), 1, false},
		{"palette", job("palette", nil, picture), 1, false},
		{"collage", job("collage", values{"width": int64(256)}, picture, picture, picture, picture), 1, false},
		// Large enough that it is still at work when its context ends.
		{"large upscale", job("upscale", values{"factor": int64(4)}, pngFile(photo(600, 400))), 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.job.NumResults = tt.many
			enginetest.Run(t, enginetest.Case{Engine: image.New(), Job: tt.job, Deterministic: true, Seeded: tt.seeded})
		})
	}
}
