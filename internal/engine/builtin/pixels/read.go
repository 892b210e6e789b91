package pixels

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/draw"
	"golang.org/x/image/webp"

	"atelier/internal/engine"
)

// codec reads a format. Formats are told apart here and not by the registry of
// the standard library, which knows whatever the program happens to import.
type codec struct {
	format Format
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
}

func codecOf(start []byte) (codec, bool) {
	switch {
	case bytes.HasPrefix(start, []byte("\xff\xd8\xff")):
		return codec{JPEG, jpeg.DecodeConfig, jpeg.Decode}, true
	case bytes.HasPrefix(start, []byte("\x89PNG\r\n\x1a\n")):
		return codec{PNG, png.DecodeConfig, png.Decode}, true
	case bytes.HasPrefix(start, []byte("GIF8")):
		return codec{GIF, gif.DecodeConfig, gif.Decode}, true
	case len(start) >= 12 && string(start[:4]) == "RIFF" && string(start[8:12]) == "WEBP":
		return codec{WebP, webp.DecodeConfig, webp.Decode}, true
	}
	return codec{}, false
}

// source is an open file whose header has been read.
type source struct {
	codec
	width, height int // as stored, before the orientation
	turn          Orientation
	model         color.Model
	head          []byte    // up to where the header ended, or farther
	body          io.Reader // from the start again
	stored        *storage
}

// storage reads from where files lie until the job ends. It remembers its own
// error: a file that could not be fetched is no broken picture.
type storage struct {
	ended func() error // of the job's context
	src   io.ReadCloser
	err   error
}

func (s *storage) Read(p []byte) (int, error) {
	if err := s.ended(); err != nil {
		s.err = err
		return 0, err
	}
	n, err := s.src.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

func (s *storage) Close() error { return s.src.Close() }

// because says what an error while reading means.
func (s *storage) because(err error) error {
	switch {
	case s.ended() != nil:
		return s.ended()
	case s.err != nil:
		return engine.Again(engine.Failed, "The picture could not be fetched.").Because(s.err)
	}
	return engine.Fail(engine.Failed, "The picture could not be read: it is damaged, or of a kind that this tool does not know.").Because(err)
}

// open reads a picture's header. The caller closes stored.
func open(ctx context.Context, f engine.File) (*source, error) {
	stored := &storage{ended: ctx.Err}
	src, err := f.Open(ctx)
	if err != nil {
		stored.err = err
		return nil, stored.because(err)
	}
	stored.src = src
	s := &source{stored: stored}
	if err := s.header(); err != nil {
		stored.Close()
		return nil, err
	}
	return s, nil
}

func (s *source) header() error {
	var seen bytes.Buffer
	start := make([]byte, 12)
	n, err := io.ReadFull(s.stored, start)
	if err != nil {
		return s.stored.because(err)
	}
	seen.Write(start[:n])
	var known bool
	if s.codec, known = codecOf(start); !known {
		return s.stored.because(fmt.Errorf("a file that begins with %q", start))
	}
	c, err := s.config(io.MultiReader(bytes.NewReader(start), io.TeeReader(s.stored, &seen)))
	if err != nil {
		return s.stored.because(err)
	}
	if c.Width < 1 || c.Height < 1 {
		return s.stored.because(fmt.Errorf("a picture of %d by %d pixels", c.Width, c.Height))
	}
	if int64(c.Width)*int64(c.Height) > Most {
		return engine.Fail(engine.Failed, fmt.Sprintf("The picture is too large: %d by %d pixels; at most %d megapixels are possible.", c.Width, c.Height, Most/1_000_000))
	}
	s.width = c.Width
	s.height = c.Height
	s.turn = upright
	s.model = c.ColorModel
	s.head = seen.Bytes()
	if s.format == JPEG {
		s.turn = OrientationOf(seen.Bytes())
	}
	s.body = io.MultiReader(&seen, s.stored)
	return nil
}

// Read decodes a picture, the first one of a GIF, and turns it upright.
func Read(ctx context.Context, s engine.Span, f engine.File) (Picture, error) {
	src, err := open(ctx, f)
	if err != nil {
		return Picture{}, err
	}
	defer src.stored.Close()
	m, err := src.decode(src.body)
	if err != nil {
		return Picture{}, src.stored.because(err)
	}
	s.At(0.5)
	flat, err := straight(ctx, m, image.Rect(0, 0, src.width, src.height), src.format)
	if err != nil {
		return Picture{}, err
	}
	s.At(1)
	return Picture{src.turn.apply(flat), src.format}, ctx.Err()
}

// straight gives the picture with straight alpha, on the canvas of its file.
func straight(ctx context.Context, m image.Image, canvas image.Rectangle, from Format) (*image.NRGBA, error) {
	none := engine.Span{}
	switch src := m.(type) {
	case *image.NRGBA:
		if src.Rect == canvas {
			return src, nil
		}
	case *image.RGBA:
		if src.Rect == canvas && src.Opaque() {
			return &image.NRGBA{Pix: src.Pix, Stride: src.Stride, Rect: src.Rect}, nil
		}
	case *image.YCbCr:
		if from == WebP {
			return videoRange(ctx, src, nil, 0)
		}
		// Drawing into RGBA is the fast way, and without alpha it is the same.
		dst := image.NewRGBA(canvas)
		err := Rows(ctx, none, canvas.Dy(), func(y int) {
			draw.Draw(dst, image.Rect(0, y, canvas.Dx(), y+1), src, image.Pt(src.Rect.Min.X, src.Rect.Min.Y+y), draw.Src)
		})
		return &image.NRGBA{Pix: dst.Pix, Stride: dst.Stride, Rect: dst.Rect}, err
	case *image.NYCbCrA:
		return videoRange(ctx, &src.YCbCr, src.A, src.AStride)
	}
	dst := image.NewNRGBA(canvas)
	part := m.Bounds().Intersect(canvas)
	err := Rows(ctx, none, part.Dy(), func(y int) {
		y += part.Min.Y
		for x := part.Min.X; x < part.Max.X; x++ {
			dst.Set(x, y, m.At(x, y))
		}
	})
	return dst, err
}

// videoRange converts the colours of a lossy WebP, which run from 16 to 235
// like those of video (RFC 6386 section 9.2, BT.601). The decoder hands them
// out as if they ran from 0 to 255, which looks washed out.
func videoRange(ctx context.Context, src *image.YCbCr, alpha []byte, alphaStride int) (*image.NRGBA, error) {
	r := src.Rect
	dst := image.NewNRGBA(image.Rect(0, 0, r.Dx(), r.Dy()))
	err := Rows(ctx, engine.Span{}, r.Dy(), func(y int) {
		to := dst.Pix[y*dst.Stride:]
		for x := range r.Dx() {
			c := src.COffset(r.Min.X+x, r.Min.Y+y)
			l := 1.164383 * (float32(src.Y[src.YOffset(r.Min.X+x, r.Min.Y+y)]) - 16)
			u := float32(src.Cb[c]) - 128
			v := float32(src.Cr[c]) - 128
			to[4*x] = Byte(l + 1.596027*v)
			to[4*x+1] = Byte(l - 0.391762*u - 0.812968*v)
			to[4*x+2] = Byte(l + 2.017232*u)
			to[4*x+3] = 255
			if alpha != nil {
				to[4*x+3] = alpha[y*alphaStride+x]
			}
		}
	})
	return dst, err
}
