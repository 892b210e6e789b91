package imageengine_test

import (
	"bytes"
	stdimage "image"
	"strings"
	"testing"

	"atelier/internal/engine"
)

func TestContactPages(t *testing.T) {
	t.Parallel()
	f := jpegFile(flat(40, 30, red))
	for page, want := range map[string]stdimage.Point{
		"a4-portrait": {X: 1240, Y: 1754}, "a4-landscape": {X: 1754, Y: 1240}, "square": {X: 1600, Y: 1600}, "wide": {X: 1920, Y: 1080},
	} {
		c, _, err := stdimage.DecodeConfig(bytes.NewReader(results(t, job("contact", values{"page": page}, f))[0]))
		if err != nil || c.Width != want.X || c.Height != want.Y {
			t.Errorf("%s: %dx%d, %v; want %v", page, c.Width, c.Height, err, want)
		}
	}
	for _, v := range []values{{"page": "a3"}, {"background": "pink"}} {
		if e := refusal(t, job("contact", v, f)); !strings.Contains(e.Message, "not configured correctly") {
			t.Errorf("%v: %v", v, e)
		}
	}
}

// TestContactShowsPicturesWhole finds pictures by their colours; where cells
// lie is tested inside.
func TestContactShowsPicturesWhole(t *testing.T) {
	t.Parallel()
	wide, high := []int{30, 90, 60}, []int{90, 30, 60}
	files := sheetOf(3, func(i int) int { return wide[i] }, func(i int) int { return high[i] })
	m := drawn(t, job("contact", values{"page": "wide", "title": "Three of them"}, files...))
	at := boxes(m)
	for i := range files {
		r := at[paints[i]]
		if shape := float64(r.Dx()) / float64(r.Dy()) * float64(high[i]) / float64(wide[i]); r.Dx() < 100 || shape < 0.99 || shape > 1.01 {
			t.Errorf("picture %d of %dx%d covers %v", i, wide[i], high[i], r)
		}
		if i > 0 && at[paints[i-1]].Max.X > r.Min.X {
			t.Errorf("picture %d at %v does not follow %v", i, r, at[paints[i-1]])
		}
	}
	sheet, cell := m.NRGBAAt(4, 4), m.NRGBAAt(at[paints[0]].Min.X-30, 500)
	if sheet == cell || sheet.G < 230 || cell.G < 200 {
		t.Errorf("sheet = %v and cell = %v, want two light tones", sheet, cell)
	}
	dark := func(r stdimage.Rectangle) (n int) {
		for y := r.Min.Y; y < r.Max.Y; y++ {
			for x := r.Min.X; x < r.Max.X; x++ {
				if m.NRGBAAt(x, y).G < 140 {
					n++
				}
			}
		}
		return n
	}
	if dark(stdimage.Rect(0, 0, 1920, 100)) < 200 {
		t.Error("there is no title")
	}
	if dark(stdimage.Rect(0, 1000, 1920, 1080)) < 20 {
		t.Error("there are no numbers")
	}
}

func TestContactShowsCellsThroughPictures(t *testing.T) {
	t.Parallel()
	m := drawn(t, job("contact", values{"background": "dark", "page": "wide"}, pngFile(flat(40, 40, nothing))))
	if c := m.NRGBAAt(960, 540); !m.Opaque() || c.G > 60 || m.NRGBAAt(4, 4).G > 40 {
		t.Errorf("the middle = %v, want the cell's tone", c)
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
		_, format, err := stdimage.DecodeConfig(bytes.NewReader(results(t, job("contact", values{"format": tt.asked, "page": "wide"}, tt.files...))[0]))
		if err != nil || format != tt.want {
			t.Errorf("format = %s, %v; want %s", format, err, tt.want)
		}
	}
}
