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
	"bytes"
	"cmp"
	"context"
	"encoding/json"

	"atelier/internal/engine"
	"atelier/internal/engine/child"
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
	limits          child.Limits
}

var _ engine.Engine = (*Engine)(nil)

// Needs are the programs that the engine cannot work without.
func Needs() []child.Need {
	return []child.Need{
		{Name: "ffmpeg", Package: "ffmpeg", Path: child.Find("ffmpeg")},
		{Name: "ffprobe", Package: "ffmpeg", Path: child.Find("ffprobe")},
	}
}

// New makes the engine for the two programs, by their absolute paths.
func New(ffmpeg, ffprobe string, o Options) *Engine {
	return &Engine{ffmpeg: ffmpeg, ffprobe: ffprobe, folder: o.Folder, limits: child.Limits{
		Memory: cmp.Or(o.Memory, 4<<30),
		File:   cmp.Or(o.File, 1<<30),
		Folder: cmp.Or(o.Space, 4<<30),
	}}
}

// operation makes the result for a seed, and gives its name in the folder.
type operation func(ctx context.Context, w *work, s span, seed uint32) (string, error)

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

var errSetup = engine.Fail(engine.Failed, "This tool is not set up rightly. Tell the operator.")

// Run does the job.
func (e *Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	var with struct {
		Operation string `json:"operation"`
	}
	d := json.NewDecoder(bytes.NewReader([]byte(j.With)))
	d.DisallowUnknownFields()
	if err := d.Decode(&with); err != nil {
		return errSetup.Because(err)
	}
	op, ok := operations[with.Operation]
	t := task{j}
	if !ok || !t.makes(op.makes) {
		return errSetup
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	w, err := e.begin(t, out)
	if err != nil {
		return err
	}
	defer w.end()
	whole := span{bar: &bar{out: out}, to: 1}
	var name string
	for i := range j.NumResults {
		s := whole.part(float64(i)/float64(j.NumResults), float64(i+1)/float64(j.NumResults))
		if i == 0 || op.seeded != nil && op.seeded(t) {
			if name, err = op.do(ctx, w, s.part(0, 0.98), seedOf(j.Seed, i)); err != nil {
				return err
			}
			if err := w.complete(ctx, name, op.makes); err != nil {
				return err
			}
		}
		if err := w.hand(ctx, name); err != nil {
			return err
		}
		s.at(1)
	}
	return nil
}

// seedOf gives the seed of the ith result; the first is that of a job for one.
func seedOf(seed uint32, i int) uint32 { return seed + uint32(i)*0x9e3779b1 }

// bar tells progress that only grows, in steps worth telling.
type bar struct {
	out  engine.Sink
	last float64
}

// span is a stretch of the bar that belongs to one piece of work.
type span struct {
	bar      *bar
	from, to float64
}

func (s span) part(from, to float64) span {
	width := s.to - s.from
	return span{s.bar, s.from + from*width, s.from + to*width}
}

func (s span) at(fraction float64) {
	const step = 0.01
	f := min(s.from+min(max(fraction, 0), 1)*(s.to-s.from), 1)
	if f >= s.bar.last+step || f == 1 && s.bar.last < 1 {
		s.bar.last = f
		s.bar.out.Progress(f)
	}
}
