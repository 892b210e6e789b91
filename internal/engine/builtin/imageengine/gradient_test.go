package imageengine_test

import (
	"bytes"
	stdimage "image"
	"image/color"
	"strings"
	"testing"
)

// closest is how near the picture comes to a colour anywhere.
func closest(m *stdimage.NRGBA, c color.NRGBA) int {
	best := 256
	for i := 0; i < len(m.Pix); i += 4 {
		for best > 0 && near(color.NRGBA{m.Pix[i], m.Pix[i+1], m.Pix[i+2], 255}, c, best-1) {
			best--
		}
	}
	return best
}

func TestGradientsShowTheirColours(t *testing.T) {
	t.Parallel()
	colours := []color.NRGBA{{0x1d, 0x35, 0x57, 255}, {0xf1, 0xfa, 0xee, 255}, {0xe6, 0x39, 0x46, 255}}
	for style, slack := range map[string]int{"linear": 10, "radial": 10, "mesh": 40} {
		for seed := range uint32(3) {
			j := job("gradient", values{"style": style, "colours": "#1d3557,#F1FAEE , #e63946", "grain": int64(0), "size": size(80, 60)})
			j.Seed = seed
			m := drawn(t, j)
			wantSize(t, m, 80, 60)
			for _, c := range colours {
				if far := closest(m, c); far > slack {
					t.Errorf("%s, seed %d: %v is %d levels away", style, seed, c, far)
				}
			}
		}
	}
}

func TestGradientsAreSmooth(t *testing.T) {
	t.Parallel()
	for _, style := range []string{"linear", "radial", "mesh"} {
		m := drawn(t, job("gradient", values{"style": style, "grain": int64(0), "size": size(128, 128)}))
		for y := range 127 {
			for x := range 127 {
				if c := m.NRGBAAt(x, y); !near(c, m.NRGBAAt(x+1, y), 16) || !near(c, m.NRGBAAt(x, y+1), 16) {
					t.Fatalf("%s: a step at %d,%d", style, x, y)
				}
			}
		}
	}
}

func TestRadialGradientBeginsWithTheFirstColour(t *testing.T) {
	t.Parallel()
	m := drawn(t, job("gradient", values{"style": "radial", "colours": "#000, #fff", "grain": int64(0), "size": size(200, 200)}))
	dark := 0
	for y := 50; y < 150; y++ {
		for x := 50; x < 150; x++ {
			if m.NRGBAAt(x, y).G < 12 {
				dark++
			}
		}
	}
	if dark == 0 {
		t.Error("no black near the middle")
	}
}

func TestGrainGrows(t *testing.T) {
	t.Parallel()
	last := -1.0
	for _, grain := range []float64{0, 0.1, 0.5, 1} {
		m := drawn(t, job("gradient", values{"colours": "#808080, #808080", "grain": grain, "size": size(64, 64)}))
		d := deviation(m)
		if d <= last || grain == 0 && d != 0 {
			t.Errorf("grain %v: deviation = %.2f, want more than %.2f, and none for none", grain, d, last)
		}
		if c := mean(m, m.Rect); c[1] < 127 || c[1] > 129 {
			t.Errorf("grain %v: mean = %.1f, want 128", grain, c[1])
		}
		last = d
	}
}

func TestGivenColoursLeaveTheShapeToTheSeed(t *testing.T) {
	t.Parallel()
	j := job("gradient", values{"colours": "#123, #fed", "size": size(64, 64)})
	first := results(t, j)[0]
	j.Seed++
	if bytes.Equal(first, results(t, j)[0]) {
		t.Error("another seed gave the same picture")
	}
}

func TestBadColoursAreNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"#fff":                     "not 1",
		"#fff,#000,#f00,#0f0,#00f": "not 5",
		"#fff, red":                `"red"`,
		"#fff, #12":                `"#12"`,
		"#fff,":                    `""`,
		"#fff #000":                `"#fff #000"`,
		"#fff, #00000080":          `"#00000080"`,
	} {
		if e := refusal(t, job("gradient", values{"colours": text})); !strings.Contains(e.Message, want) {
			t.Errorf("%q: %v, want %s", text, e, want)
		}
	}
	for _, good := range []string{"#fff,#000", "#fff,#000,#f00,#0f0", "  "} {
		results(t, job("gradient", values{"colours": good, "size": size(16, 16)}))
	}
}

func TestSmallestGradients(t *testing.T) {
	t.Parallel()
	for _, style := range []string{"linear", "radial", "mesh"} {
		wantSize(t, drawn(t, job("gradient", values{"style": style, "size": size(1, 1)})), 1, 1)
		wantSize(t, drawn(t, job("gradient", values{"style": style, "size": size(1, 700)})), 1, 700)
	}
}
