package imageengine

import (
	"image"
	"image/color"
	"strings"
	"testing"
)

// TestContactGrid holds the places of all sheets that can be asked for: cells
// are equally large, apart, on the page, and in reading order.
func TestContactGrid(t *testing.T) {
	t.Parallel()
	for name, page := range pageSizes {
		for n := 1; n <= 12; n++ {
			for columns := range 13 {
				for _, letters := range []bool{true, false} {
					shapes := make([]image.Point, n)
					for i := range shapes {
						shapes[i] = image.Pt(40+37*i%90, 50+53*i%70)
					}
					g := newContactGrid(page, shapes, columns, letters, letters)
					if columns > 0 && g.columns != min(columns, n) {
						t.Errorf("%s: %d columns, want %d", name, g.columns, min(columns, n))
					}
					first := g.cellRect(0)
					for i := range n {
						r := g.cellRect(i)
						if r.Size() != first.Size() || r.Dx() < 60 || r.Dy() < 15 {
							t.Errorf("%s of %d in %d: cell %d has %v, the first %v", name, n, columns, i, r.Size(), first.Size())
						}
						below := image.Rect(r.Min.X, r.Max.Y, r.Max.X, r.Max.Y+g.number)
						if !r.Union(below).In(image.Rectangle{Max: page}.Inset(g.margin - 1)) {
							t.Errorf("%s of %d in %d: cell %d at %v is off the page", name, n, columns, i, r)
						}
						if i == 0 {
							continue
						}
						before := g.cellRect(i - 1)
						if beside := before.Max.X < r.Min.X && before.Min.Y == r.Min.Y; beside == (i%g.columns == 0) {
							t.Errorf("%s of %d in %d: cell %d at %v follows %v", name, n, columns, i, r, before)
						}
						if above := i - g.columns; above >= 0 && g.cellRect(above).Max.Y+g.number >= r.Min.Y {
							t.Errorf("%s of %d in %d: cell %d has no room above", name, n, columns, i)
						}
					}
				}
			}
		}
	}
}

// TestContactChoosesColumns gives pictures for which one number is clearly best.
func TestContactChoosesColumns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		page  string
		shape image.Point
		n     int
		want  int
	}{
		{"wide", image.Pt(10, 100), 8, 8},
		{"wide", image.Pt(100, 10), 4, 1},
		{"square", image.Pt(50, 50), 9, 3},
		{"a4-portrait", image.Pt(30, 20), 1, 1},
	} {
		shapes := make([]image.Point, tt.n)
		for i := range shapes {
			shapes[i] = tt.shape
		}
		if g := newContactGrid(pageSizes[tt.page], shapes, 0, false, true); g.columns != tt.want {
			t.Errorf("%d of %v on %s: %d columns, want %d", tt.n, tt.shape, tt.page, g.columns, tt.want)
		}
	}
}

func TestLettersStayInTheirBox(t *testing.T) {
	t.Parallel()
	face, err := newFontFace(20)
	if err != nil {
		t.Fatal(err)
	}
	defer face.Close()
	black := color.NRGBA{0, 0, 0, 255}
	box := image.Rect(20, 10, 180, 40)
	for text, least := range map[string]int{
		"I": 10, "title": 60, strings.Repeat("WM ", 300): 400, "": 0,
		"日本 \x00 🎈": 0, // no letters for them, and no harm
	} {
		m := newSheet(200, 50, color.NRGBA{255, 255, 255, 255})
		drawTextLine(m, face, black, box, text)
		var ink image.Rectangle
		n := 0
		for y := range 50 {
			for x := range 200 {
				if m.NRGBAAt(x, y).G < 128 {
					ink = ink.Union(image.Rect(x, y, x+1, y+1))
					n++
				}
			}
		}
		if !ink.In(box) || n < least {
			t.Errorf("%.20q: %d pixels of ink in %v, want at least %d in %v", text, n, ink, least, box)
		}
		if left, right := ink.Min.X-box.Min.X, box.Max.X-ink.Max.X; n > 0 && (left-right > 6 || right-left > 6) {
			t.Errorf("%.20q at %v is not in the middle of %v", text, ink, box)
		}
	}
}
