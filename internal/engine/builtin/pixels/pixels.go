// Package pixels reads and writes picture files for the built-in engines.
//
// Pictures are in memory with 8 bits per channel and straight alpha, upright, and treated as sRGB.
// The format is detected by the file's bytes. A file that is damaged or too large is an engine
// failure with a message for the person.
package pixels

import (
	"context"
	"image"

	"atelier/internal/engine"
)

// MaxPixels is the largest number of pixels of an input or a result.
const MaxPixels = 50_000_000

// Format is a picture file format.
type Format string

// The formats that can be read.
const (
	JPEG Format = "jpeg"
	PNG  Format = "png"
	WebP Format = "webp"
	GIF  Format = "gif"
)

// Picture is pixels and the format of their source or result.
type Picture struct {
	*image.NRGBA
	Format Format
}

// EachRow calls do for rows 0 to n-1. It checks ctx every few rows, so that work on large pictures
// stops soon.
func EachRow(ctx context.Context, s engine.Span, n int, do func(y int)) error {
	const band = 16
	for y := range n {
		if y%band == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			s.ReportProgress(float64(y) / float64(n))
		}
		do(y)
	}
	s.ReportProgress(1)
	return ctx.Err()
}

// ClampByte rounds a value and clamps it to 0 to 255.
func ClampByte(v float32) uint8 { return uint8(min(max(v+0.5, 0), 255)) }
