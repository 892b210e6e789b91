package speech_test

import (
	"testing"

	"atelier/internal/engine/builtin/speech"
	"atelier/internal/engine/enginetest"
)

const long = `It was a bright cold day, and the clocks were striking. A man walked along the river with his hands in
his pockets, and thought about nothing much. The boats went by, one after the other, and nobody waved.

Then the rain came. He ran for the bridge, and stood there among strangers who all looked at the same water. It took an
hour, or it seemed to; when it was over they went their ways without a word.`

// Not parallel: the suite counts goroutines.
func TestConformance(t *testing.T) {
	j := job(long, nil)
	j.NumResults = 2
	c := enginetest.Case{Engine: installed(t), Job: j, Deterministic: true}
	enginetest.CheckEngine(t, c)
	t.Run("signs", func(t *testing.T) { enginetest.CheckProgress(t, c, false) })
}

// Not parallel: the suite counts goroutines.
func TestFaults(t *testing.T) {
	with := func(program string) func(t *testing.T) enginetest.Trial {
		return func(*testing.T) enginetest.Trial {
			return enginetest.Trial{Engine: fake(program), Job: job("Hello.", nil)}
		}
	}
	enginetest.CheckFaults(t, map[enginetest.Fault]func(t *testing.T) enginetest.Trial{
		enginetest.Refuses: func(*testing.T) enginetest.Trial {
			return enginetest.Trial{Engine: fake("drones"), Job: job("Hello.", values{"language": "martian"})}
		},
		enginetest.Fails: with("fails"),
		enginetest.Away: func(*testing.T) enginetest.Trial {
			return enginetest.Trial{Engine: speech.New("/nowhere/espeak-ng", speech.Options{}), Job: job("Hello.", nil)}
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
