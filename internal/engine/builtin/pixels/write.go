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

// fastPNGPixels is the number of pixels above which a PNG is compressed with
// the fastest method. That takes half the time and makes a slightly larger
// file.
const fastPNGPixels = 4_000_000

// EncodePNG encodes a picture as PNG. It fails when ctx is cancelled.
func EncodePNG(ctx context.Context, m *image.NRGBA) (*File, error) {
	e := png.Encoder{CompressionLevel: png.DefaultCompression}
	if m.Rect.Dx()*m.Rect.Dy() > fastPNGPixels {
		e.CompressionLevel = png.BestSpeed
	}
	f := &File{}
	err := e.Encode(cancelWriter{ctx.Err, f}, m)
	return f, err
}

// EncodeJPEG encodes a picture without transparent parts as JPEG. It fails when
// ctx is cancelled.
func EncodeJPEG(ctx context.Context, m *image.NRGBA, quality int) (*File, error) {
	f := &File{}
	err := jpeg.Encode(cancelWriter{ctx.Err, f}, AsRGBA(m), &jpeg.Options{Quality: quality})
	return f, err
}

// cancelWriter is a writer that fails after the job has been cancelled, which
// stops the encoder.
type cancelWriter struct {
	ended func() error
	to    *File
}

func (w cancelWriter) Write(p []byte) (int, error) {
	if err := w.ended(); err != nil {
		return 0, err
	}
	return w.to.Write(p)
}

// AsRGBA returns an opaque picture as image.RGBA, which other packages process
// faster. The result uses the same pixel memory.
func AsRGBA(m *image.NRGBA) *image.RGBA {
	return &image.RGBA{Pix: m.Pix, Stride: m.Stride, Rect: m.Rect}
}

// File is an encoded picture, stored in several slices. A single growing slice
// would be copied repeatedly and need up to three times the memory.
type File struct {
	pieces [][]byte
}

const pieceBytes = 256 << 10

func (f *File) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		last := len(f.pieces) - 1
		if last < 0 || len(f.pieces[last]) == cap(f.pieces[last]) {
			f.pieces = append(f.pieces, make([]byte, 0, pieceBytes))
			last++
		}
		room := min(cap(f.pieces[last])-len(f.pieces[last]), len(p))
		f.pieces[last] = append(f.pieces[last], p[:room]...)
		p = p[room:]
	}
	return n, nil
}

// Reader returns a reader of the whole file.
func (f *File) Reader() io.Reader {
	all := make([]io.Reader, len(f.pieces))
	for i, p := range f.pieces {
		all[i] = bytes.NewReader(p)
	}
	return io.MultiReader(all...)
}

// Bytes returns the file as one slice. It copies the data, so it is meant for
// small files.
func (f *File) Bytes() []byte { return bytes.Join(f.pieces, nil) }

// FlattenOnWhite returns a copy of the picture on a white background.
func FlattenOnWhite(m *image.NRGBA) *image.NRGBA {
	dst := image.NewRGBA(m.Rect)
	draw.Draw(dst, dst.Rect, image.White, image.Point{}, draw.Src)
	draw.Draw(dst, dst.Rect, m, m.Rect.Min, draw.Over)
	return &image.NRGBA{Pix: dst.Pix, Stride: dst.Stride, Rect: dst.Rect}
}
