package imageengine_test

import (
	stdimage "image"
	"image/color"
	"math"
	"strings"
	"testing"
)

func TestResizeFits(t *testing.T) {
	t.Parallel()
	wide := pngFile(photo(120, 60))
	for _, tt := range []struct {
		fit        string
		w, h       int64
		outW, outH int
	}{
		{"inside", 60, 60, 60, 30},
		{"inside", 240, 240, 240, 120},
		{"inside", 1, 1, 1, 1}, // no side vanishes
		{"inside", 120, 60, 120, 60},
		{"inside", 1000, 7, 14, 7},
		{"cover", 50, 50, 50, 50},
		{"cover", 200, 10, 200, 10},
		{"stretch", 30, 90, 30, 90},
	} {
		wantSize(t, drawn(t, job("resize", values{"size": size(tt.w, tt.h), "fit": tt.fit}, wide)), tt.outW, tt.outH)
	}
}

func TestCoverCutsAndStretchDoesNot(t *testing.T) {
	t.Parallel()
	// A red bar at either side of a white square.
	bars := pngFile(made(120, 60, func(x, _ int) color.NRGBA {
		if x < 25 || x >= 95 {
			return red
		}
		return white
	}))
	if got := drawn(t, job("resize", values{"size": size(30, 30), "fit": "cover"}, bars)).NRGBAAt(0, 15); got != white {
		t.Errorf("left edge after cutting = %v, want white", got)
	}
	if got := drawn(t, job("resize", values{"size": size(30, 30), "fit": "stretch"}, bars)).NRGBAAt(0, 15); !near(got, red, 2) {
		t.Errorf("left edge after stretching = %v, want red", got)
	}
}

func TestFlatStaysFlat(t *testing.T) {
	t.Parallel()
	for _, s := range []values{size(7, 5), size(33, 33), size(300, 200)} {
		for _, c := range []color.NRGBA{red, {3, 3, 3, 255}, {10, 200, 90, 77}} {
			m := drawn(t, job("resize", values{"size": s, "fit": "stretch"}, pngFile(flat(33, 33, c))))
			for i := 0; i < len(m.Pix); i += 4 {
				if got := (color.NRGBA{m.Pix[i], m.Pix[i+1], m.Pix[i+2], m.Pix[i+3]}); !near(got, c, 1) {
					t.Fatalf("%v: %v became %v", s, c, got)
				}
			}
		}
	}
}

func TestSmallerKeepsTheLight(t *testing.T) {
	t.Parallel()
	// Half of the light of white is 188, not 128.
	board := made(64, 64, func(x, y int) color.NRGBA {
		v := uint8(255 * ((x + y) % 2))
		return color.NRGBA{v, v, v, 255}
	})
	got := drawn(t, job("resize", values{"size": size(8, 8)}, pngFile(board))).NRGBAAt(4, 4)
	if !near(got, color.NRGBA{188, 188, 188, 255}, 3) {
		t.Errorf("grey = %v, want 188", got)
	}
}

func TestTransparentPixelsDoNotBleed(t *testing.T) {
	t.Parallel()
	// Invisible green beside visible red.
	m := pngFile(made(40, 40, func(x, _ int) color.NRGBA {
		if x < 20 {
			return color.NRGBA{0, 255, 0, 0}
		}
		return red
	}))
	for _, s := range []values{size(10, 10), size(110, 110)} {
		small := drawn(t, job("resize", values{"size": s}, m))
		for x := range small.Rect.Dx() {
			if c := small.NRGBAAt(x, 5); c.A > 20 && c.G > red.G+6 {
				t.Errorf("pixel %d = %v has green in it", x, c)
			}
		}
	}
}

func TestSameSizeIsTheSamePicture(t *testing.T) {
	t.Parallel()
	src := photo(50, 40)
	m := drawn(t, job("resize", values{"size": size(50, 40), "fit": "stretch"}, pngFile(src)))
	if string(m.Pix) != string(src.Pix) {
		t.Error("pixels changed")
	}
}

