package pixels

import (
	"bytes"
	"context"
	"image"
	"image/jpeg"
	"image/png"

	"golang.org/x/image/draw"
)

// big is from how many pixels on a PNG is written fast: in half of the time, for
// a few more bytes.
const big = 4_000_000

// EncodePNG writes a picture, unless ctx ends before.
func EncodePNG(ctx context.Context, m *image.NRGBA) ([]byte, error) {
	e := png.Encoder{CompressionLevel: png.DefaultCompression}
	if m.Rect.Dx()*m.Rect.Dy() > big {
		e.CompressionLevel = png.BestSpeed
	}
	var b bytes.Buffer
	err := e.Encode(whileAlive{ctx.Err, &b}, m)
	return b.Bytes(), err
}

// EncodeJPEG writes a picture without transparent parts, unless ctx ends before.
func EncodeJPEG(ctx context.Context, m *image.NRGBA, quality int) ([]byte, error) {
	var b bytes.Buffer
	err := jpeg.Encode(whileAlive{ctx.Err, &b}, Opaque(m), &jpeg.Options{Quality: quality})
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

// Opaque reads the pixels of a picture without transparent parts as the type
// that others are fast with.
func Opaque(m *image.NRGBA) *image.RGBA {
	return &image.RGBA{Pix: m.Pix, Stride: m.Stride, Rect: m.Rect}
}

// OnWhite lays a picture on white.
func OnWhite(m *image.NRGBA) *image.NRGBA {
	dst := image.NewRGBA(m.Rect)
	draw.Draw(dst, dst.Rect, image.White, image.Point{}, draw.Src)
	draw.Draw(dst, dst.Rect, m, m.Rect.Min, draw.Over)
	return &image.NRGBA{Pix: dst.Pix, Stride: dst.Stride, Rect: dst.Rect}
}
