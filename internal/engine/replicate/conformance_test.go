package replicate_test

import (
	"testing"
	"time"

	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/replicate/replicatetest"
)

// Not parallel: the suite counts goroutines.
func TestConformance(t *testing.T) {
	w := start(t, replicatetest.Options{})
	for name, model := range map[string]string{
		"official model": official,
		"version":        `"version":"` + replicatetest.Version + `"`,
		"deployment":     `"deployment":"acme/studio"`,
	} {
		t.Run(name, func(t *testing.T) {
			j := painting(model, 3)
			j.Files = pictureOf(2000)
			enginetest.CheckEngine(t, enginetest.Case{Engine: w.engine, Job: j, Deterministic: true, Seeded: true, Settle: w.client.Close})
		})
	}
	t.Run("one prediction, large files", func(t *testing.T) {
		j := painting(official+`,"results":"num_outputs"`, 3)
		j.Files = pictureOf(400 << 10)
		enginetest.CheckEngine(t, enginetest.Case{Engine: w.engine, Job: j, Settle: w.client.Close})
	})
	if w.Leaks() != 0 {
		t.Error("the token went to the host of files")
	}
}

func TestSigns(t *testing.T) {
	w := start(t, replicatetest.Options{Takes: 150 * time.Millisecond})
	enginetest.CheckProgress(t, enginetest.Case{Engine: w.engine, Job: painting(official, 2)}, false)
}

// Not parallel: the suite counts goroutines.
func TestFaults(t *testing.T) {
	trial := func(f replicatetest.Fault, takes time.Duration) func(*testing.T) enginetest.Trial {
		return func(t *testing.T) enginetest.Trial {
			w := start(t, replicatetest.Options{Takes: takes})
			w.SetFault(f, 0)
			return enginetest.Trial{
				Engine: w.engine, Job: painting(official, 2), Settle: w.client.Close,
				Idle: func() bool { return w.Running() == 0 },
			}
		}
	}
	const short, forever = 40 * time.Millisecond, time.Hour
	enginetest.CheckFaults(t, map[enginetest.Fault]func(*testing.T) enginetest.Trial{
		enginetest.Refuses:  trial(replicatetest.Refuses, short),
		enginetest.Fails:    trial(replicatetest.Fails, short),
		enginetest.Loses:    trial(replicatetest.Loses, short),
		enginetest.Garbles:  trial(replicatetest.Garbles, short),
		enginetest.Breaks:   trial(replicatetest.Breaks, short),
		enginetest.Floods:   trial(replicatetest.Floods, short),
		enginetest.Drips:    trial(replicatetest.Drips, short),
		enginetest.Fewer:    trial(replicatetest.Fewer, short),
		enginetest.Hangs:    trial(replicatetest.Hangs, forever),
		enginetest.TimeIsUp: trial("", forever),
		enginetest.Busy: func(t *testing.T) enginetest.Trial {
			w := start(t, replicatetest.Options{})
			w.SetFault(replicatetest.Busy, 1)
			return enginetest.Trial{Engine: w.engine, Job: painting(official, 2), After: painting(official, 2), Settle: w.client.Close}
		},
		enginetest.Away: func(t *testing.T) enginetest.Trial {
			w := start(t, replicatetest.Options{})
			w.client = call(t, "http://127.0.0.1:1/v1", "r8_test")
			w.engine = w.another()
			return enginetest.Trial{Engine: w.engine, Job: painting(official, 1), Settle: w.client.Close}
		},
		enginetest.Restarts: func(t *testing.T) enginetest.Trial {
			w := start(t, replicatetest.Options{Takes: 300 * time.Millisecond})
			timer := time.AfterFunc(100*time.Millisecond, w.Restart)
			t.Cleanup(func() { timer.Stop() })
			return enginetest.Trial{Engine: w.engine, Job: painting(official, 2), After: painting(official, 1), Settle: w.client.Close}
		},
	}, nil)
}
