package imageengine_test

import (
	stdimage "image"
	"image/color"
	"strings"
	"testing"

	"atelier/internal/engine"
)

// boxes gives the smallest rectangle round all pixels of each colour.
func boxes(m *stdimage.NRGBA) map[color.NRGBA]stdimage.Rectangle {
	all := map[color.NRGBA]stdimage.Rectangle{}
	for y := range m.Rect.Dy() {
		for x := range m.Rect.Dx() {
			c := m.NRGBAAt(x, y)
			all[c] = all[c].Union(stdimage.Rect(x, y, x+1, y+1))
		}
	}
	return all
}

var paints = []color.NRGBA{
	red, green, blue, {0, 0, 0, 255}, {200, 200, 0, 255}, {0, 200, 200, 255}, {200, 0, 200, 255},
	{90, 90, 90, 255}, {150, 80, 0, 255}, {0, 90, 150, 255}, {80, 0, 90, 255}, {255, 120, 120, 255},
}

func sheetOf(n int, w, h func(i int) int) []engine.File {
	var files []engine.File
	for i := range n {
		files = append(files, pngFile(flat(w(i), h(i), paints[i])))
	}
	return files
}

func TestCollageShowsAllPicturesApart(t *testing.T) {
	t.Parallel()
	wide := func(i int) int { return 40 + 37*i%90 }
	high := func(i int) int { return 50 + 53*i%70 }
	for _, layout := range []string{"grid", "rows", "columns"} {
		for _, n := range []int{1, 2, 7, 12} {
			for _, gap := range []int64{0, 5} {
				m := drawn(t, job("collage", values{"layout": layout, "gap": gap, "width": int64(200)}, sheetOf(n, wide, high)...))
				if m.Rect.Dx() < 200 || m.Rect.Dx() > 202 {
					t.Errorf("%s of %d: width = %d, want 200", layout, n, m.Rect.Dx())
				}
				at := boxes(m)
				for i := range n {
					r := at[paints[i]]
					if r.Dx() < 5 || r.Dy() < 5 {
						t.Fatalf("%s of %d: picture %d covers %v", layout, n, i, r)
					}
					if !r.In(m.Rect.Inset(int(gap) - 1)) {
						t.Errorf("%s of %d: picture %d at %v touches the edge of %v", layout, n, i, r, m.Rect)
					}
					for k := range i {
						if o := at[paints[k]]; r.Inset(-int(gap)/2 + 1).Overlaps(o) {
							t.Errorf("%s of %d: pictures %d and %d are too near: %v, %v", layout, n, k, i, o, r)
						}
					}
					if shape := float64(r.Dx()) / float64(r.Dy()) * float64(high(i)) / float64(wide(i)); layout != "grid" && (shape < 0.8 || shape > 1.25) {
						t.Errorf("%s of %d: picture %d lost its shape: %v", layout, n, i, r)
					}
				}
			}
		}
	}
}

func TestCollageDirections(t *testing.T) {
	t.Parallel()
	two := sheetOf(2, func(int) int { return 60 }, func(int) int { return 50 })
	m := drawn(t, job("collage", values{"layout": "rows", "width": int64(300)}, two...))
	if a, b := boxes(m)[red], boxes(m)[green]; a.Max.Y >= b.Min.Y || a.Min.X != b.Min.X {
		t.Errorf("rows: %v and %v, want one below the other", a, b)
	}
	m = drawn(t, job("collage", values{"layout": "columns", "width": int64(300)}, two...))
	if a, b := boxes(m)[red], boxes(m)[green]; a.Max.X >= b.Min.X || a.Min.Y != b.Min.Y {
		t.Errorf("columns: %v and %v, want side by side", a, b)
	}
}

func TestCollageGapAndBackground(t *testing.T) {
	t.Parallel()
	two := sheetOf(2, func(int) int { return 60 }, func(int) int { return 60 })
	for _, gap := range []int64{0, 1, 40} {
		m := drawn(t, job("collage", values{"layout": "columns", "width": int64(400), "gap": gap, "background": "#0af"}, two...))
		a, b := boxes(m)[red], boxes(m)[green]
		if got := b.Min.X - a.Max.X; got < int(gap)-1 || got > int(gap)+1 {
			t.Errorf("gap = %d, want %d", got, gap)
		}
		if gap > 0 && m.NRGBAAt(0, 0) != (color.NRGBA{0, 0xaa, 0xff, 255}) {
			t.Errorf("background = %v", m.NRGBAAt(0, 0))
		}
	}
}

func TestCollageOfManyFlatPicturesAndLargeGaps(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"grid", "rows", "columns"} {
		for _, flip := range []bool{false, true} {
			long, short := func(int) int { return 200 }, func(int) int { return 10 }
			if flip {
				long, short = short, long
			}
			m := drawn(t, job("collage", values{"layout": layout, "width": int64(256), "gap": int64(128)}, sheetOf(12, long, short)...))
			at := boxes(m)
			for i := range 12 {
				if at[paints[i]].Empty() {
					t.Errorf("%s: picture %d is not seen", layout, i)
				}
			}
		}
	}
}

func TestCollageShowsTheBackgroundThroughPictures(t *testing.T) {
	t.Parallel()
	half := pngFile(flat(40, 40, color.NRGBA{255, 0, 0, 128}))
	m := drawn(t, job("collage", values{"width": int64(100), "gap": int64(0), "background": "#0000ff"}, half))
	if got := m.NRGBAAt(50, 50); !near(got, color.NRGBA{128, 0, 127, 255}, 2) {
		t.Errorf("red over blue = %v", got)
	}
	m = drawn(t, job("collage", values{"width": int64(100), "background": "#ffffff00"}, half))
	if edge, middle := m.NRGBAAt(2, 2), m.NRGBAAt(50, 50); edge.A != 0 || !near(middle, color.NRGBA{255, 0, 0, 128}, 2) {
		t.Errorf("edge = %v and middle = %v, want nothing and half red", edge, middle)
	}
	for _, bad := range []string{"white", "#12345", "#ggg", "#1234567", "ffffff", "#+12345"} {
		if e := refusal(t, job("collage", values{"background": bad}, half)); !strings.Contains(e.Message, bad) {
			t.Errorf("%s: %v", bad, e)
		}
	}
}

func TestCollageOfJPEGsIsAJPEG(t *testing.T) {
	t.Parallel()
	a, b := jpegFile(photo(20, 20)), pngFile(photo(20, 20))
	small := values{"width": int64(64)}
	if _, format := decoded(t, results(t, job("collage", small, a, a))[0]); format != "jpeg" {
		t.Errorf("format = %s, want jpeg", format)
	}
	if _, format := decoded(t, results(t, job("collage", small, a, b))[0]); format != "png" {
		t.Errorf("format = %s, want png", format)
	}
}
