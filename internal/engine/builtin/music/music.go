// Package music is the engine that composes short tunes and plays them with
// FluidSynth and the instruments of a soundfont.
//
//	seed ─▶ form, chords, melody, bass, drums ─▶ MIDI ─▶ FluidSynth, part by part ─▶ mixed, trimmed, levelled ─▶ WAV
//
// Tunes are composed by rules and random choices, without a neural network:
// equal settings and seeds make equal notes. The first result of a job is the
// same for any number of results, and each further result has its own seed. The
// notes are the same on every machine; the sound depends on the installed
// soundfont.
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

// Options are the engine's settings, which the operator of the service chooses.
type Options struct {
	// Folder is the parent of the jobs' temporary folders. "" means the
	// system's temporary folder.
	Folder string
}

// Engine composes and plays tunes. It keeps no state between jobs.
type Engine struct {
	program   string
	soundfont string
	folder    string
}

var _ engine.Engine = (*Engine)(nil)

// Requirements returns the files that must be installed: FluidSynth and a
// soundfont.
func Requirements() []subprocess.Requirement {
	return []subprocess.Requirement{
		{Name: "fluidsynth", Package: "fluidsynth", Path: subprocess.FindProgram("fluidsynth")},
		{Name: "a General MIDI soundfont", Package: "timgm6mb-soundfont", Path: findSoundfont()},
	}
}

// findSoundfont returns the path of the first soundfont in the usual folders.
// It returns "" if there is none. It searches for large soundfonts first,
// because they sound better.
func findSoundfont() string {
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

// New returns an engine that uses FluidSynth and a soundfont at the given
// paths.
func New(fluidsynth, soundfont string, o Options) *Engine {
	return &Engine{program: fluidsynth, soundfont: soundfont, folder: o.Folder}
}

var (
	errUnavailable = engine.FailTransient(engine.Unavailable, "The music synthesizer is unavailable. Try again later.")
	errProgram     = engine.Fail(engine.Failed, "The music synthesizer could not play the tune.")
	errResult      = engine.Fail(engine.Invalid, "The music synthesizer returned no usable audio.")
)

// ManifestSpec describes the settings that this engine accepts in a manifest.
// There are none.
func ManifestSpec() engine.ManifestSpec {
	return engine.ManifestSpec{Setting: func() any { return &struct{}{} }}
}

// Run runs a job and writes its results to out.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	if err := engine.DecodeSetting(j.With, &struct{}{}); err != nil { // the engine has no settings
		return err
	}
	w, err := readRequest(j)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	whole := engine.NewSpan(out)
	whole.ReportProgress(0)
	for i := range j.NumResults {
		part := whole.NthOf(i, j.NumResults)
		w.seed = j.SeedOf(i)
		file, err := e.playScore(ctx, composeTune(w), part)
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := out.Output(ctx, engine.Result{Data: bytes.NewReader(file)}); err != nil {
			return err
		}
		part.ReportProgress(1)
	}
	return nil
}

// request is the description of a tune, from the inputs of a job.
type request struct {
	key      int    // tonic of the key, in semitones above C
	scale    string // name of the scale; "" if the mood determines it
	mood     string
	ensemble string  // name of the set of instruments; "" if the mood determines it
	tempo    float64 // beats per minute; 0 if the mood determines it
	bars     int     // number of bars, a multiple of four
	drums    bool
	seed     uint32
}

// Limits of the engine, which apply even if a manifest allows more.
const (
	minBars, maxBars   = 8, 32
	minTempo, maxTempo = 40, 200
)

// byMood is the value of an input that leaves the choice to the mood.
const byMood = "mood"

// readRequest reads the inputs of a job. The catalog has validated them against
// the manifest, but a manifest may omit fields or offer choices that do not
// exist.
func readRequest(j engine.Job) (request, error) {
	text := func(key, otherwise string) string {
		s, _ := j.Values[key].(string)
		return cmp.Or(s, otherwise)
	}
	w := request{mood: text("mood", "calm"), scale: text("scale", byMood), ensemble: text("instruments", byMood), drums: true}
	key, ok := keys[text("key", "C")]
	if !ok {
		return w, engine.Fail(engine.Failed, "This key does not exist.")
	}
	w.key = key
	if _, ok := moods[w.mood]; !ok {
		return w, engine.Fail(engine.Failed, "This mood does not exist.")
	}
	if w.scale == byMood {
		w.scale = ""
	} else if _, ok := scales[w.scale]; !ok {
		return w, engine.Fail(engine.Failed, "This scale does not exist.")
	}
	if w.ensemble == byMood {
		w.ensemble = ""
	} else if _, ok := ensembles[w.ensemble]; !ok {
		return w, engine.Fail(engine.Failed, "These instruments do not exist.")
	}
	if d, ok := j.Values["drums"].(bool); ok {
		w.drums = d
	}
	w.bars = 4 * int(math.Round(j.NumberInput("bars", 16, minBars, maxBars)/4))
	if j.Values["tempo"] != nil {
		w.tempo = j.NumberInput("tempo", 100, minTempo, maxTempo)
	}
	return w, nil
}
