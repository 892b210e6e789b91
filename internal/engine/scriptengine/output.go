package scriptengine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"strings"

	"atelier/internal/engine"
)

// outputStep is a step of a script that makes one or more results.
type outputStep struct {
	Kind    string  `json:"kind"` // file format: png, text, raw or wav
	Width   int     `json:"width"`
	Height  int     `json:"height"`
	Text    string  `json:"text"`
	Base64  []byte  `json:"base64"`
	Seconds float64 `json:"seconds"`
	// SizeMB is the size of raw and text results in MiB. PNG files are
	// slightly larger.
	SizeMB int `json:"size_mb"`
	// Echo is the key of the field whose file is returned as the result. Index
	// is the position of the file in the field.
	Echo  string `json:"echo"`
	Index int    `json:"index"`

	Note  string `json:"note"`  // note of the result
	Times int    `json:"times"` // number of results; 0 means one
}

// maxSide is the maximum width or height of a picture, in pixels, and the
// maximum length of a sound, in seconds.
const maxSide = 1 << 14

func (o *outputStep) validate() error {
	switch {
	case min(o.Width, o.Height, o.SizeMB, o.Index, o.Times) < 0 || max(o.Width, o.Height) > maxSide || !(o.Seconds >= 0 && o.Seconds <= maxSide):
		return errors.New("an output contains a number that is out of range")
	case o.Echo != "" && o.Kind != "":
		return errors.New("an output cannot have both echo and kind")
	case o.Echo != "":
		return nil
	}
	switch o.Kind {
	case "png", "text", "raw":
		return nil
	case "wav":
		if o.SizeMB > 0 {
			return errors.New("an output of the kind wav must use seconds instead of size_mb")
		}
		return nil
	}
	return fmt.Errorf("unknown output kind %q; the kinds are png, wav, text and raw", o.Kind)
}

func (p *scriptRun) makeOutput(ctx context.Context, o *outputStep) error {
	for range max(o.Times, 1) {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := p.resultReader(ctx, o)
		if err != nil {
			return err
		}
		err = p.out.Output(ctx, engine.Result{Data: r, Note: o.Note})
		if c, ok := r.(io.Closer); ok {
			err = errors.Join(err, c.Close())
		}
		if err != nil {
			return err
		}
		p.made++
	}
	return nil
}

// resultReader returns the content of the next result. Large raw and text
// results are generated while they are read.
func (p *scriptRun) resultReader(ctx context.Context, o *outputStep) (io.Reader, error) {
	noise := rand.NewChaCha8([32]byte{byte(p.job.Seed), byte(p.job.Seed >> 8), byte(p.job.Seed >> 16), byte(p.job.Seed >> 24), byte(p.made), byte(p.made >> 8)})
	size := int64(o.SizeMB) << 20
	switch {
	case o.Echo != "":
		files := p.job.Files[o.Echo]
		if o.Index >= len(files) {
			return nil, engine.Fail(engine.Failed, fmt.Sprintf("The input %q has no file at index %d to echo.", o.Echo, o.Index))
		}
		return files[o.Index].Open(ctx)
	case o.Kind == "png" && size > 0:
		return bytes.NewReader(noisePNG(noise, size)), nil
	case o.Kind == "png":
		return bytes.NewReader(plainPNG(orDefault(o.Width, 8), orDefault(o.Height, 8), colourOf(p.job.Seed, p.made))), nil
	case o.Kind == "wav":
		return bytes.NewReader(toneWAV(o.Seconds, 220+float64(colourOf(p.job.Seed, p.made).R))), nil
	case o.Kind == "text":
		if missing := size - int64(len(o.Text)); missing > 0 {
			return io.MultiReader(strings.NewReader(o.Text), io.LimitReader(dotReader{}, missing)), nil
		}
		return strings.NewReader(o.Text), nil
	}
	if missing := size - int64(len(o.Base64)); missing > 0 {
		return io.MultiReader(bytes.NewReader(o.Base64), io.LimitReader(noise, missing)), nil
	}
	return bytes.NewReader(o.Base64), nil
}

func orDefault(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// dotReader is a reader of an endless sequence of dots.
type dotReader struct{}

func (dotReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '.'
	}
	return len(p), nil
}

// colourOf returns a colour derived from a seed and the number of a result. It
// differs for each pair, as far as 24 bits allow.
func colourOf(seed uint32, number int) color.NRGBA {
	v := rand.NewPCG(uint64(seed), uint64(number)).Uint64()
	return color.NRGBA{uint8(v), uint8(v >> 8), uint8(v >> 16), 255}
}

func plainPNG(w, h int, c color.NRGBA) []byte {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := 0; i < len(m.Pix); i += 4 {
		m.Pix[i] = c.R
		m.Pix[i+1] = c.G
		m.Pix[i+2] = c.B
		m.Pix[i+3] = c.A
	}
	return encodePNG(m, png.BestSpeed)
}

// noisePNG returns a PNG file of random pixels, slightly larger than size
// bytes, that cannot be compressed.
func noisePNG(noise io.Reader, size int64) []byte {
	const width = 1024
	m := image.NewNRGBA(image.Rect(0, 0, width, int(size/(3*width))+1))
	_, _ = io.ReadFull(noise, m.Pix) // a random generator never fails
	for i := 3; i < len(m.Pix); i += 4 {
		m.Pix[i] = 255
	}
	return encodePNG(m, png.NoCompression)
}

func encodePNG(m image.Image, level png.CompressionLevel) []byte {
	var b bytes.Buffer
	e := png.Encoder{CompressionLevel: level}
	if err := e.Encode(&b, m); err != nil {
		panic(err) // writing to a buffer cannot fail
	}
	return b.Bytes()
}

// toneWAV returns a WAV file with a tone, at 8000 samples of 16 bits per
// second.
func toneWAV(seconds, hertz float64) []byte {
	const rate = 8000
	samples := make([]int16, int(seconds*rate))
	for i := range samples {
		samples[i] = int16(12000 * math.Sin(2*math.Pi*hertz*float64(i)/rate))
	}
	size := uint32(2 * len(samples))
	var b bytes.Buffer
	b.WriteString("RIFF")
	for _, part := range []any{36 + size, []byte("WAVEfmt "), uint32(16), uint16(1), uint16(1), uint32(rate), uint32(2 * rate), uint16(2), uint16(16), []byte("data"), size, samples} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			panic(err) // writing to a buffer cannot fail
		}
	}
	return b.Bytes()
}
