// Package speech is the engine that reads text aloud with eSpeak NG, a small
// formant synthesizer that supports many languages and needs no model.
//
//	text ─▶ pieces ─▶ eSpeak NG, one piece at a time ─▶ joined, trimmed, levelled ─▶ WAV
//
// The text is passed to eSpeak NG through standard input, so that no part of it
// is interpreted as an option and lists of processes do not show it. It is
// treated as plain text: markup, phoneme codes and control characters have no
// effect. The same job returns the same bytes with any seed.
package speech

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"atelier/internal/engine"
	"atelier/internal/engine/subprocess"
)

// Options are the engine's settings, which the operator of the service chooses.
type Options struct {
	// Folder is the parent of the jobs' temporary folders. "" means the
	// system's temporary folder.
	Folder string
}

// Engine reads texts aloud. It keeps no state between jobs.
type Engine struct {
	program string
	folder  string
}

var _ engine.Engine = (*Engine)(nil)

// Requirements returns the programs that must be installed.
func Requirements() []subprocess.Requirement {
	return []subprocess.Requirement{{Name: "espeak-ng", Package: "espeak-ng", Path: subprocess.FindProgram("espeak-ng")}}
}

// New returns an engine that uses eSpeak NG at the given path.
func New(program string, o Options) *Engine { return &Engine{program: program, folder: o.Folder} }

const (
	// maxCharacters is the largest allowed number of characters of a text, even
	// if a manifest allows more.
	maxCharacters = 20_000
	// maxDuration is the length of the longest recording that the service
	// stores.
	maxDuration = 10 * time.Minute
)

// limits are the resource limits of eSpeak NG. They allow it to write more than
// the longest allowed result, so that a text that is too long is rejected by
// the check of the duration and not by the limit on disk space.
var limits = subprocess.Limits{Memory: 2 << 30, File: 64 << 20, Folder: 80 << 20}

var (
	errUnavailable = engine.FailTransient(engine.Unavailable, "The speech synthesizer is unavailable. Try again later.")
	errProgram     = engine.Fail(engine.Failed, "The speech synthesizer could not read the text.")
	errResult      = engine.Fail(engine.Invalid, "The speech synthesizer returned no usable audio.")
	errTooLong     = engine.Fail(engine.Failed, fmt.Sprintf("The speech would be longer than %.0f minutes. Shorten the text or raise the speed.", maxDuration.Minutes()))
	errSilent      = engine.Fail(engine.Failed, "The text contains nothing that can be spoken.")
)

// readingStyle has the voice, speed, pitch and pauses of a job.
type readingStyle struct {
	voice               string // eSpeak NG's name of the voice
	speed, pitch, pause int    // speed in words per minute, pitch from 0 to 99, pause in hundredths of a second
}

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
	m, err := readStyle(j)
	if err != nil {
		return err
	}
	text, _ := j.Values["text"].(string)
	if n := utf8.RuneCountInString(text); n > maxCharacters {
		return engine.Fail(engine.Failed, fmt.Sprintf("The text has %d characters. The limit is %d.", n, maxCharacters))
	}
	pieces := splitText(stripCommands(text))
	if len(pieces) == 0 {
		return errSilent
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	out.Progress(0)
	s, err := e.speakPieces(ctx, pieces, m, func(part float64) { out.Progress(0.9 * part) })
	if err != nil {
		return err
	}
	if !s.trimAndLevel() {
		return errSilent
	}
	file := s.encodeWAV()
	out.Progress(0.95)
	for range j.NumResults {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := out.Output(ctx, engine.Result{Data: bytes.NewReader(file)}); err != nil {
			return err
		}
	}
	out.Progress(1)
	return nil
}

// readStyle reads the inputs of a job. The catalog has validated them against
// the manifest, but a manifest may omit fields or offer choices that do not
// exist.
func readStyle(j engine.Job) (readingStyle, error) {
	whole := func(key string, fallback, low, high float64) int {
		return int(math.Round(j.NumberInput(key, fallback, low, high)))
	}
	m := readingStyle{
		speed: whole("speed", 165, 80, 400),
		pitch: whole("pitch", 50, 0, 99),
		pause: whole("pause", 0, 0, 1000) / 10,
	}
	language, ok := languages[choiceInput(j.Values["language"], "en-gb")]
	if !ok {
		return m, engine.Fail(engine.Failed, "This language is not supported.")
	}
	variant, ok := voices[choiceInput(j.Values["voice"], "man")]
	if !ok {
		return m, engine.Fail(engine.Failed, "This voice does not exist.")
	}
	m.voice = language + variant
	return m, nil
}

func choiceInput(v any, fallback string) string {
	s, _ := v.(string)
	return cmp.Or(s, fallback)
}

// speakPieces runs eSpeak NG for each piece of the text and joins the
// recordings.
func (e *Engine) speakPieces(ctx context.Context, pieces []piece, m readingStyle, progress func(part float64)) (*recording, error) {
	// Pauses between two pieces of the text depend on the speed, like the
	// pauses within a piece.
	between := time.Duration(400 * float64(time.Millisecond) * 165 / float64(m.speed))
	whole := &recording{}
	for i, p := range pieces {
		s, err := e.speakPiece(ctx, p.text, m)
		if err != nil {
			return nil, err
		}
		if !s.isSilent() { // a silent piece of text, such as a line of dashes, adds no pause
			if err := whole.appendSound(s); err != nil {
				return nil, errResult.WithCause(err)
			}
			if p.paragraph {
				whole.appendSilence(between)
			}
		}
		if whole.duration() > maxDuration {
			return nil, errTooLong
		}
		progress(float64(i+1) / float64(len(pieces)))
	}
	return whole, nil
}

// speakPiece runs eSpeak NG for one piece of the text and returns the
// recording.
func (e *Engine) speakPiece(ctx context.Context, text string, m readingStyle) (*recording, error) {
	folder, err := subprocess.NewFolder(e.folder)
	if err != nil {
		return nil, fmt.Errorf("create folder: %w", err)
	}
	defer func() { _ = folder.Close() }()
	const result = "speech.wav"
	err = subprocess.Run(ctx, subprocess.Program{
		Path: e.program,
		Args: []string{"-b", "1", "--stdin", "-w", result, "-v", m.voice,
			"-s", strconv.Itoa(m.speed), "-p", strconv.Itoa(m.pitch), "-g", strconv.Itoa(m.pause)},
		Folder: folder,
		Stdin:  []byte(text),
		Limits: limits,
	})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, fs.ErrNotExist):
		return nil, errUnavailable.WithCause(err)
	case err != nil:
		return nil, errProgram.WithCause(err)
	}
	f, err := folder.OpenFile(result)
	if err != nil {
		return nil, errResult.WithCause(err)
	}
	defer f.Close()
	s, err := parseWAV(bufio.NewReader(f))
	if err != nil {
		return nil, errResult.WithCause(err)
	}
	return s, nil
}
