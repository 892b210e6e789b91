// Package music is the engine that composes short tunes and has FluidSynth
// play them with the instruments of a soundfont.
//
//	seed ─▶ form, chords, melody, bass, drums ─▶ MIDI ─▶ FluidSynth, part by part ─▶ mixed, trimmed, levelled ─▶ WAV
//
// The composing is rules and chance, no model: equal settings and seeds give
// equal notes. Result 0 of a job is what a job for one result gives, each
// further one has a seed of its own. The notes are the same everywhere; the
// sound is that of the installed soundfont.
package music

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"path/filepath"

	"atelier/internal/engine"
	"atelier/internal/engine/subprocess"
)

// Options are what an operator may choose.
type Options struct {
	// Folder is where jobs have their temporary folders, "" for the system's
	// place.
	Folder string
}

// Engine runs jobs. It keeps nothing between them.
type Engine struct {
	program   string
	soundfont string
	folder    string
}

var _ engine.Engine = (*Engine)(nil)

// Needs are what has to be installed, FluidSynth and then a soundfont.
func Needs() []subprocess.Need {
	return []subprocess.Need{
		{Name: "fluidsynth", Package: "fluidsynth", Path: subprocess.Find("fluidsynth")},
		{Name: "a General MIDI soundfont", Package: "timgm6mb-soundfont", Path: soundfont()},
	}
}

// soundfont gives the first one of the usual places, "" for none. The large one
// sounds better.
func soundfont() string {
	for _, pattern := range []string{
		"/usr/share/sounds/sf2/FluidR3_GM.sf2",
		"/usr/share/sounds/sf2/TimGM6mb.sf2",
		"/usr/share/sounds/sf2/default-GM.sf2",
		"/usr/share/soundfonts/*.sf2",
		"/opt/homebrew/share/sounds/sf2/*.sf2",
		"/opt/homebrew/share/soundfonts/*.sf2",
		"/opt/homebrew/share/fluid-synth/sf2/*.sf2",
	} {
		found, err := filepath.Glob(pattern)
		if err == nil && len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

// New makes the engine for FluidSynth and a soundfont at these paths.
func New(fluidsynth, soundfont string, o Options) *Engine {
	return &Engine{program: fluidsynth, soundfont: soundfont, folder: o.Folder}
}

var (
	errAway    = engine.Again(engine.Unavailable, "The instruments are not there just now.")
	errProgram = engine.Fail(engine.Failed, "The tune could not be played.")
	errResult  = engine.Fail(engine.Invalid, "The instruments gave no sound that can be used.")
)

// Manual says what a manifest can ask of the engine: there is nothing to set.
func Manual() engine.Manual {
	return engine.Manual{Setting: func() any { return &struct{}{} }}
}

// Run does the job.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	if err := engine.Setting(j.With, &struct{}{}); err != nil { // there is nothing to set
		return err
	}
	w, err := wishOf(j)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	whole := engine.Whole(out)
	whole.At(0)
	for i := range j.NumResults {
		part := whole.Of(i, j.NumResults)
		w.seed = j.SeedOf(i)
		file, err := e.play(ctx, compose(w), part)
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := out.Output(ctx, engine.Result{Data: bytes.NewReader(file)}); err != nil {
			return err
		}
		part.At(1)
	}
	return nil
}

// wish is what a tune should be like.
type wish struct {
	key      int    // semitones above C
	scale    string // "": one that the mood likes
	mood     string
	ensemble string  // "": that of the mood
	tempo    float64 // beats a minute; 0: that of the mood
	bars     int     // a multiple of four
	drums    bool
	seed     uint32
}

// What the engine can do, where a manifest allows more.
const (
	minBars, maxBars   = 8, 32
	minTempo, maxTempo = 40, 200
)

// byMood is the choice that leaves something to the mood.
const byMood = "mood"

// wishOf reads the fields. The catalog has checked them against the manifest,
// but a manifest may leave fields out or offer what is not there.
func wishOf(j engine.Job) (wish, error) {
	text := func(key, otherwise string) string {
		s, _ := j.Values[key].(string)
		return cmp.Or(s, otherwise)
	}
	w := wish{mood: text("mood", "calm"), scale: text("scale", byMood), ensemble: text("instruments", byMood), drums: true}
	key, ok := keys[text("key", "C")]
	if !ok {
		return w, engine.Fail(engine.Failed, "There is no such key.")
	}
	w.key = key
	if _, ok := moods[w.mood]; !ok {
		return w, engine.Fail(engine.Failed, "There is no such mood.")
	}
	if w.scale == byMood {
		w.scale = ""
	} else if _, ok := scales[w.scale]; !ok {
		return w, engine.Fail(engine.Failed, "There is no such scale.")
	}
	if w.ensemble == byMood {
		w.ensemble = ""
	} else if _, ok := ensembles[w.ensemble]; !ok {
		return w, engine.Fail(engine.Failed, "There are no such instruments.")
	}
	if d, ok := j.Values["drums"].(bool); ok {
		w.drums = d
	}
	w.bars = 4 * int(math.Round(j.Number("bars", 16, minBars, maxBars)/4))
	if j.Values["tempo"] != nil {
		w.tempo = j.Number("tempo", 100, minTempo, maxTempo)
	}
	return w, nil
}