func TestCropCutsWhereItIsTold(t *testing.T) {
	t.Parallel()
	src := photo(200, 100)
	file := pngFile(src)
	for _, tt := range []struct {
		name string
		v    values
		want stdimage.Rectangle
	}{
		{"centre", values{"ratio": "1:1"}, stdimage.Rect(50, 0, 150, 100)},
		{"left", values{"ratio": "1:1", "horizontal": int64(0)}, stdimage.Rect(0, 0, 100, 100)},
		{"right", values{"ratio": "1:1", "horizontal": int64(1)}, stdimage.Rect(100, 0, 200, 100)},
		{"cinema, top", values{"ratio": "21:9", "vertical": int64(0)}, stdimage.Rect(0, 0, 200, 86)},
		{"cinema, bottom", values{"ratio": "21:9", "vertical": int64(1)}, stdimage.Rect(0, 14, 200, 100)},
		{"phone", values{"ratio": "9:16", "horizontal": 0.25}, stdimage.Rect(36, 0, 92, 100)},
	} {
		m := drawn(t, job("crop", tt.v, file))
		wantSize(t, m, tt.want.Dx(), tt.want.Dy())
		for _, p := range []stdimage.Point{{0, 0}, {tt.want.Dx() - 1, tt.want.Dy() - 1}} {
			if got, want := m.NRGBAAt(p.X, p.Y), src.NRGBAAt(tt.want.Min.X+p.X, tt.want.Min.Y+p.Y); got != want {
				t.Errorf("%s: pixel %v = %v, want %v", tt.name, p, got, want)
			}
		}
	}
	wantSize(t, drawn(t, job("crop", values{"ratio": "21:9"}, pngFile(flat(1, 1, red)))), 1, 1)
	for _, bad := range []string{"1", "0:1", "a:b", "1:2:3", "-1:1", "1:100000", "NaN:1"} {
		if e := refusal(t, job("crop", values{"ratio": bad}, file)); !strings.Contains(e.Message, bad) {
			t.Errorf("%s: %v", bad, e)
		}
	}
}

// steepness is the largest step between neighbours in a row.
func steepness(m *stdimage.NRGBA) (most int) {
	for x := 1; x < m.Rect.Dx(); x++ {
		y := m.Rect.Dy() / 2
		most = max(most, int(math.Abs(float64(m.NRGBAAt(x, y).G)-float64(m.NRGBAAt(x-1, y).G))))
	}
	return most
}

func TestUpscaleSharpens(t *testing.T) {
	t.Parallel()
	edge := pngFile(made(40, 20, func(x, _ int) color.NRGBA {
		if x < 20 {
			return color.NRGBA{80, 80, 80, 255}
		}
		return color.NRGBA{170, 170, 170, 255}
	}))
	last := 0
	for _, sharpen := range []float64{0, 0.3, 1} {
		m := drawn(t, job("upscale", values{"factor": int64(3), "sharpen": sharpen}, edge))
		wantSize(t, m, 120, 60)
		if got := steepness(m); got <= last {
			t.Errorf("sharpen %v: steepest step = %d, want more than %d", sharpen, got, last)
		} else {
			last = got
		}
		for _, x := range []int{2, 117} {
			if got := m.NRGBAAt(x, 30).G; got != 80 && got != 170 {
				t.Errorf("sharpen %v: far from the edge = %d", sharpen, got)
			}
		}
		for i := range m.Pix {
			if v := m.Pix[i]; v < 80-35 || v > 170+35 && v != 255 {
				t.Fatalf("sharpen %v: a halo of %d", sharpen, v)
			}
		}
	}
}

func TestUpscaleLeavesNoiseAlone(t *testing.T) {
	t.Parallel()
	noise := made(64, 64, func(x, y int) color.NRGBA {
		v := uint8(128 + (x*7+y*13)%3)
		return color.NRGBA{v, v, v, 255}
	})
	soft := deviation(drawn(t, job("upscale", values{"sharpen": int64(0)}, pngFile(noise))))
	sharp := deviation(drawn(t, job("upscale", values{"sharpen": 0.5}, pngFile(noise))))
	if sharp > soft*1.3 {
		t.Errorf("noise grew from %.2f to %.2f", soft, sharp)
	}
}

func TestUpscaleSharpensNoEdgeOfTransparency(t *testing.T) {
	t.Parallel()
	m := drawn(t, job("upscale", values{"sharpen": int64(1)}, pngFile(made(30, 30, func(x, _ int) color.NRGBA {
		if x < 15 {
			return nothing
		}
		return red
	}))))
	for x := range 60 {
		if c := m.NRGBAAt(x, 30); c.A > 30 && !near(color.NRGBA{c.R, c.G, c.B, 255}, red, 4) {
			t.Errorf("pixel %d = %v, want the colour unchanged", x, c)
		}
	}
}
