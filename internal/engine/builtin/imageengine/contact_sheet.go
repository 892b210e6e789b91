package imageengine

import (
	"context"
	"image"
	"image/color"
	"math"
	"strconv"
	"strings"

	"golang.org/x/image/draw"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// pageSizes are the sizes of contact sheets in pixels. The A4 sizes are for 150
// dots per inch.
var pageSizes = map[string]image.Point{
	"a4-portrait":  {X: 1240, Y: 1754},
	"a4-landscape": {X: 1754, Y: 1240},
	"square":       {X: 1600, Y: 1600},
	"wide":         {X: 1920, Y: 1080},
}

// paper has the colours of a contact sheet: of the page, the cells, the title
// and the numbers.
type paper struct{ sheet, cell, title, number color.NRGBA }

var papers = map[string]paper{
	"light": {color.NRGBA{0xfc, 0xfc, 0xfa, 255}, color.NRGBA{0xee, 0xee, 0xea, 255}, color.NRGBA{0x22, 0x22, 0x22, 255}, color.NRGBA{0x66, 0x66, 0x62, 255}},
	"dark":  {color.NRGBA{0x12, 0x12, 0x14, 255}, color.NRGBA{0x22, 0x22, 0x25, 255}, color.NRGBA{0xf0, 0xf0, 0xee, 255}, color.NRGBA{0xa6, 0xa6, 0xaa, 255}},
}

// makeContactSheet draws small versions of all pictures on one page. Its inputs
// are pictures, title, columns, page, background and numbers.
func makeContactSheet(ctx context.Context, t task, s engine.Span, _ uint32) (pixels.Picture, error) {
	files := t.Files["pictures"]
	if len(files) == 0 {
		return pixels.Picture{}, engine.Fail(engine.Failed, "At least one picture is required.")
	}
	size, known := pageSizes[t.textInput("page", "a4-portrait")]
	tones, chosen := papers[t.textInput("background", "light")]
	if !known || !chosen {
		return pixels.Picture{}, engine.ErrMisconfigured
	}
	shapes := make([]image.Point, len(files))
	looks := make([]pixels.Header, len(files))
	for i, f := range files {
		in, err := pixels.ReadHeader(ctx, f)
		if err != nil {
			return pixels.Picture{}, err
		}
		looks[i] = in
		shapes[i] = image.Pt(in.Width, in.Height)
	}
	title := strings.Join(strings.Fields(t.textInput("title", "")), " ")
	g := newContactGrid(size, shapes, int(t.NumberInput("columns", 0, 0, 12)), title != "", t.flagInput("numbers", true))
	cells := make([]image.Rectangle, len(files))
	for i := range cells {
		cells[i] = g.cellRect(i)
	}
	if err := t.reserveMemory(ctx, sheetMemory(looks, cells), int64(size.X)*int64(size.Y)); err != nil {
		return pixels.Picture{}, err
	}
	sheet := newSheet(size.X, size.Y, tones.sheet)
	if err := g.drawText(sheet, tones, title, len(files)); err != nil {
		return pixels.Picture{}, err
	}
	result := pixels.JPEG
	for i, f := range files {
		part := s.SubSpan(float64(i)/float64(len(files)), float64(i+1)/float64(len(files)))
		p, err := pixels.Read(ctx, part.SubSpan(0, 0.5), f)
		if err != nil {
			return pixels.Picture{}, err
		}
		if p.Format != pixels.JPEG {
			result = pixels.PNG
		}
		cell := g.cellRect(i)
		fillBox(sheet, cell, tones.cell)
		at := centreInBox(cell.Inset(g.gap/4), shapes[i])
		small, err := scaleArea(ctx, part.SubSpan(0.5, 1), draw.CatmullRom, p.NRGBA, wholeArea(p.NRGBA), at.Dx(), at.Dy())
		if err != nil {
			return pixels.Picture{}, err
		}
		drawOver(sheet, at, small)
		if i+1 == len(files)/2 && len(files) >= previewFromCount {
			if err := t.sendPreview(ctx, sheet); err != nil {
				return pixels.Picture{}, err
			}
		}
	}
	return pixels.Picture{NRGBA: sheet, Format: result}, nil
}

// contactGrid is the layout of a contact sheet: rows of equally large cells, a
// line for the number below each cell, and a line for the title at the top.
type contactGrid struct {
	page    image.Point
	columns int
	lines   int
	margin  int
	gap     int
	// title and number are the heights in pixels of the title line and of a
	// number line. They are 0 if there is no such line.
	title  int
	number int
}

func newContactGrid(page image.Point, shapes []image.Point, columns int, title, numbers bool) contactGrid {
	short := min(page.X, page.Y)
	g := contactGrid{page: page, margin: short / 22, gap: short / 55}
	if title {
		g.title = short / 14
	}
	if numbers {
		g.number = short / 38
	}
	if columns > 0 {
		return g.withColumns(min(columns, len(shapes)), len(shapes))
	}
	// Choose the number of columns that makes the pictures largest. If several
	// numbers are about equally good, choose the smallest, so that rounding
	// errors do not decide.
	best := 0.0
	found := g
	for n := 1; n <= len(shapes); n++ {
		try := g.withColumns(n, len(shapes))
		var area float64
		for _, shape := range shapes {
			r := centreInBox(try.cellRect(0), shape)
			area += float64(r.Dx()) * float64(r.Dy())
		}
		if area > best*1.001 {
			best = area
			found = try
		}
	}
	return found
}

// withColumns returns the layout for a number of pictures in the given number
// of columns.
func (g contactGrid) withColumns(columns, pictures int) contactGrid {
	g.columns = columns
	g.lines = (pictures + columns - 1) / columns
	return g
}

// cellRect returns the rectangle of the cell with index i. All cells have the
// same size; rounding affects only the gaps between them.
func (g contactGrid) cellRect(i int) image.Rectangle {
	wide := float64(g.page.X-2*g.margin-(g.columns-1)*g.gap) / float64(g.columns)
	high := float64(g.page.Y-2*g.margin-g.title-(g.lines-1)*g.gap)/float64(g.lines) - float64(g.number)
	x := float64(g.margin) + float64(i%g.columns)*(wide+float64(g.gap))
	y := float64(g.margin+g.title) + float64(i/g.columns)*(high+float64(g.number+g.gap))
	at := image.Pt(int(math.Round(x)), int(math.Round(y)))
	return image.Rectangle{at, at.Add(image.Pt(max(int(wide), 1), max(int(high), 1)))}
}

// drawText draws the title and the numbers of the pictures.
func (g contactGrid) drawText(sheet *image.NRGBA, tones paper, title string, pictures int) error {
	if g.title > 0 {
		face, err := newFontFace(float64(g.title) * 0.5)
		if err != nil {
			return err
		}
		defer face.Close()
		drawTextLine(sheet, face, tones.title, image.Rect(g.margin, g.margin-g.title/4, g.page.X-g.margin, g.margin+g.title*3/4), title)
	}
	if g.number > 0 {
		face, err := newFontFace(float64(g.number) * 0.62)
		if err != nil {
			return err
		}
		defer face.Close()
		for i := range pictures {
			cell := g.cellRect(i)
			drawTextLine(sheet, face, tones.number, image.Rect(cell.Min.X, cell.Max.Y, cell.Max.X, cell.Max.Y+g.number+g.gap/4), strconv.Itoa(i+1))
		}
	}
	return nil
}

// centreInBox returns the largest rectangle with the aspect ratio of shape that
// fits into box, centred in it.
func centreInBox(box image.Rectangle, shape image.Point) image.Rectangle {
	w, h := fitInside(shape.X, shape.Y, max(box.Dx(), 1), max(box.Dy(), 1))
	at := box.Min.Add(image.Pt((box.Dx()-w)/2, (box.Dy()-h)/2))
	return image.Rectangle{at, at.Add(image.Pt(w, h))}
}

// fillBox fills a rectangle with a colour.
func fillBox(m *image.NRGBA, box image.Rectangle, c color.NRGBA) {
	draw.Draw(pixels.AsRGBA(m), box, image.NewUniform(c), image.Point{}, draw.Src)
}
