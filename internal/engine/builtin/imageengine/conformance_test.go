package imageengine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/imageengine"
	"atelier/internal/engine/enginetest"
	"atelier/internal/testkit/watch"
)

// Not parallel: the suite counts goroutines.
func TestConformance(t *testing.T) {
	picture := pngFile(photo(60, 40))
	small := size(48, 32)
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
		{"crop", job("crop", nil, jpegFile(photo(60, 40))), 1, false},
		{"adjust", job("adjust", values{"exposure": 0.5}, picture), 1, false},
		{"palette", job("palette", values{"colours": int64(2), "labels": false}, picture), 1, false},
		{"photo-upscale", job("photo-upscale", nil, picture), 1, false},
		{"cutout", job("cutout", nil, pngFile(stage(60, 60, wallOf(240, 240, 235), figure(60, 60), 1))), 1, false},
		{"contact", job("contact", values{"title": "All", "page": "wide", "format": "jpeg"}, picture, picture), 1, false},
		{"collage", job("collage", values{"width": int64(96)}, picture, picture, picture, picture), 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.job.NumResults = tt.many
			enginetest.CheckEngine(t, enginetest.Case{Engine: imageengine.New(), Job: tt.job, Deterministic: true, Seeded: tt.seeded})
		})
	}
}

// TestLargeWorkEndsSoon ends jobs that are far from done.
func TestLargeWorkEndsSoon(t *testing.T) {
	t.Parallel()
	for name, j := range map[string]engine.Job{
		"upscale":       job("upscale", values{"factor": int64(8)}, pngFile(photo(300, 200))),
		"photo-upscale": job("photo-upscale", values{"factor": int64(4)}, pngFile(photo(900, 600))),
		"cutout":        job("cutout", nil, pngFile(stage(500, 400, wallOf(240, 240, 235), figure(500, 400), 0))),
		"pattern":       job("pattern", values{"motif": "clouds", "size": size(2048, 2048)}),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var ended time.Time
			r := enginetest.Recorder{OnProgress: func(f float64) {
				if f > 0.03 && ended.IsZero() {
					ended = time.Now()
					cancel()
				}
			}}
			if err := imageengine.New().Run(ctx, j, &r); !errors.Is(err, context.Canceled) {
				t.Errorf("run = %v, want the context's end", err)
			}
			watch.Took(t, "the end", time.Since(ended), 2*time.Second)
		})
	}
}
