// Package video is the engine for moving pictures. It runs FFmpeg's filters in a separate program
// for each job.
//
//	inputs into a folder ─▶ ffprobe ─▶ prepare: one pass for each ─▶ render ─▶ check the file ─▶ sink
//
// Inputs are treated as hostile. They get generated names in the folder, the demuxer is the one for
// the type that the service detected, the only protocol is "file", and the program has no network.
// A filter graph consists of numbers and of words from the code; text from a person is never part
// of one. Pictures and music are first converted to a plain form, one at a time, so that the pass
// that joins them needs little memory and reads only files that this engine wrote.
package video

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"atelier/internal/engine"
	"atelier/internal/engine/subprocess"
)

// Options are the engine's settings. Zero means the default in the comment.
type Options struct {
	Folder string // parent of the jobs' folders; default: the system's temporary folder
	// Memory limits the address space of the program, which is far more than the memory that it uses.
	// Default: 4 GiB. Twelve pictures in full HD need almost 3.
	Memory int64
	File   int64 // largest file that the program may write, in bytes; default: 1 GiB
	Space  int64 // largest size of a job's folder in bytes; default: 4 GiB
}

// Engine runs the operations. It has no state between jobs.
type Engine struct {
	ffmpeg, ffprobe string
	folder          string
	limits          subprocess.Limits
}

var _ engine.Engine = (*Engine)(nil)

// Requirements returns the programs that must be installed.
func Requirements() []subprocess.Requirement {
	return []subprocess.Requirement{
		{Name: "ffmpeg", Package: "ffmpeg", Path: subprocess.FindProgram("ffmpeg")},
		{Name: "ffprobe", Package: "ffmpeg", Path: subprocess.FindProgram("ffprobe")},
	}
}

// New returns an engine that uses the two programs at these absolute paths.
func New(ffmpeg, ffprobe string, o Options) *Engine {
	return &Engine{ffmpeg: ffmpeg, ffprobe: ffprobe, folder: o.Folder, limits: subprocess.Limits{
		Memory: cmp.Or(o.Memory, 4<<30),
		File:   cmp.Or(o.File, 1<<30),
		Folder: cmp.Or(o.Space, 4<<30),
	}}
}

// operationFunc makes the result for a seed and returns its name in the folder.
type operationFunc func(ctx context.Context, w *jobRun, s engine.Span, seed uint32) (string, error)

// operations are the operations that a manifest can name.
var operations = map[string]struct {
	do     operationFunc
	makes  string
	seeded func(task) bool // reports whether every result of a job differs; nil: never
}{
	"pan-zoom":      {do: makePanZoom, makes: mp4, seeded: isMixed},
	"slideshow":     {do: makeSlideshow, makes: mp4},
	"smooth-motion": {do: makeSmoothMotion, makes: mp4},
	"video-to-gif":  {do: convertToGIF, makes: gif},
	"waveform":      {do: drawWaveform, makes: mp4},
}

// manifestSetting is the engine's part of a manifest.
type manifestSetting struct {
	Operation string `json:"operation"`
}

// ManifestSpec describes the engine's settings in a manifest.
func ManifestSpec() engine.ManifestSpec {
	return engine.ManifestSpec{
		Setting: func() any { return &manifestSetting{} },
		Choices: map[string][]string{"operation": slices.Sorted(maps.Keys(operations))},
	}
}

// Run does the job.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	var with manifestSetting
	if err := engine.DecodeSetting(j.With, &with); err != nil {
		return err
	}
	op, ok := operations[with.Operation]
	t := task{j}
	if !ok || !t.canMake(op.makes) {
		return engine.ErrMisconfigured
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	w, err := e.newJobRun(t, out)
	if err != nil {
		return err
	}
	defer w.removeFolder()
	whole := engine.NewSpan(out)
	var name string
	for i := range j.NumResults {
		s := whole.NthOf(i, j.NumResults)
		if i == 0 || op.seeded != nil && op.seeded(t) {
			if name, err = op.do(ctx, w, s.SubSpan(0, 0.98), j.SeedOf(i)); err != nil {
				return err
			}
			if err := w.checkComplete(ctx, name, op.makes); err != nil {
				return err
			}
		}
		if err := w.sendResult(ctx, name); err != nil {
			return err
		}
		s.ReportProgress(1)
	}
	return nil
}
