package tiny

import (
	"context"
	"fmt"
	"image"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// What a picture may have that is enlarged.
const (
	mostArt = 2_000_000 // pixels: the result has sixteen times as many
	// mostSide bounds the time of narrow pictures: the network takes as long for a
	// row of one pixel as for one of a hundred.
	mostSide = 16_000
)

// checkArt refuses pictures that are too large to be enlarged.
func checkArt(in pixels.Header) error {
	if max(in.Width, in.Height) > mostSide {
		return engine.Fail(engine.Failed, fmt.Sprintf("The picture is too large: %d by %d pixels; each side may have at most %d pixels.", in.Width, in.Height, mostSide))
	}
	if in.Pixels() > mostArt {
		return engine.Fail(engine.Failed, fmt.Sprintf("The picture is too large: %d by %d pixels; at most %d megapixels can be enlarged.", in.Width, in.Height, mostArt/1_000_000))
	}
	return nil
}

// upscaleArt makes a picture four times as wide and as high. Every result is the
// same.
func upscaleArt(ctx context.Context, t *task, s engine.Span, _ int) (*image.NRGBA, string, error) {
	f, err := picture(t.Job)
	if err != nil {
		return nil, "", err
	}
	t.watch.begin()
	p, err := pixels.Read(ctx, s.SubSpan(0, 0.05), f)
	if err != nil {
		return nil, "", err
	}
	t.watch.end("read")
	m, err := t.enlarge(ctx, p.NRGBA, s.SubSpan(0.05, 1))
	return m, "", err
}
