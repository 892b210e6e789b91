// Package imageengine is the engine with the name "image" in manifests: picture
// tools in plain Go that need no other program.
//
// A tool's manifest names one of the operations. Operations that make pictures
// (gradient, pattern) depend on the seed: the first result of a job is the same
// for any number of results, and each further result has its own seed. All
// other operations take pictures as inputs. They return the same bytes for the
// same input, with any seed and any number of cores.
//
// Pictures are in memory with 8 bits per channel and straight alpha. A job
// needs memory for its input, its result and the encoded result. Pictures have
// up to 50 megapixels. A job also needs working memory: some rows or tiles per
// core, or some bytes per pixel. It reserves all of this memory before
// decoding, according to the dimensions in the file headers.
package imageengine

import (
	"context"
	"maps"
	"slices"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// Engine runs the operations. It keeps no state between jobs.
type Engine struct{}

// New returns the engine.
func New() *Engine { return &Engine{} }

var _ engine.Engine = (*Engine)(nil)

// operationFunc computes one result of a job, with the given seed.
type operationFunc func(ctx context.Context, t task, s engine.Span, seed uint32) (pixels.Picture, error)

// operations are the operations that a manifest can name.
var operations = map[string]struct {
	do     operationFunc
	seeded bool // whether the results of a job differ by their seeds
}{
	"adjust":        {do: adjustPicture},
	"collage":       {do: makeCollage},
	"contact":       {do: makeContactSheet},
	"crop":          {do: cropPicture},
	"cutout":        {do: cutOutSubject},
	"gradient":      {do: drawGradient, seeded: true},
	"palette":       {do: extractPalette},
	"pattern":       {do: drawPattern, seeded: true},
	"resize":        {do: resizePicture},
	"photo-upscale": {do: upscalePhoto},
	"upscale":       {do: upscalePicture},
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
func (*Engine) Run(ctx context.Context, j engine.Job, out engine.Sink) error {
	var with manifestSetting
	if err := engine.DecodeSetting(j.With, &with); err != nil {
		return err
	}
	op, ok := operations[with.Operation]
	if !ok {
		return engine.ErrMisconfigured
	}
	t := task{Job: j, out: out, reservation: &memoryReservation{}}
	defer t.reservation.releaseMemory()
	ctx = context.WithValue(ctx, reservationKey{}, t.reservation)
	whole := engine.NewSpan(out)
	whole.ReportProgress(0)
	var file *pixels.File
	for i := range j.NumResults {
		s := whole.SubSpan(float64(i)/float64(j.NumResults), float64(i+1)/float64(j.NumResults))
		if i == 0 || op.seeded {
			p, err := op.do(ctx, t, s.SubSpan(0, 0.85), resultSeed(j.Seed, i))
			if err != nil {
				return err
			}
			if file, err = t.encodeResult(ctx, p); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := out.Output(ctx, engine.Result{Data: file.Reader()}); err != nil {
			return err
		}
		s.ReportProgress(1)
	}
	return nil
}

// resultSeed returns the seed of the result with index i. It predates
// engine.Job.SeedOf and computes different seeds, which must not change.
func resultSeed(seed uint32, i int) uint32 {
	if i == 0 {
		return seed
	}
	return hashCell(seed, uint32(i), 0)
}

// hashCell returns a pseudo-random number for a seed and the coordinates of a
// cell.
func hashCell(seed, x, y uint32) uint32 {
	return mixBits(mixBits(seed+x*0x9e3779b1) + y*0x85ebca77)
}

func mixBits(h uint32) uint32 {
	h ^= h >> 16
	h *= 0x7feb352d
	h ^= h >> 15
	h *= 0x846ca68b
	return h ^ h>>16
}

// hashUnit returns hashCell scaled to the range from 0 to 1.
func hashUnit(seed, x, y uint32) float64 { return float64(hashCell(seed, x, y)) / (1 << 32) }
