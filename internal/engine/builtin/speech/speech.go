// Package speech is the engine that reads text aloud, with eSpeak NG: a small
// formant synthesiser, plain in sound, that knows many languages and needs no
// model.
//
//	text ─▶ pieces ─▶ eSpeak NG, one piece at a time ─▶ joined, trimmed, levelled ─▶ WAV
//
// The text goes in through standard input, where no part of it can be an option
// and no list of processes shows it. It is read as text: markup, phoneme codes
// and control characters mean nothing. The same job gives the same bytes,
// whatever the seed.
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

// Options are what an operator may choose.
type Options struct {
	// Folder is where jobs have their temporary folders, "" for the system's
	// place.
	Folder string
}

// Engine runs jobs. It keeps nothing between them.
type Engine struct {
	program string
	folder  string
}

var _ engine.Engine = (*Engine)(nil)

// Needs are what has to be installed.
func Needs() []subprocess.Need {
	return []subprocess.Need{{Name: "espeak-ng", Package: "espeak-ng", Path: subprocess.Find("espeak-ng")}}
}

// New makes the engine for eSpeak NG at this path.
func New(program string, o Options) *Engine { return &Engine{program: program, folder: o.Folder} }

const (
	// maxText is what the engine takes where a manifest allows more.
	maxText = 20_000
	// maxLength is how long sound may be that the service stores.
	maxLength = 10 * time.Minute
)

// limits leave room for a piece that is longer than the whole may be, so that
// its length decides and not the disk.
var limits = subprocess.Limits{Memory: 2 << 30, File: 64 << 20, Folder: 80 << 20}

var (
	errAway    = engine.Again(engine.Unavailable, "The voice is not there just now.")
	errProgram = engine.Fail(engine.Failed, "The voice could not read the text.")
	errResult  = engine.Fail(engine.Invalid, "The voice gave no sound that can be used.")
	errLong    = engine.Fail(engine.Failed, fmt.Sprintf("The speech would be longer than %.0f minutes. Shorten the text or raise the speed.", maxLength.Minutes()))
	errSilent  = engine.Fail(engine.Failed, "There is nothing in the text that can be spoken.")
)

// manner is how a job wants its text read.
type manner struct {
	voice               string // as the program names it
	speed, pitch, pause int    // words a minute, 0 to 99, hundredths of a second
}

// Manual says what a manifest can ask of the engine: there is nothing to set.
func Manual() engine.Manual {
	return engine.Manual{Setting: func() any { return &struct{}{} }}
}

// Run does the job.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	if err := engine.Setting(j.With, &struct{}{}); err != nil { // there is nothing to set
		return err
	}
	m, err := mannerOf(j)
	if err != nil {
		return err
	}
	text, _ := j.Values["text"].(string)
	if n := utf8.RuneCountInString(text); n > maxText {
		return engine.Fail(engine.Failed, fmt.Sprintf("The text has %d characters; at most %d are possible.", n, maxText))
	}
	pieces := split(plain(text))
	if len(pieces) == 0 {
		return errSilent
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	out.Progress(0)
	s, err := e.read(ctx, pieces, m, func(part float64) { out.Progress(0.9 * part) })
	if err != nil {
		return err
	}
	if !s.polish() {
		return errSilent
	}
	file := s.wav()
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

// mannerOf reads the fields. The catalog has checked them against the manifest,
// but a manifest may leave fields out or offer what is not there.
func mannerOf(j engine.Job) (manner, error) {
	whole := func(key string, otherwise, low, high float64) int {
		return int(math.Round(j.Number(key, otherwise, low, high)))
	}
	m := manner{
		speed: whole("speed", 165, 80, 400),
		pitch: whole("pitch", 50, 0, 99),
		pause: whole("pause", 0, 0, 1000) / 10,
	}
	language, ok := languages[choice(j.Values["language"], "en-gb")]
	if !ok {
		return m, engine.Fail(engine.Failed, "This language cannot be spoken.")
	}
	variant, ok := voices[choice(j.Values["voice"], "man")]
	if !ok {
		return m, engine.Fail(engine.Failed, "There is no such voice.")
	}
	m.voice = language + variant
	return m, nil
}

func choice(v any, otherwise string) string {
	s, _ := v.(string)
	return cmp.Or(s, otherwise)
}

// read has all pieces spoken and joins them.
func (e *Engine) read(ctx context.Context, pieces []piece, m manner, progress func(part float64)) (*sound, error) {
	// Pauses follow the speed, as they do inside a piece.
	between := time.Duration(400 * float64(time.Millisecond) * 165 / float64(m.speed))
	whole := &sound{}
	for i, p := range pieces {
		s, err := e.speak(ctx, p.text, m)
		if err != nil {
			return nil, err
		}
		if !s.silent() { // a line of dashes is no pause of its own
			if err := whole.append(s); err != nil {
				return nil, errResult.Because(err)
			}
			if p.paragraph {
				whole.rest(between)
			}
		}
		if whole.length() > maxLength {
			return nil, errLong
		}
		progress(float64(i+1) / float64(len(pieces)))
	}
	return whole, nil
}

// speak has one piece spoken.
func (e *Engine) speak(ctx context.Context, text string, m manner) (*sound, error) {
	folder, err := subprocess.NewFolder(e.folder)
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	defer folder.Close()
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
		return nil, errAway.Because(err)
	case err != nil:
		return nil, errProgram.Because(err)
	}
	f, err := folder.Open(result)
	if err != nil {
		return nil, errResult.Because(err)
	}
	defer f.Close()
	s, err := parse(bufio.NewReader(f))
	if err != nil {
		return nil, errResult.Because(err)
	}
	return s, nil
}
