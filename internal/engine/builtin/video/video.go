// Package video is the engine for moving pictures: the classic filters of
// FFmpeg, run as a program for each job.
//
//	inputs into a folder ─▶ ffprobe ─▶ prepare: one pass for each ─▶ render ─▶ look at the file ─▶ sink
//
// Inputs are taken to be hostile. They lie in the folder under names of ours,
// the demuxer is the one for the type that the service found, the only
// protocol is the file, and the program has no network. A filter graph is made
// of numbers and of words that are in the code; what a person typed never gets
// into one. Pictures and music are first brought into a plain form of their
// own, one at a time, so that the pass that puts them together needs little
// memory and reads only what we wrote.
package video

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"atelier/internal/engine"
	"atelier/internal/engine/subprocess"
)

// Options are the engine's settings. Zero stands for the value in the comment.
type Options struct {
	Folder string // where jobs get their folders: the system's place
	// Memory bounds the address space of the program, of which it takes far
	// more than memory: 4 GiB. Twelve pictures in full HD need nearly 3.
	Memory int64
	File   int64 // bytes of one file that it writes: 1 GiB
	Space  int64 // bytes that a job's folder may hold: 4 GiB
}

// Engine runs the operations. It keeps nothing between jobs.
type Engine struct {
	ffmpeg, ffprobe string
	folder          string
	limits          subprocess.Limits
}

var _ engine.Engine = (*Engine)(nil)

// Needs are the programs that the engine cannot work without.
func Needs() []subprocess.Need {
	return []subprocess.Need{
		{Name: "ffmpeg", Package: "ffmpeg", Path: subprocess.Find("ffmpeg")},
		{Name: "ffprobe", Package: "ffmpeg", Path: subprocess.Find("ffprobe")},
	}
}

// New makes the engine for the two programs, by their absolute paths.
func New(ffmpeg, ffprobe string, o Options) *Engine {
	return &Engine{ffmpeg: ffmpeg, ffprobe: ffprobe, folder: o.Folder, limits: subprocess.Limits{
		Memory: cmp.Or(o.Memory, 4<<30),
		File:   cmp.Or(o.File, 1<<30),
		Folder: cmp.Or(o.Space, 4<<30),
	}}
}

// operation makes the result for a seed, and gives its name in the folder.
type operation func(ctx context.Context, w *work, s engine.Span, seed uint32) (string, error)

// operations are what a manifest can name.
var operations = map[string]struct {
	do     operation
	makes  string
	seeded func(task) bool // each result differs; nil: never
}{
	"pan-zoom":      {do: panZoom, makes: mp4, seeded: mixed},
	"slideshow":     {do: slideshow, makes: mp4},
	"smooth-motion": {do: smoothMotion, makes: mp4},
	"video-to-gif":  {do: videoToGIF, makes: gif},
	"waveform":      {do: waveform, makes: mp4},
}

// setting is the engine's part of a manifest.
type setting struct {
	Operation string `json:"operation"`
}

// Manual says what a manifest can ask of the engine.
func Manual() engine.Manual {
	return engine.Manual{
		Setting: func() any { return &setting{} },
		Choices: map[string][]string{"operation": slices.Sorted(maps.Keys(operations))},
	}
}

// Run does the job.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	var with setting
	if err := engine.Setting(j.With, &with); err != nil {
		return err
	}
	op, ok := operations[with.Operation]
	t := task{j}
	if !ok || !t.makes(op.makes) {
		return engine.ErrSetup
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	w, err := e.begin(t, out)
	if err != nil {
		return err
	}
	defer w.end()
	whole := engine.Whole(out)
	var name string
	for i := range j.NumResults {
		s := whole.Of(i, j.NumResults)
		if i == 0 || op.seeded != nil && op.seeded(t) {
			if name, err = op.do(ctx, w, s.Part(0, 0.98), j.SeedOf(i)); err != nil {
				return err
			}
			if err := w.complete(ctx, name, op.makes); err != nil {
				return err
			}
		}
		if err := w.hand(ctx, name); err != nil {
			return err
		}
		s.At(1)
	}
	return nil
}
