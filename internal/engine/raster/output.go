package raster

import (
	"bytes"
	"context"
	"image"
	"image/jpeg"
	"image/png"
	"slices"

	"golang.org/x/image/draw"

	"atelier/internal/engine"
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
func (t task) encode(ctx context.Context, p picture) ([]byte, error) {
	mayPNG, mayJPEG := slices.Contains(t.MimeTypes, "image/png"), slices.Contains(t.MimeTypes, "image/jpeg")
	if !mayPNG && !mayJPEG {
		return nil, engine.ErrSetup
	}
	want := p.format
	if f := format(t.text("format", "")); f == formatJPEG || f == formatPNG {
		want = f
	}
	opaque := p.Opaque()
	small := max(p.Rect.Dx(), p.Rect.Dy()) <= longestJPEG
	var b bytes.Buffer
	w := whileAlive{ctx.Err, &b}
	if mayJPEG && small && (!mayPNG || opaque && want == formatJPEG) {
		if !opaque { // a tool that makes nothing but JPEG
			p.NRGBA = onWhite(p.NRGBA)
		}
		err := jpeg.Encode(w, asRGBA(p.NRGBA), &jpeg.Options{Quality: quality})
		return b.Bytes(), err
	}
	if !mayPNG {
		return nil, engine.ErrSetup
	}
	e := png.Encoder{CompressionLevel: png.DefaultCompression}
	if p.Rect.Dx()*p.Rect.Dy() > bigResult {
		e.CompressionLevel = png.BestSpeed // half of the time, for a few more bytes
	}
	err := e.Encode(w, p.NRGBA)
	return b.Bytes(), err
}

// whileAlive is a writer that ends with the job, which is how an encoder
// learns of it.
type whileAlive struct {
	ended func() error
	to    *bytes.Buffer
}

func (w whileAlive) Write(p []byte) (int, error) {
	if err := w.ended(); err != nil {
		return 0, err
	}
	return w.to.Write(p)
}

// asRGBA reads the pixels of an opaque picture as the type that the encoder is
// fast with.
func asRGBA(m *image.NRGBA) *image.RGBA {
	return &image.RGBA{Pix: m.Pix, Stride: m.Stride, Rect: m.Rect}
}

func onWhite(m *image.NRGBA) *image.NRGBA {
	dst := image.NewRGBA(m.Rect)
	draw.Draw(dst, dst.Rect, image.White, image.Point{}, draw.Src)
	draw.Draw(dst, dst.Rect, m, m.Rect.Min, draw.Over)
	return &image.NRGBA{Pix: dst.Pix, Stride: dst.Stride, Rect: dst.Rect}
}

// preview shows a small version of a picture.
func (t task) preview(ctx context.Context, m *image.NRGBA) error {
	w, h := inside(m.Rect.Dx(), m.Rect.Dy(), previewSide, previewSide)
	small, err := scale(ctx, engine.Span{}, draw.CatmullRom, m, whole(m), w, h)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, asRGBA(onWhite(small)), &jpeg.Options{Quality: previewQuality}); err != nil {
		return err
	}
	t.out.Preview(b.Bytes())
	return nil
}
