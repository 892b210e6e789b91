package imageengine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	stdimage "image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/imageengine"
	"atelier/internal/engine/enginetest"
)

type values = map[string]any

func size(w, h int64) values { return values{"width": w, "height": h} }

// job returns a job for an operation with these inputs and the pictures in
// order.
func job(operation string, v values, pictures ...engine.File) engine.Job {
	j := engine.Job{
		With: fmt.Sprintf(`{"operation":%q}`, operation), Values: v, Seed: 11, NumResults: 1,
		OutputType: "IMG", MimeTypes: []string{"image/png", "image/jpeg"},
	}
	if len(pictures) > 0 {
		key := "picture"
		if operation == "collage" || operation == "contact" {
			key = "pictures"
		}
		j.Files = map[string][]engine.File{key: pictures}
	}
	return j
}

// results runs a job that has to succeed.
func results(t *testing.T, j engine.Job) [][]byte {
	t.Helper()
	var r enginetest.Recorder
	if err := imageengine.New().Run(t.Context(), j, &r); err != nil {
		t.Fatalf("run: %v", err)
	}
	return r.Outputs()
}

// refusal runs a job that has to fail, and returns the failure.
func refusal(t *testing.T, j engine.Job) *engine.Error {
	t.Helper()
	var r enginetest.Recorder
	err := imageengine.New().Run(t.Context(), j, &r)
	e, ok := errors.AsType[*engine.Error](err)
	if !ok || len(r.Outputs()) != 0 {
		t.Fatalf("run = %v with %d results, want a failure that says why", err, len(r.Outputs()))
	}
	return e
}

// drawn runs a job and decodes its first result.
func drawn(t *testing.T, j engine.Job) *stdimage.NRGBA {
	t.Helper()
	m, _ := decoded(t, results(t, j)[0])
	return m
}

func decoded(t *testing.T, b []byte) (*stdimage.NRGBA, string) {
	t.Helper()
	src, format, err := stdimage.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	if m, ok := src.(*stdimage.NRGBA); ok {
		return m, format
	}
	m := stdimage.NewRGBA(src.Bounds()) // all other types here are opaque
	draw.Draw(m, m.Rect, src, m.Rect.Min, draw.Src)
	return &stdimage.NRGBA{Pix: m.Pix, Stride: m.Stride, Rect: m.Rect}, format
}

func pngFile(m stdimage.Image) engine.File {
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return enginetest.FileFromBytes("image/png", b.Bytes())
}

func jpegBytes(m stdimage.Image) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 95}); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func jpegFile(m stdimage.Image) engine.File {
	return enginetest.FileFromBytes("image/jpeg", jpegBytes(m))
}

// made draws a picture pixel by pixel.
func made(w, h int, at func(x, y int) color.NRGBA) *stdimage.NRGBA {
	m := stdimage.NewNRGBA(stdimage.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.SetNRGBA(x, y, at(x, y))
		}
	}
	return m
}

func flat(w, h int, c color.NRGBA) *stdimage.NRGBA {
	return made(w, h, func(int, int) color.NRGBA { return c })
}

// photo is a picture with light, dark, colour and detail.
func photo(w, h int) *stdimage.NRGBA {
	return made(w, h, func(x, y int) color.NRGBA {
		fx, fy := float64(x)/float64(w), float64(y)/float64(h)
		return color.NRGBA{
			uint8(40 + 170*fx), uint8(60 + 140*fy), uint8(128 + 60*math.Sin(20*fx)*math.Cos(14*fy)), 255,
		}
	})
}

// mean is the mean colour of a part, with alpha.
func mean(m *stdimage.NRGBA, r stdimage.Rectangle) [4]float64 {
	var sum [4]float64
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			c := m.NRGBAAt(x, y)
			for i, v := range []uint8{c.R, c.G, c.B, c.A} {
				sum[i] += float64(v) / float64(r.Dx()*r.Dy())
			}
		}
	}
	return sum
}

// deviation returns the standard deviation of the brightness.
func deviation(m *stdimage.NRGBA) float64 {
	var sum, squares float64
	for i := 0; i < len(m.Pix); i += 4 {
		l := 0.2126*float64(m.Pix[i]) + 0.7152*float64(m.Pix[i+1]) + 0.0722*float64(m.Pix[i+2])
		sum, squares = sum+l, squares+l*l
	}
	n := float64(len(m.Pix) / 4)
	return math.Sqrt(max(squares/n-sum/n*sum/n, 0))
}

// near reports whether two colours differ by at most some levels.
func near(a, b color.NRGBA, levels int) bool {
	within := func(a, b uint8) bool { return int(a)-int(b) <= levels && int(b)-int(a) <= levels }
	return within(a.R, b.R) && within(a.G, b.G) && within(a.B, b.B) && within(a.A, b.A)
}

func wantSize(t *testing.T, m stdimage.Image, w, h int) {
	t.Helper()
	if got := m.Bounds().Size(); got != stdimage.Pt(w, h) {
		t.Errorf("size = %v, want %dx%d", got, w, h)
	}
}

var (
	red     = color.NRGBA{200, 30, 30, 255}
	green   = color.NRGBA{30, 160, 40, 255}
	blue    = color.NRGBA{40, 60, 200, 255}
	white   = color.NRGBA{255, 255, 255, 255}
	nothing = color.NRGBA{}
)

func crc(b []byte) uint32 { return crc32.ChecksumIEEE(b) }

func failingOpen(context.Context) (io.ReadCloser, error) { return nil, errors.New("the disk is gone") }
