package imageengine_test

import (
	"image/color"
	"math"
	"testing"
)

func grey(v uint8) color.NRGBA { return color.NRGBA{v, v, v, 255} }

// linear is the light that a stored value stands for.
func linear(v float64) float64 { return math.Pow((v/255+0.055)/1.055, 2.4) }

// adjusted gives what becomes of one colour.
func adjusted(t *testing.T, c color.NRGBA, v values) color.NRGBA {
	t.Helper()
	return drawn(t, job("adjust", v, pngFile(flat(8, 8, c)))).NRGBAAt(4, 4)
}

func TestNothingAdjustedIsNothingChanged(t *testing.T) {
	t.Parallel()
	src := made(256, 3, func(x, y int) color.NRGBA { return color.NRGBA{uint8(x), uint8(255 - x), uint8(x * 3), uint8(255 - y)} })
	if m := drawn(t, job("adjust", nil, pngFile(src))); string(m.Pix) != string(src.Pix) {
		t.Error("pixels changed")
	}
}

func TestAStopDoublesTheLight(t *testing.T) {
	t.Parallel()
	for _, stops := range []float64{-2, -1, 1} {
		got := adjusted(t, grey(120), values{"exposure": stops})
		if want := linear(120) * math.Exp2(stops); math.Abs(linear(float64(got.G))/want-1) > 0.05 {
			t.Errorf("%v stops: light = %.4f, want %.4f", stops, linear(float64(got.G)), want)
		}
	}
	if got := adjusted(t, grey(250), values{"exposure": int64(3)}); got != white {
		t.Errorf("overexposed = %v, want white", got)
	}
}

func TestContrastSpreadsRoundTheMiddle(t *testing.T) {
	t.Parallel()
	src := pngFile(photo(64, 64))
	last := -1.0
	for _, c := range []float64{-1, -0.5, 0, 0.5, 1} {
		if d := deviation(drawn(t, job("adjust", values{"contrast": c}, src))); d <= last {
			t.Errorf("contrast %v: deviation = %.1f, want more than %.1f", c, d, last)
		} else {
			last = d
		}
	}
	for v, way := range map[uint8]int{40: -1, 90: -1, 165: 1, 220: 1} {
		got := int(adjusted(t, grey(v), values{"contrast": 0.6}).G)
		if (got-int(v))*way <= 0 {
			t.Errorf("%d became %d", v, got)
		}
	}
	for _, end := range []uint8{0, 255} {
		if got := adjusted(t, grey(end), values{"contrast": int64(1)}); got != grey(end) {
			t.Errorf("%d became %v", end, got)
		}
	}
}

func TestSaturation(t *testing.T) {
	t.Parallel()
	dull := color.NRGBA{150, 110, 100, 255}
	spread := func(c color.NRGBA) int { return int(max(c.R, c.G, c.B)) - int(min(c.R, c.G, c.B)) }
	if got := adjusted(t, dull, values{"saturation": int64(-1)}); spread(got) != 0 {
		t.Errorf("without saturation = %v, want grey", got)
	}
	if less, more := spread(adjusted(t, dull, values{"saturation": -0.5})), spread(adjusted(t, dull, values{"saturation": 0.5})); !(less < 50 && more > 50) {
		t.Errorf("spread = %d and %d, want less and more than 50", less, more)
	}
	if got := adjusted(t, grey(90), values{"saturation": int64(1)}); got != grey(90) {
		t.Errorf("grey became %v", got)
	}
}

func TestWarmth(t *testing.T) {
	t.Parallel()
	warm, cold := adjusted(t, grey(128), values{"warmth": 0.7}), adjusted(t, grey(128), values{"warmth": -0.7})
	if !(warm.R > 128 && warm.B < 128) {
		t.Errorf("warm grey = %v, want more red and less blue", warm)
	}
	if !(cold.R < 128 && cold.B > 128) {
		t.Errorf("cold grey = %v, want less red and more blue", cold)
	}
	light := func(c color.NRGBA) float64 {
		return 0.2126*linear(float64(c.R)) + 0.7152*linear(float64(c.G)) + 0.0722*linear(float64(c.B))
	}
	if math.Abs(light(warm)/linear(128)-1) > 0.03 {
		t.Errorf("light = %.4f, want %.4f as before", light(warm), linear(128))
	}
}

func TestBlackAndWhite(t *testing.T) {
	t.Parallel()
	m := drawn(t, job("adjust", values{"mono": true}, pngFile(photo(64, 64))))
	for i := 0; i < len(m.Pix); i += 4 {
		if m.Pix[i] != m.Pix[i+1] || m.Pix[i] != m.Pix[i+2] {
			t.Fatalf("pixel %d has a colour", i/4)
		}
	}
	g, b := adjusted(t, color.NRGBA{0, 255, 0, 255}, values{"mono": true}), adjusted(t, color.NRGBA{0, 0, 255, 255}, values{"mono": true})
	if !near(g, grey(220), 2) || !near(b, grey(76), 2) {
		t.Errorf("green = %v and blue = %v, want about 220 and 76", g, b)
	}
	greys := drawn(t, job("adjust", values{"mono": true}, pngFile(made(256, 1, func(x, _ int) color.NRGBA { return grey(uint8(x)) }))))
	for v := range 256 {
		if got := greys.NRGBAAt(v, 0); !near(got, grey(uint8(v)), 1) {
			t.Errorf("grey %d became %v", v, got)
		}
	}
}

func TestAlphaIsLeftAlone(t *testing.T) {
	t.Parallel()
	if got := adjusted(t, color.NRGBA{100, 100, 100, 40}, values{"exposure": int64(1), "saturation": int64(1)}); got.A != 40 || got.G <= 100 {
		t.Errorf("colour = %v, want brighter with alpha 40", got)
	}
}
