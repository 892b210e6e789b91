package neural_test

import (
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"

	scale "golang.org/x/image/draw"

	"atelier/internal/engine/builtin/tiny/kernel"
)

// The upscaler is held to more than bicubic reaches, on drawings that were kept
// from its training: they are shrunk to a quarter by averaging, and enlarged
// again.
func TestUpscalerIsBetterThanBicubic(t *testing.T) {
	t.Parallel()
	const each, mean = 3, 6 // dB more; the mean of all 268 kept drawings is 9.6
	m := openModel(t, kernel.Best(), 2)
	files, err := filepath.Glob("testdata/kept/*.png")
	if err != nil || len(files) == 0 {
		t.Fatal("no drawings", err)
	}
	var sum float64
	for _, file := range files {
		large := read(t, file)
		small := shrunk(large)
		ours, err := m.EnlargePicture(t.Context(), small, func(float64) {})
		if err != nil {
			t.Fatal(err)
		}
		cubic := image.NewNRGBA(large.Rect)
		scale.CatmullRom.Scale(cubic, cubic.Rect, small, small.Rect, scale.Src, nil)
		a, b := likeness(ours, large), likeness(cubic, large)
		t.Logf("%s: %.2f dB, bicubic %.2f dB", filepath.Base(file), a, b)
		if sum += a - b; a < b+each {
			t.Errorf("%s: want %d dB more than bicubic", filepath.Base(file), each)
		}
	}
	if sum/float64(len(files)) < mean {
		t.Errorf("%.2f dB more than bicubic on average, want %d", sum/float64(len(files)), mean)
	}
}

func read(t *testing.T, file string) *image.NRGBA {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	q := image.NewNRGBA(p.Bounds())
	scale.Draw(q, q.Rect, p, image.Point{}, scale.Src)
	return q
}

// shrunk averages squares of four by four pixels.
func shrunk(p *image.NRGBA) *image.NRGBA {
	q := image.NewNRGBA(image.Rect(0, 0, p.Rect.Dx()/4, p.Rect.Dy()/4))
	for i := range q.Pix {
		x, y, c := i/4%q.Rect.Dx(), i/q.Stride, i%4
		sum := 8
		for d := range 16 {
			sum += int(p.Pix[p.PixOffset(4*x+d%4, 4*y+d/4)+c])
		}
		q.Pix[i] = uint8(sum / 16)
	}
	return q
}

// likeness is the PSNR of the colours.
func likeness(p, q *image.NRGBA) float64 {
	var sum float64
	for i := range p.Pix {
		d := float64(p.Pix[i]) - float64(q.Pix[i])
		sum += d * d
	}
	return 10 * math.Log10(255*255/(sum/float64(len(p.Pix)/4*3)))
}
