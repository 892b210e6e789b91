package imageengine

import (
	"context"
	"image"
	"slices"

	"golang.org/x/image/draw"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

const (
	quality        = 92
	previewQuality = 80
	previewSide    = 512
	// maxJPEGSide is the longest side in pixels that the JPEG format allows.
	maxJPEGSide = 65535
)

// encodeResult encodes a result: as PNG if it has transparent parts or if the
// tool's only output is PNG, otherwise in the requested format or, by default,
// in the format of the input.
func (t task) encodeResult(ctx context.Context, p pixels.Picture) (*pixels.File, error) {
	mayPNG := slices.Contains(t.MimeTypes, "image/png")
	mayJPEG := slices.Contains(t.MimeTypes, "image/jpeg")
	if !mayPNG && !mayJPEG {
		return nil, engine.ErrMisconfigured
	}
	want := p.Format
	if f := pixels.Format(t.textInput("format", "")); f == pixels.JPEG || f == pixels.PNG {
		want = f
	}
	opaque := p.Opaque()
	small := max(p.Rect.Dx(), p.Rect.Dy()) <= maxJPEGSide
	if mayJPEG && small && (!mayPNG || opaque && want == pixels.JPEG) {
		if !opaque { // the tool's only output is JPEG
			p.NRGBA = pixels.FlattenOnWhite(p.NRGBA)
		}
		return pixels.EncodeJPEG(ctx, p.NRGBA, quality)
	}
	if !mayPNG {
		return nil, engine.ErrMisconfigured
	}
	return pixels.EncodePNG(ctx, p.NRGBA)
}

// sendPreview sends a small JPEG of a picture to the sink.
func (t task) sendPreview(ctx context.Context, m *image.NRGBA) error {
	w, h := fitInside(m.Rect.Dx(), m.Rect.Dy(), previewSide, previewSide)
	small, err := scaleArea(ctx, engine.Span{}, draw.CatmullRom, m, wholeArea(m), w, h)
	if err != nil {
		return err
	}
	b, err := pixels.EncodeJPEG(ctx, pixels.FlattenOnWhite(small), previewQuality)
	if err != nil {
		return err
	}
	t.out.Preview(b.Bytes())
	return nil
}
