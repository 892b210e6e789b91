package imageengine

import (
	"context"
	"image"
	"math"
	"slices"

	"golang.org/x/image/draw"

	"atelier/internal/base/lowpriority"
	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

const (
	pixelBytes = 4 // of a picture in memory
	// encodedBytes is the most that a pixel takes in a file: one that cannot be
	// compressed.
	encodedBytes = 4
	// takenMemory is what the sink takes beside the pixels of a result, to make a
	// small picture of it. By then the job needs little of its own, so that the
	// reservation serves both.
	takenMemory = 24 << 20
	// cardPixels is the most that a palette's card has.
	cardPixels = 6_000_000
)

// hold is the memory that a job has reserved.
type hold struct {
	free func()
	low  bool // the job comes after others
}

func (h *hold) release() {
	if h.free != nil {
		h.free()
		h.free = nil
	}
	if h.low {
		lowpriority.AddTurns(-1)
	}
}

// lower makes the job come after others. The goroutine that runs it is its own.
func (h *hold) lower() {
	h.low = true
	lowpriority.AddTurns(1)
	lowpriority.Lower()
}

// largeBytes is the memory from which a job is so much work that it comes after
// others.
const largeBytes = 64 << 20

type holdKey struct{}

// inBackground tells whether the job that a context is for comes after others.
func inBackground(ctx context.Context) bool {
	h, ok := ctx.Value(holdKey{}).(*hold)
	return ok && h.low
}

// reserve asks for the memory of a job that needs so many bytes to work and
// gives a result of so many pixels. All results of a job share one reservation.
func (t task) reserve(ctx context.Context, working, result int64) error {
	if t.hold.free != nil {
		return nil
	}
	each := int64(pixelBytes + encodedBytes)
	if !slices.Contains(t.MimeTypes, "image/png") {
		each += pixelBytes // it may have to be laid on white
	}
	bytes := working + each*result + takenMemory
	free, err := t.Reserve(ctx, bytes)
	if err != nil {
		return err
	}
	t.hold.free = free
	if t.Memory != nil && bytes > largeBytes { // there are others
		t.hold.lower()
	}
	return nil
}

// reserveInPlace is reserve for work that changes the pixels it has read, with
// some bytes for each beside.
func (t task) reserveInPlace(ctx context.Context, f engine.File, each int64) error {
	in, err := pixels.Look(ctx, f)
	if err != nil {
		return err
	}
	working := in.Memory + each*in.Pixels() - pixelBytes*in.Pixels()
	if each > 0 {
		working += stripMemory(in.Width, in.Height)
	}
	return t.reserve(ctx, working, in.Pixels())
}

// scaleMemory is what scale takes beside the source and the result: for each
// core the rows that are in use, in four floats a pixel.
func scaleMemory(k *draw.Kernel, in pixels.Measure, w, h int) int64 {
	const floats = 4 * 4
	step := max(float64(in.Height)/float64(h), 1)
	rows := min(int64(math.Ceil(2*k.Support*step))+2, int64(in.Height))
	cores := min(int64(lowpriority.Cores()), int64(h+47)/48)
	return cores * floats * (int64(in.Width) + int64(w)*(rows+1))
}

// stripMemory is what work takes that goes through a picture in strips of rows.
func stripMemory(w, h int) int64 { return int64(w) * 8 * int64(min(h, 320)+lowpriority.Cores()) }

// sheetMemory is what pictures take that are read one after the other and laid
// onto a sheet.
func sheetMemory(looks []pixels.Measure, places []image.Rectangle) int64 {
	var most int64
	for i, in := range looks {
		w := places[i].Dx()
		h := places[i].Dy()
		most = max(most, in.Memory+scaleMemory(draw.CatmullRom, in, w, h)+pixelBytes*int64(w)*int64(h))
	}
	return most
}
