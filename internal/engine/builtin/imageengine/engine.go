// Package imageengine is the engine that ships: picture tools in plain Go, for
// which nothing else has to be installed.
//
// A tool's manifest names one of the operations. Those that make pictures
// (gradient, pattern) follow from the seed; result 0 of a job is what a job
// for one result gives, and each further one has a seed of its own. Those that
// work on pictures (all others) give the same bytes for the same input,
// whatever the seed and however many cores there are.
//
// Pictures are held as 8 bits per channel with straight alpha; a job holds at
// most its input, its result and the encoded result, of up to 50 megapixels,
// and besides that some rows or tiles for each core, or some bytes a pixel. It
// reserves all of that by what the headers say, before it reads a pixel.
package imageengine

import (
	"context"
	"maps"
	"slices"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// Engine runs the operations. It keeps nothing between jobs.
type Engine struct{}

// New makes the engine.
func New() *Engine { return &Engine{} }

var _ engine.Engine = (*Engine)(nil)

// operation makes the result for a seed.
type operation func(ctx context.Context, t task, s engine.Span, seed uint32) (pixels.Picture, error)

// operations are what a manifest can name.
var operations = map[string]struct {
	do     operation
	seeded bool // each result differs
}{
	"adjust":        {do: adjust},
	"collage":       {do: collage},
	"contact":       {do: contact},
	"crop":          {do: crop},
	"cutout":        {do: cutout},
	"gradient":      {do: gradient, seeded: true},
	"palette":       {do: palette},
	"pattern":       {do: pattern, seeded: true},
	"resize":        {do: resize},
	"photo-upscale": {do: photoUpscale},
	"upscale":       {do: upscale},
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
func (*Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	var with setting
	if err := engine.Setting(j.With, &with); err != nil {
		return err
	}
	op, ok := operations[with.Operation]
	if !ok {
		return engine.ErrSetup
	}
	t := task{Job: j, out: out, hold: &hold{}}
	defer t.hold.release()
	ctx = context.WithValue(ctx, holdKey{}, t.hold)
	whole := engine.Whole(out)
	whole.At(0)
	var file *pixels.File
	for i := range j.NumResults {
		s := whole.Part(float64(i)/float64(j.NumResults), float64(i+1)/float64(j.NumResults))
		if i == 0 || op.seeded {
			p, err := op.do(ctx, t, s.Part(0, 0.85), seedOf(j.Seed, i))
			if err != nil {
				return err
			}
			if file, err = t.encode(ctx, p); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := out.Output(ctx, engine.Result{Data: file.Reader()}); err != nil {
			return err
		}
		s.At(1)
	}
	return nil
}

// seedOf gives the seed of the ith result. It is older than engine.Job.SeedOf and
// gives other numbers, which have to stay.
func seedOf(seed uint32, i int) uint32 {
	if i == 0 {
		return seed
	}
	return scatter(seed, uint32(i), 0)
}

// scatter gives numbers without visible order for places in a grid.
func scatter(seed, x, y uint32) uint32 {
	return stir(stir(seed+x*0x9e3779b1) + y*0x85ebca77)
}

func stir(h uint32) uint32 {
	h ^= h >> 16
	h *= 0x7feb352d
	h ^= h >> 15
	h *= 0x846ca68b
	return h ^ h>>16
}

// unit is scatter as a number from 0 to 1.
func unit(seed, x, y uint32) float64 { return float64(scatter(seed, x, y)) / (1 << 32) }
