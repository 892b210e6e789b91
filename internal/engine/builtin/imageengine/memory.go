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
	pixelBytes = 4 // bytes per pixel of a decoded picture
	// encodedBytes is the largest number of bytes per pixel in an encoded file.
	// Pictures that cannot be compressed need this many.
	encodedBytes = 4
	// sinkMemory is the number of bytes that the sink needs to make a
	// thumbnail, in addition to the pixels of the result. While the sink does
	// that, the job itself needs little memory, so one reservation covers both.
	sinkMemory = 24 << 20
	// cardPixels is the largest number of pixels of the card that shows a
	// palette.
	cardPixels = 6_000_000
)

// memoryReservation is the memory that a job has reserved, and the priority it
// runs at.
type memoryReservation struct {
	free func()
	low  bool // whether the job runs at low priority
}

func (h *memoryReservation) releaseMemory() {
	if h.free != nil {
		h.free()
		h.free = nil
	}
	if h.low {
		lowpriority.AddProcessors(-1)
	}
}

// lowerPriority makes the job run at low priority. It changes the calling
// goroutine, which no other job may use afterwards.
func (h *memoryReservation) lowerPriority() {
	h.low = true
	lowpriority.AddProcessors(1)
	lowpriority.Lower()
}

// largeBytes is the number of reserved bytes above which a job runs at low
// priority.
const largeBytes = 64 << 20

type reservationKey struct{}

// hasLowPriority reports whether the job that ctx belongs to runs at low
// priority.
func hasLowPriority(ctx context.Context) bool {
	h, ok := ctx.Value(reservationKey{}).(*memoryReservation)
	return ok && h.low
}

// reserveMemory reserves memory for a job: working is the number of bytes for
// intermediate data, result the number of pixels of a result. All results of a
// job use the same reservation, so only the first call reserves memory.
func (t task) reserveMemory(ctx context.Context, working, result int64) error {
	if t.reservation.free != nil {
		return nil
	}
	each := int64(pixelBytes + encodedBytes)
	if !slices.Contains(t.MimeTypes, "image/png") {
		each += pixelBytes // JPEG needs a copy on a white background
	}
	bytes := working + each*result + sinkMemory
	free, err := t.ReserveMemory(ctx, bytes)
	if err != nil {
		return err
	}
	t.reservation.free = free
	if t.Memory != nil && bytes > largeBytes { // the memory is limited and shared with other jobs
		t.reservation.lowerPriority()
	}
	return nil
}

// reserveInPlace reserves memory for a job that changes the decoded pixels in
// place. The parameter each is the number of additional bytes per pixel.
func (t task) reserveInPlace(ctx context.Context, f engine.File, each int64) error {
	in, err := pixels.ReadHeader(ctx, f)
	if err != nil {
		return err
	}
	working := in.Memory + each*in.Pixels() - pixelBytes*in.Pixels()
	if each > 0 {
		working += stripMemory(in.Width, in.Height)
	}
	return t.reserveMemory(ctx, working, in.Pixels())
}

// scaleMemory returns the number of bytes that scaleArea needs in addition to
// source and result: for each core, the rows in use, with four 32-bit floats
// per pixel.
func scaleMemory(k *draw.Kernel, in pixels.Header, w, h int) int64 {
	const floats = 4 * 4
	step := max(float64(in.Height)/float64(h), 1)
	rows := min(int64(math.Ceil(2*k.Support*step))+2, int64(in.Height))
	cores := min(int64(lowpriority.Cores()), int64(h+47)/48)
	return cores * floats * (int64(in.Width) + int64(w)*(rows+1))
}

// stripMemory returns the number of bytes of working memory for operations that
// process a picture in strips of rows.
func stripMemory(w, h int) int64 { return int64(w) * 8 * int64(min(h, 320)+lowpriority.Cores()) }

// sheetMemory returns the number of bytes of working memory for pictures that
// are decoded one after the other and drawn onto a sheet.
func sheetMemory(measures []pixels.Header, places []image.Rectangle) int64 {
	var maxBytes int64
	for i, in := range measures {
		w := places[i].Dx()
		h := places[i].Dy()
		maxBytes = max(maxBytes, in.Memory+scaleMemory(draw.CatmullRom, in, w, h)+pixelBytes*int64(w)*int64(h))
	}
	return maxBytes
}
