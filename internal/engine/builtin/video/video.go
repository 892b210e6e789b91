// Package video is the engine that makes and changes videos. It runs the
// programs ffmpeg and ffprobe separately for each job.
//
//	inputs into a folder ─▶ ffprobe ─▶ prepare each input ─▶ render ─▶ check the file ─▶ sink
//
// Inputs are treated as hostile. They get generated names in the job's folder,
// they are read with the demuxer for the type that the service detected, the
// only protocol allowed is "file", and the program has no network access. A
// filter graph consists only of numbers and of strings from the code, never of
// text from a person. Pictures and music are first converted to a plain format,
// one at a time, so that the final run of ffmpeg needs little memory and reads
// only files that this engine wrote.
package video

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"atelier/internal/engine"
	"atelier/internal/engine/subprocess"
)

// Options are the settings of the engine. For fields that are zero, the
// defaults in the comments apply.
type Options struct {
	Folder string // parent of the jobs' temporary folders; default: the system's temporary folder
	// Memory is the maximum address space of the program in bytes, which is far
	// more than the memory that it uses. The default is 4 GiB. A video of
	// twelve full HD pictures needs almost 3 GiB.
	Memory int64
	File   int64 // largest size in bytes of a file that the program writes; default: 1 GiB
	Space  int64 // largest size in bytes of a job's folder; default: 4 GiB
}

// Engine runs the operations. It keeps no state between jobs.
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

// New returns an engine that uses ffmpeg and ffprobe at the given absolute
// paths.
func New(ffmpeg, ffprobe string, o Options) *Engine {
	return &Engine{ffmpeg: ffmpeg, ffprobe: ffprobe, folder: o.Folder, limits: subprocess.Limits{
		Memory: cmp.Or(o.Memory, 4<<30),
		File:   cmp.Or(o.File, 1<<30),
		Folder: cmp.Or(o.Space, 4<<30),
	}}
}

// operationFunc makes one result of a job, with the given seed, and returns its
// file name in the job's folder.
type operationFunc func(ctx context.Context, w *jobRun, s engine.Span, seed uint32) (string, error)

// operations are the operations that a manifest can name.
var operations = map[string]struct {
	do     operationFunc
	makes  string
	seeded func(task) bool // reports whether the results of a job differ by their seeds; nil if they never do
}{
	"pan-zoom":      {do: makePanZoom, makes: mp4, seeded: isMixed},
	"slideshow":     {do: makeSlideshow, makes: mp4},
	"smooth-motion": {do: makeSmoothMotion, makes: mp4},
	"video-to-gif":  {do: convertToGIF, makes: gif},
	"waveform":      {do: drawWaveform, makes: mp4},
}

// manifestSetting is the part of a manifest that configures this engine.
type manifestSetting struct {
	Operation string `json:"operation"`
}

// ManifestSpec describes the settings that this engine accepts in a manifest.
func ManifestSpec() engine.ManifestSpec {
	return engine.ManifestSpec{
		Setting: func() any { return &manifestSetting{} },
		Choices: map[string][]string{"operation": slices.Sorted(maps.Keys(operations))},
	}
}

// Run runs a job and writes its results to out.
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
