package video_test

import (
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
)

// cases are a small job for each operation, with all inputs that it takes.
func cases(t testing.TB) map[string]engine.Job {
	sound := []engine.File{tone(t)}
	a, b := pngFile(quarters(96, 64)), enginetest.FileFromBytes("image/jpeg", jpegBytes(quarters(64, 96)))
	slides := pictures(a, b)
	slides["music"] = sound
	return map[string]engine.Job{
		"pan-zoom":      job("pan-zoom", values{"seconds": 0.4, "size": size(128, 72), "fps": "24"}, pictures(b)),
		"slideshow":     job("slideshow", values{"seconds": 0.4, "fade": 0.2, "size": size(128, 72)}, slides),
		"smooth-motion": job("smooth-motion", values{"effect": "smooth", "method": "blend"}, videoInput(clip(t))),
		"video-to-gif":  job("video-to-gif", values{"width": int64(64), "fps": int64(10)}, videoInput(clip(t))),
		"waveform":      job("waveform", values{"size": size(128, 72)}, map[string][]engine.File{"audio": sound, "picture": {a}}),
	}
}

// Not parallel: the suite counts goroutines. That equal jobs give equal bytes
// takes many runs to show: the suite does it for one operation, and the test of
// the manifests' defaults for all of them.
func TestConformance(t *testing.T) {
	for name, j := range cases(t) {
		t.Run(name, func(t *testing.T) {
			c := enginetest.Case{Engine: newEngine(t), Job: j, Deterministic: name == "pan-zoom", Seeded: name == "pan-zoom"}
			if name == "pan-zoom" || name == "video-to-gif" { // results that differ, and such that do not
				c.Job.NumResults = 2
			}
			enginetest.CheckEngine(t, c)
			enginetest.CheckProgress(t, c, true)
		})
	}
}

func TestResultsPassTheServicesOwnLook(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		w, h   int
		length time.Duration
	}{
		"pan-zoom":      {128, 72, 400 * time.Millisecond},
		"slideshow":     {128, 72, 800 * time.Millisecond},
		"smooth-motion": {128, 96, time.Second},
		"video-to-gif":  {64, 48, 0},
		"waveform":      {128, 72, 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := examined(t, result(t, cases(t)[name]))
			if got.Width != want.w || got.Height != want.h {
				t.Errorf("size = %dx%d, want %dx%d", got.Width, got.Height, want.w, want.h)
			}
			if off := got.Duration - want.length; off < -60*time.Millisecond || off > 60*time.Millisecond {
				t.Errorf("duration = %v, want %v", got.Duration, want.length)
			}
		})
	}
}
