package raster_test

import (
	"bytes"
	stdimage "image"
	"strings"
	"testing"

	"atelier/internal/engine"
)

func TestContactPages(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]stdimage.Point{
		"a4-portrait": {X: 1240, Y: 1754}, "a4-landscape": {X: 1754, Y: 1240}, "square": {X: 1600, Y: 1600}, "wide": {X: 1920, Y: 1080},
	} {
		m := drawn(t, job("contact", values{"page": page}, pngFile(flat(40, 30, red))))
		wantSize(t, m, want.X, want.Y)
	}
	for _, v := range []values{{"page": "a3"}, {"background": "pink"}} {
		if e := refusal(t, job("contact", v, pngFile(flat(40, 30, red)))); !strings.Contains(e.Message, "not set up rightly") {
			t.Errorf("%v: %v", v, e)
		}
	}
}

// TestContactShowsAllPicturesWhole looks for the colours of pictures, whose
// boxes have to be apart, of their own shape, and in reading order.
func TestContactShowsAllPicturesWhole(t *testing.T) {
	t.Parallel()
	wide, high := func(i int) int { return 40 + 37*i%90 }, func(i int) int { return 50 + 53*i%70 }
	for _, n := range []int{5, 12} {
		for _, columns := range []int64{0, 1, 4} {
			m := drawn(t, job("contact", values{"columns": columns, "page": "wide", "numbers": false}, sheetOf(n, wide, high)...))
			at := boxes(m)
			for i := range n {
				r := at[paints[i]]
				if shape := float64(r.Dx()) / float64(r.Dy()) * float64(high(i)) / float64(wide(i)); r.Dx() < 5 || shape < 0.85 || shape > 1.18 {
					t.Errorf("%d pictures, %d columns: picture %d of %dx%d covers %v", n, columns, i, wide(i), high(i), r)
				}
				for k := range i {
					if at[paints[k]].Overlaps(r) {
						t.Errorf("%d pictures, %d columns: pictures %d and %d overlap", n, columns, k, i)
					}
				}
				if i == 0 {
					continue
				}
				before := at[paints[i-1]]
				beside, below := before.Max.X <= r.Min.X, before.Max.Y <= r.Min.Y
				if columns > 0 && below != (int64(i)%columns == 0) || !beside && !below {
					t.Errorf("%d pictures, %d columns: picture %d at %v comes after %v", n, columns, i, r, before)
				}
			}
		}
	}
}

// TestContactCellsAreEqual finds the cells by their tone.
func TestContactCellsAreEqual(t *testing.T) {
	t.Parallel()
	files := sheetOf(4, func(int) int { return 10 }, func(i int) int { return 40 }) // as narrow as leaves tone on both sides
	m := drawn(t, job("contact", values{"columns": int64(2), "page": "square", "numbers": false}, files...))
	at := boxes(m)
	for i := range 4 {
		r := at[paints[i]]
		if want := at[paints[0]]; r.Dx() != want.Dx() || r.Dy() != want.Dy() {
			t.Errorf("picture %d covers %v, the first %v", i, r, want)
		}
	}
	if a, b := m.NRGBAAt(5, 5), m.NRGBAAt(at[paints[0]].Min.X-20, at[paints[0]].Min.Y+50); a == b {
		t.Errorf("sheet and cell are both %v", a)
	}
}

func TestContactBackgrounds(t *testing.T) {
	t.Parallel()
	f := pngFile(flat(40, 30, red))
	light, dark := drawn(t, job("contact", nil, f)).NRGBAAt(4, 4), drawn(t, job("contact", values{"background": "dark"}, f)).NRGBAAt(4, 4)
	if light.G < 230 || dark.G > 40 {
		t.Errorf("light = %v and dark = %v", light, dark)
	}
}

// ink counts the pixels of a part that are far from the sheet's tone.
func ink(m *stdimage.NRGBA, r stdimage.Rectangle) (n int) {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			if !near(m.NRGBAAt(x, y), m.NRGBAAt(2, 2), 60) {
				n++
			}
		}
	}
	return n
}

func TestContactTitleAndNumbers(t *testing.T) {
	t.Parallel()
	f := pngFile(flat(60, 30, white))
	sheet := func(v values) *stdimage.NRGBA {
		v["page"] = "wide"
		return drawn(t, job("contact", v, f))
	}
	top, whole := stdimage.Rect(0, 0, 1920, 110), stdimage.Rect(0, 0, 1920, 1080)
	bare := sheet(values{"numbers": false})
	if got := ink(bare, whole); got > 0 {
		t.Errorf("%d pixels of ink on a sheet without letters", got)
	}
	short, long := sheet(values{"title": "I"}), sheet(values{"title": strings.Repeat("WM ", 300)})
	if a, b := ink(short, top), ink(long, top); a < 50 || b < 10*a {
		t.Errorf("ink = %d for a short title and %d for a long one", a, b)
	}
	for y := range 1080 {
		for _, x := range []int{10, 1910} {
			if long.NRGBAAt(x, y) != long.NRGBAAt(2, 2) {
				t.Fatalf("the long title runs over the edge at %d,%d", x, y)
			}
		}
	}
	if ink(sheet(values{}), whole) < 20 {
		t.Error("there is no number")
	}
	if a, b := sheet(values{"title": " a\n\tb "}), sheet(values{"title": "a b"}); !bytes.Equal(a.Pix, b.Pix) {
		t.Error("spaces and lines of a title are not one space")
	}
	sheet(values{"title": "日本 \x00 مرحبا 🎈"}) // no letters for them, and no harm
}

func TestContactShowsCellsThroughPictures(t *testing.T) {
	t.Parallel()
	m := drawn(t, job("contact", values{"background": "dark"}, pngFile(flat(40, 40, nothing))))
	if !m.Opaque() || m.NRGBAAt(620, 877).G > 60 {
		t.Errorf("the middle = %v, want the cell's tone", m.NRGBAAt(620, 877))
	}
}

func TestContactFormats(t *testing.T) {
	t.Parallel()
	a, b := jpegFile(photo(20, 20)), pngFile(photo(20, 20))
	for _, tt := range []struct {
		files []engine.File
		asked string
		want  string
	}{
		{[]engine.File{a, a}, "same", "jpeg"}, {[]engine.File{a, b}, "same", "png"}, {[]engine.File{b}, "jpeg", "jpeg"},
	} {
		if _, format := decoded(t, results(t, job("contact", values{"format": tt.asked}, tt.files...))[0]); format != tt.want {
			t.Errorf("format = %s, want %s", format, tt.want)
		}
	}
}
