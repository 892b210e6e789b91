// Package pixels reads and writes picture files for the built-in engines.
//
// In memory, pictures have 8 bits per channel and straight alpha, are upright,
// and are treated as sRGB. The format of a file is detected from its content.
// If a file is damaged or too large, reading it fails with a message for the
// person who started the job.
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

// The picture formats that can be read.
const (
	JPEG Format = "jpeg"
	PNG  Format = "png"
	WebP Format = "webp"
	GIF  Format = "gif"
)

// Picture has the pixels of a picture and the file format that they were read
// from or will be written in.
type Picture struct {
	*image.NRGBA
	Format Format
}

// EachRow calls the function do for rows 0 to n-1 and reports progress. It
// checks ctx every few rows, so that work on large pictures can be cancelled.
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

// ClampByte rounds a value to a whole number from 0 to 255.
func ClampByte(v float32) uint8 { return uint8(min(max(v+0.5, 0), 255)) }
