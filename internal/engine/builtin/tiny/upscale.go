package tiny

import (
	"context"
	"fmt"
	"image"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// Limits on the size of a picture that can be enlarged.
const (
	maxArtPixels = 2_000_000 // largest number of input pixels; the result has sixteen times as many
	// maxSide is the longest side in pixels. It limits the time for narrow
	// pictures, because the network needs as long for a row of one pixel as for
	// a row of a hundred.
	maxSide = 16_000
)

// checkArt returns an error if a picture is too large to be enlarged.
func checkArt(in pixels.Header) error {
	if max(in.Width, in.Height) > maxSide {
		return engine.Fail(engine.Failed, fmt.Sprintf("The picture is too large: %d by %d pixels. The limit is %d pixels for each side.", in.Width, in.Height, maxSide))
	}
	if in.Pixels() > maxArtPixels {
		return engine.Fail(engine.Failed, fmt.Sprintf("The picture is too large: %d by %d pixels. The limit for enlarging is %d megapixels.", in.Width, in.Height, maxArtPixels/1_000_000))
	}
	return nil
}

// upscaleArtwork makes a picture four times as wide and high. All results of a
// job are equal.
func upscaleArtwork(ctx context.Context, t *task, s engine.Span, _ int) (*image.NRGBA, string, error) {
	f, err := pictureInput(t.Job)
	if err != nil {
		return nil, "", err
	}
	t.timer.start()
	p, err := pixels.Read(ctx, s.SubSpan(0, 0.05), f)
	if err != nil {
		return nil, "", err
	}
	t.timer.endStage("read")
	m, err := t.enlargeResult(ctx, p.NRGBA, s.SubSpan(0.05, 1))
	return m, "", err
}
