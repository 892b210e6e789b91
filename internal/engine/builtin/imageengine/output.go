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
	// longestJPEG is what the format can hold.
	longestJPEG = 65535
)

// encode writes the result: as PNG where it has transparent parts or where the
// tool makes nothing else, otherwise in the format that was asked for or that
// the picture came in.
func (t task) encode(ctx context.Context, p pixels.Picture) (*pixels.File, error) {
	mayPNG := slices.Contains(t.MimeTypes, "image/png")
	mayJPEG := slices.Contains(t.MimeTypes, "image/jpeg")
	if !mayPNG && !mayJPEG {
		return nil, engine.ErrSetup
	}
	want := p.Format
	if f := pixels.Format(t.text("format", "")); f == pixels.JPEG || f == pixels.PNG {
		want = f
	}
	opaque := p.Opaque()
	small := max(p.Rect.Dx(), p.Rect.Dy()) <= longestJPEG
	if mayJPEG && small && (!mayPNG || opaque && want == pixels.JPEG) {
		if !opaque { // a tool that makes nothing but JPEG
			p.NRGBA = pixels.OnWhite(p.NRGBA)
		}
		return pixels.EncodeJPEG(ctx, p.NRGBA, quality)
	}
	if !mayPNG {
		return nil, engine.ErrSetup
	}
	return pixels.EncodePNG(ctx, p.NRGBA)
}

// preview shows a small version of a picture.
func (t task) preview(ctx context.Context, m *image.NRGBA) error {
	w, h := inside(m.Rect.Dx(), m.Rect.Dy(), previewSide, previewSide)
	small, err := scale(ctx, engine.Span{}, draw.CatmullRom, m, whole(m), w, h)
	if err != nil {
		return err
	}
	b, err := pixels.EncodeJPEG(ctx, pixels.OnWhite(small), previewQuality)
	if err != nil {
		return err
	}
	t.out.Preview(b.Bytes())
	return nil
}
