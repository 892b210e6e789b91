// Package pixels reads and writes picture files for the engines of ours that
// work on pictures.
//
// Pictures are held as 8 bits per channel with straight alpha, upright and in
// sRGB as it comes. Files are told apart by their bytes; one that is damaged or
// too large is a failure that the person can be told.
package pixels

import (
	"context"
	"image"

	"atelier/internal/engine"
)

// Most is how large a picture may be, coming in or going out.
const Most = 50_000_000

// Format is a kind of picture file.
type Format string

// The formats that can be read.
const (
	JPEG Format = "jpeg"
	PNG  Format = "png"
	WebP Format = "webp"
	GIF  Format = "gif"
)

// Picture is pixels and the format that they came in or should go out in.
type Picture struct {
	*image.NRGBA
	Format Format
}

// Rows does work for rows 0 to n-1. It looks at ctx every few of them, so that
// the largest picture is left soon.
func Rows(ctx context.Context, s engine.Span, n int, do func(y int)) error {
	const band = 16
	for y := range n {
		if y%band == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			s.At(float64(y) / float64(n))
		}
		do(y)
	}
	s.At(1)
	return ctx.Err()
}

// Byte rounds and clamps.
func Byte(v float32) uint8 { return uint8(min(max(v+0.5, 0), 255)) }
