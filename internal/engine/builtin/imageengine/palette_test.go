package imageengine_test

import (
	stdimage "image"
	"image/color"
	"strings"
	"testing"
)

// swatches are the colours of a card in reading order: those of the middles of
// its cells, which are no paper.
func swatches(m *stdimage.NRGBA, labels bool) []color.NRGBA {
	const swatch, gap, label = 224, 32, 52
	height := swatch + gap
	if labels {
		height += label
	}
	var all []color.NRGBA
	paper := m.NRGBAAt(2, 2)
	for y := gap + swatch/2; y < m.Rect.Dy(); y += height {
		for x := gap + swatch/2; x < m.Rect.Dx(); x += swatch + gap {
			if c := m.NRGBAAt(x, y); c != paper {
				all = append(all, c)
			}
		}
	}
	return all
}

// flag is a picture of some colours with shares that fall from one to the next.
func flag(colours ...color.NRGBA) *stdimage.NRGBA {
	var rows []color.NRGBA
	for i, c := range colours {
		for range 10 * (len(colours) - i) {
			rows = append(rows, c)
		}
	}
	return made(40, len(rows), func(_, y int) color.NRGBA { return rows[y] })
}

func TestPaletteFindsTheColours(t *testing.T) {
	t.Parallel()
	want := []color.NRGBA{blue, white, red, green, {20, 20, 20, 255}}
	for _, labels := range []bool{true, false} {
		got := swatches(drawn(t, job("palette", values{"colours": int64(5), "labels": labels}, pngFile(flag(want...)))), labels)
		if len(got) != len(want) {
			t.Fatalf("colours = %v, want %v", got, want)
		}
		for i := range want {
			if !near(got[i], want[i], 1) {
				t.Errorf("colour %d = %v, want %v", i, got[i], want[i])
			}
		}
	}
}

func TestPaletteShowsNoMoreThanThereIs(t *testing.T) {
	t.Parallel()
	if got := swatches(drawn(t, job("palette", values{"colours": int64(16)}, pngFile(flag(red, blue)))), true); len(got) != 2 {
		t.Errorf("colours = %v, want two", got)
	}
}

func TestPaletteHasAsManyColoursAsAsked(t *testing.T) {
	t.Parallel()
	f := pngFile(photo(60, 60))
	for _, n := range []int64{2, 7, 16} {
		if got := swatches(drawn(t, job("palette", values{"colours": n}, f)), true); int64(len(got)) != n {
			t.Errorf("colours = %d, want %d", len(got), n)
		}
	}
}

func TestPaletteLabels(t *testing.T) {
	t.Parallel()
	// Dark pixels under the swatch are letters.
	m := drawn(t, job("palette", values{"colours": int64(2)}, pngFile(flag(white, red))))
	dark := 0
	for y := 32 + 224; y < m.Rect.Dy(); y++ {
		for x := 32; x < 32+224; x++ {
			if m.NRGBAAt(x, y).G < 100 {
				dark++
			}
		}
	}
	if dark < 200 {
		t.Errorf("dark pixels under the first swatch = %d, want letters", dark)
	}
}

func TestPaletteDoesNotCountWhatIsTransparent(t *testing.T) {
	t.Parallel()
	m := flag(green, red)
	for i := 0; i < len(m.Pix); i += 4 {
		if m.Pix[i+1] == green.G {
			m.Pix[i+3] = 0
		}
	}
	got := swatches(drawn(t, job("palette", values{"colours": int64(2)}, pngFile(m))), true)
	if len(got) != 1 || !near(got[0], red, 1) {
		t.Errorf("colours = %v, want only red", got)
	}
	if e := refusal(t, job("palette", nil, pngFile(flat(4, 4, nothing)))); !strings.Contains(e.Message, "transparent") {
		t.Errorf("failure = %v", e)
	}
}
