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

// codec reads one picture format. This package detects formats itself, because
// the standard library's registry depends on the imports of the whole program.
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

// source is an open picture file whose header has been read.
type source struct {
	codec
	width, height int // as stored in the file, before applying the orientation
	turn          Orientation
	model         color.Model
	head          []byte    // beginning of the file, at least the whole header
	body          io.Reader // the whole file from its beginning
	reader        *fileReader
}

// fileReader reads a stored file until the job is cancelled. It records read
// errors, because a file that could not be fetched must not be reported as a
// damaged picture.
type fileReader struct {
	ended func() error // returns the error of the job's context
	src   io.ReadCloser
	err   error
}

func (s *fileReader) Read(p []byte) (int, error) {
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

func (s *fileReader) Close() error { return s.src.Close() }

// explainError converts an error of a decoder to a failure of the job.
func (s *fileReader) explainError(err error) error {
	switch {
	case s.ended() != nil:
		return s.ended()
	case s.err != nil:
		return engine.FailTransient(engine.Failed, "The picture could not be read from storage. Try again.").WithCause(s.err)
	}
	return engine.Fail(engine.Failed, "The picture could not be read. It is damaged, or its format is not supported by this tool.").WithCause(err)
}

// openSource opens a picture file and reads its header. The caller must close
// the reader field of the result.
func openSource(ctx context.Context, f engine.File) (*source, error) {
	stored := &fileReader{ended: ctx.Err}
	src, err := f.Open(ctx)
	if err != nil {
		stored.err = err
		return nil, stored.explainError(err)
	}
	stored.src = src
	s := &source{reader: stored}
	if err := s.readHeader(); err != nil {
		_ = stored.Close()
		return nil, err
	}
	return s, nil
}

func (s *source) readHeader() error {
	var seen bytes.Buffer
	start := make([]byte, 12)
	n, err := io.ReadFull(s.reader, start)
	if err != nil {
		return s.reader.explainError(err)
	}
	seen.Write(start[:n])
	var known bool
	if s.codec, known = codecOf(start); !known {
		return s.reader.explainError(fmt.Errorf("unknown picture format: the file begins with %q", start))
	}
	c, err := s.config(io.MultiReader(bytes.NewReader(start), io.TeeReader(s.reader, &seen)))
	if err != nil {
		return s.reader.explainError(err)
	}
	if c.Width < 1 || c.Height < 1 {
		return s.reader.explainError(fmt.Errorf("invalid picture size: %d by %d pixels", c.Width, c.Height))
	}
	if int64(c.Width)*int64(c.Height) > MaxPixels {
		return engine.Fail(engine.Failed, fmt.Sprintf("The picture is too large: %d by %d pixels. The limit is %d megapixels.", c.Width, c.Height, MaxPixels/1_000_000))
	}
	s.width = c.Width
	s.height = c.Height
	s.turn = upright
	s.model = c.ColorModel
	s.head = seen.Bytes()
	if s.format == JPEG {
		s.turn = OrientationOf(seen.Bytes())
	}
	s.body = io.MultiReader(&seen, s.reader)
	return nil
}

// Read decodes a picture, or the first frame of a GIF, and turns it upright.
func Read(ctx context.Context, s engine.Span, f engine.File) (Picture, error) {
	src, err := openSource(ctx, f)
	if err != nil {
		return Picture{}, err
	}
	defer func() { _ = src.reader.Close() }()
	m, err := src.decode(src.body)
	if err != nil {
		return Picture{}, src.reader.explainError(err)
	}
	s.ReportProgress(0.5)
	flat, err := convertStraight(ctx, m, image.Rect(0, 0, src.width, src.height), src.format)
	if err != nil {
		return Picture{}, err
	}
	s.ReportProgress(1)
	return Picture{src.turn.turnUpright(flat), src.format}, ctx.Err()
}

// convertStraight returns a decoded picture with straight alpha, drawn at its
// position on the canvas of its file.
func convertStraight(ctx context.Context, m image.Image, canvas image.Rectangle, from Format) (*image.NRGBA, error) {
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
			return convertVideoRange(ctx, src, nil, 0)
		}
		// Drawing into RGBA is faster and, for opaque pictures, gives the same
		// result.
		dst := image.NewRGBA(canvas)
		err := EachRow(ctx, none, canvas.Dy(), func(y int) {
			draw.Draw(dst, image.Rect(0, y, canvas.Dx(), y+1), src, image.Pt(src.Rect.Min.X, src.Rect.Min.Y+y), draw.Src)
		})
		return &image.NRGBA{Pix: dst.Pix, Stride: dst.Stride, Rect: dst.Rect}, err
	case *image.NYCbCrA:
		return convertVideoRange(ctx, &src.YCbCr, src.A, src.AStride)
	}
	dst := image.NewNRGBA(canvas)
	part := m.Bounds().Intersect(canvas)
	err := EachRow(ctx, none, part.Dy(), func(y int) {
		y += part.Min.Y
		for x := part.Min.X; x < part.Max.X; x++ {
			dst.Set(x, y, m.At(x, y))
		}
	})
	return dst, err
}

// convertVideoRange converts the colours of a lossy WebP, which range from 16
// to 235 as in video (RFC 6386 section 9.2, BT.601). The decoder returns them
// as if they ranged from 0 to 255, which would look washed out.
func convertVideoRange(ctx context.Context, src *image.YCbCr, alpha []byte, alphaStride int) (*image.NRGBA, error) {
	r := src.Rect
	dst := image.NewNRGBA(image.Rect(0, 0, r.Dx(), r.Dy()))
	err := EachRow(ctx, engine.Span{}, r.Dy(), func(y int) {
		to := dst.Pix[y*dst.Stride:]
		for x := range r.Dx() {
			c := src.COffset(r.Min.X+x, r.Min.Y+y)
			l := 1.164383 * (float32(src.Y[src.YOffset(r.Min.X+x, r.Min.Y+y)]) - 16)
			u := float32(src.Cb[c]) - 128
			v := float32(src.Cr[c]) - 128
			to[4*x] = ClampByte(l + 1.596027*v)
			to[4*x+1] = ClampByte(l - 0.391762*u - 0.812968*v)
			to[4*x+2] = ClampByte(l + 2.017232*u)
			to[4*x+3] = 255
			if alpha != nil {
				to[4*x+3] = alpha[y*alphaStride+x]
			}
		}
	})
	return dst, err
}
