package pixels

import (
	"bytes"
	"context"
	"image"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/draw"
)

// big is from how many pixels on a PNG is written fast: in half of the time, for
// a few more bytes.
const big = 4_000_000

// EncodePNG writes a picture, unless ctx ends before.
func EncodePNG(ctx context.Context, m *image.NRGBA) (*File, error) {
	e := png.Encoder{CompressionLevel: png.DefaultCompression}
	if m.Rect.Dx()*m.Rect.Dy() > big {
		e.CompressionLevel = png.BestSpeed
	}
	f := &File{}
	err := e.Encode(whileAlive{ctx.Err, f}, m)
	return f, err
}

// EncodeJPEG writes a picture without transparent parts, unless ctx ends before.
func EncodeJPEG(ctx context.Context, m *image.NRGBA, quality int) (*File, error) {
	f := &File{}
	err := jpeg.Encode(whileAlive{ctx.Err, f}, Opaque(m), &jpeg.Options{Quality: quality})
	return f, err
}

// whileAlive is a writer that ends with the job, which is how an encoder
// learns of it.
type whileAlive struct {
	ended func() error
	to    *File
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

// File is an encoded picture, in pieces: what grows as one slice is copied again
// and again, and takes up to three times its size.
type File struct {
	pieces [][]byte
}

const piece = 256 << 10

func (f *File) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		last := len(f.pieces) - 1
		if last < 0 || len(f.pieces[last]) == cap(f.pieces[last]) {
			f.pieces = append(f.pieces, make([]byte, 0, piece))
			last++
		}
		room := min(cap(f.pieces[last])-len(f.pieces[last]), len(p))
		f.pieces[last] = append(f.pieces[last], p[:room]...)
		p = p[room:]
	}
	return n, nil
}

// Reader reads the file from its start.
func (f *File) Reader() io.Reader {
	all := make([]io.Reader, len(f.pieces))
	for i, p := range f.pieces {
		all[i] = bytes.NewReader(p)
	}
	return io.MultiReader(all...)
}

// Bytes gives the file as one slice, for small ones.
func (f *File) Bytes() []byte { return bytes.Join(f.pieces, nil) }

// OnWhite lays a picture on white.
func OnWhite(m *image.NRGBA) *image.NRGBA {
	dst := image.NewRGBA(m.Rect)
	draw.Draw(dst, dst.Rect, image.White, image.Point{}, draw.Src)
	draw.Draw(dst, dst.Rect, m, m.Rect.Min, draw.Over)
	return &image.NRGBA{Pix: dst.Pix, Stride: dst.Stride, Rect: dst.Rect}
}
