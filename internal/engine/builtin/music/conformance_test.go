package music_test

import (
	"testing"

	"atelier/internal/engine/builtin/music"
	"atelier/internal/engine/enginetest"
)

// Not parallel: the suite counts goroutines.
func TestConformance(t *testing.T) {
	j := job(nil)
	j.NumResults = 2
	c := enginetest.Case{Engine: installed(t), Job: j, Deterministic: true, Seeded: true}
	enginetest.CheckEngine(t, c)
	t.Run("signs", func(t *testing.T) { enginetest.CheckProgress(t, c, false) })
}

// Not parallel: the suite counts goroutines.
func TestFaults(t *testing.T) {
	with := func(program string) func(t *testing.T) enginetest.Trial {
		return func(*testing.T) enginetest.Trial {
			return enginetest.Trial{Engine: fake(program), Job: job(nil)}
		}
	}
	enginetest.CheckFaults(t, map[enginetest.Fault]func(t *testing.T) enginetest.Trial{
		enginetest.Refuses: func(*testing.T) enginetest.Trial {
			return enginetest.Trial{Engine: fake("plays"), Job: job(values{"mood": "murderous"})}
		},
		enginetest.Fails: with("fails"),
		enginetest.Away: func(*testing.T) enginetest.Trial {
			return enginetest.Trial{Engine: music.New("/nowhere/fluidsynth", "/dev/null", music.Options{}), Job: job(nil)}
		},
		enginetest.Garbles:  with("garbles"),
		enginetest.Breaks:   with("breaks"),
		enginetest.Floods:   with("floods"),
		enginetest.Hangs:    with("hangs"),
		enginetest.TimeIsUp: with("hangs"),
		enginetest.Fewer:    with("gives"),
	}, map[enginetest.Fault]string{
		enginetest.Busy:     "a program is started whenever we ask",
		enginetest.Loses:    "the program is the job",
		enginetest.Drips:    "a result is read when the program has ended; until then it hangs",
		enginetest.Restarts: "nothing starts a program again",
	})
}
