package fal_test

import (
	"testing"
	"time"

	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/fal"
	"atelier/internal/engine/fal/faltest"
)

// Not parallel: the suite counts goroutines.
func TestConformance(t *testing.T) {
	w := start(t, faltest.Options{})
	t.Run("small files", func(t *testing.T) {
		j := painting(painter, 3)
		j.Files = pictureOf(2000)
		enginetest.CheckEngine(t, enginetest.Case{Engine: w.engine, Job: j, Deterministic: true, Seeded: true, Settle: w.settle})
	})
	t.Run("one request, large files", func(t *testing.T) {
		j := painting(painter+`,"results":"num_images"`, 3)
		j.Files = pictureOf(400 << 10)
		enginetest.CheckEngine(t, enginetest.Case{Engine: w.engine, Job: j, Settle: w.settle})
	})
	if w.Leaks() != 0 {
		t.Error("the key went to the host of files")
	}
}

func TestSigns(t *testing.T) {
	w := start(t, faltest.Options{Takes: 150 * time.Millisecond})
	enginetest.CheckProgress(t, enginetest.Case{Engine: w.engine, Job: painting(painter, 2)}, false)
}

// Not parallel: the suite counts goroutines.
func TestFaults(t *testing.T) {
	trial := func(f faltest.Fault, takes time.Duration) func(*testing.T) enginetest.Trial {
		return func(t *testing.T) enginetest.Trial {
			w := start(t, faltest.Options{Takes: takes})
			w.SetFault(f, 0)
			return enginetest.Trial{
				Engine: w.engine, Job: painting(painter, 2), Settle: w.settle,
				Idle: func() bool { return w.Running() == 0 },
			}
		}
	}
	const short, forever = 40 * time.Millisecond, time.Hour
	enginetest.CheckFaults(t, map[enginetest.Fault]func(*testing.T) enginetest.Trial{
		enginetest.Refuses:  trial(faltest.Refuses, short),
		enginetest.Fails:    trial(faltest.Fails, short),
		enginetest.Loses:    trial(faltest.Loses, short),
		enginetest.Garbles:  trial(faltest.Garbles, short),
		enginetest.Breaks:   trial(faltest.Breaks, short),
		enginetest.Floods:   trial(faltest.Floods, short),
		enginetest.Drips:    trial(faltest.Drips, short),
		enginetest.Fewer:    trial(faltest.Fewer, short),
		enginetest.Hangs:    trial(faltest.Hangs, forever),
		enginetest.TimeIsUp: trial("", forever),
		enginetest.Busy: func(t *testing.T) enginetest.Trial {
			w := start(t, faltest.Options{})
			w.SetFault(faltest.Busy, 1)
			return enginetest.Trial{Engine: w.engine, Job: painting(painter, 2), After: painting(painter, 2), Settle: w.settle}
		},
		enginetest.Away: func(t *testing.T) enginetest.Trial {
			w := start(t, faltest.Options{})
			return enginetest.Trial{Engine: w.with(t, "http://127.0.0.1:1", fal.Options{}), Job: painting(painter, 1), Settle: w.settle}
		},
		enginetest.Restarts: func(t *testing.T) enginetest.Trial {
			w := start(t, faltest.Options{Takes: 300 * time.Millisecond})
			timer := time.AfterFunc(100*time.Millisecond, w.Restart)
			t.Cleanup(func() { timer.Stop() })
			return enginetest.Trial{Engine: w.engine, Job: painting(painter, 2), After: painting(painter, 1), Settle: w.settle}
		},
	}, nil)
}
