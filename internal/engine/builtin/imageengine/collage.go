package imageengine

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"math"

	"golang.org/x/image/draw"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// previewFromCount is the minimum number of input pictures for which a collage
// or contact sheet sends a preview.
const previewFromCount = 4

// makeCollage arranges pictures on one sheet. Its inputs are pictures, layout,
// gap, width and background.
func makeCollage(ctx context.Context, t task, s engine.Span, _ uint32) (pixels.Picture, error) {
	files := t.Files["pictures"]
	if len(files) == 0 {
		return pixels.Picture{}, engine.Fail(engine.Failed, "At least one picture is required.")
	}
	text := t.textInput("background", "#ffffff")
	background, ok := parseColour(text)
	if !ok {
		return pixels.Picture{}, engine.Fail(engine.Failed, fmt.Sprintf("The background %q is not a colour. Write it as #rrggbb.", text))
	}
	shapes := make([]float64, len(files))
	measures := make([]pixels.Header, len(files))
	for i, f := range files {
		in, err := pixels.ReadHeader(ctx, f)
		if err != nil {
			return pixels.Picture{}, err
		}
		measures[i] = in
		shapes[i] = float64(in.Width) / float64(in.Height)
	}
	plan, err := arrangeCells(t.textInput("layout", "grid"), shapes, t.NumberInput("width", 2048, 16, 16384), t.NumberInput("gap", 16, 0, 1024))
	if err != nil {
		return pixels.Picture{}, err
	}
	if err := checkSize(plan.w, plan.h); err != nil {
		return pixels.Picture{}, err
	}
	if err := t.reserveMemory(ctx, sheetMemory(measures, plan.cells), int64(plan.w)*int64(plan.h)); err != nil {
		return pixels.Picture{}, err
	}
	sheet := newSheet(plan.w, plan.h, background)
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
		r := plan.cells[i]
		small, err := scaleArea(ctx, part.SubSpan(0.5, 1), draw.CatmullRom, p.NRGBA, cropToShape(p.NRGBA, float64(r.Dx()), float64(r.Dy()), 0.5, 0.5), r.Dx(), r.Dy())
		if err != nil {
			return pixels.Picture{}, err
		}
		drawOver(sheet, r, small)
		if i+1 == len(files)/2 && len(files) >= previewFromCount {
			if err := t.sendPreview(ctx, sheet); err != nil {
				return pixels.Picture{}, err
			}
		}
	}
	return pixels.Picture{NRGBA: sheet, Format: result}, nil
}

// newSheet returns an image of w by h pixels, filled with the background
// colour.
func newSheet(w, h int, background color.NRGBA) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := 0; i < len(m.Pix); i += 4 {
		m.Pix[i] = background.R
		m.Pix[i+1] = background.G
		m.Pix[i+2] = background.B
		m.Pix[i+3] = background.A
	}
	return m
}

// drawOver draws a picture onto the sheet. The sheet shows through transparent
// parts of the picture.
func drawOver(sheet *image.NRGBA, r image.Rectangle, m *image.NRGBA) {
	for y := range r.Dy() {
		to := sheet.Pix[sheet.PixOffset(r.Min.X, r.Min.Y+y):]
		from := m.Pix[y*m.Stride:][:4*r.Dx()]
		for i := 0; i < len(from); i += 4 {
			a := float32(from[i+3]) / 255
			under := float32(to[i+3]) / 255
			sum := a + under*(1-a)
			if sum == 0 {
				continue
			}
			for c := range 3 {
				to[i+c] = pixels.ClampByte((float32(from[i+c])*a + float32(to[i+c])*under*(1-a)) / sum)
			}
			to[i+3] = pixels.ClampByte(sum * 255)
		}
	}
}

// sheetPlan is the size of a sheet in pixels and the rectangles of the pictures
// on it.
type sheetPlan struct {
	w, h  int
	cells []image.Rectangle
}

// arrangeCells lays out pictures on a sheet. shapes are their aspect ratios
// (width divided by height).
//
// In the layout "grid" all rows have the same height and all cells of a row the
// same width, and pictures with another aspect ratio are cropped. The layout
// "rows" shows whole pictures, and the pictures of a row have the same height.
// The layout "columns" is the same with rows and columns exchanged.
func arrangeCells(layout string, shapes []float64, width, gap float64) (sheetPlan, error) {
	switch layout {
	case "grid":
		return gridPlan(shapes, width, gap), nil
	case "rows":
		return rowsPlan(breakLines(shapes, 1), width, gap), nil
	case "columns":
		turned := make([]float64, len(shapes))
		for i, s := range shapes {
			turned[i] = 1 / s
		}
		return columnsPlan(breakLines(turned, 1), width, gap), nil
	}
	return sheetPlan{}, engine.ErrMisconfigured
}

// gridPlan lays out a grid whose cells have about the mean aspect ratio of the
// pictures.
func gridPlan(shapes []float64, width, gap float64) sheetPlan {
	var mean float64
	for _, s := range shapes {
		mean += math.Log(s) / float64(len(shapes))
	}
	shape := min(max(math.Exp(mean), 0.25), 4)
	columns := int(math.Ceil(math.Sqrt(float64(len(shapes)))))
	lines := (len(shapes) + columns - 1) / columns
	gap = limitGap(gap, width, columns)
	height := (width - gap*float64(columns+1)) / float64(columns) / shape
	var p sheetPlan
	y := gap
	for line := range lines {
		n := (len(shapes) + lines - 1 - line) / lines // if the pictures do not divide evenly, the first rows have one more picture
		cell := (width - gap*float64(n+1)) / float64(n)
		for i := range n {
			p.addCell(gap+float64(i)*(cell+gap), y, cell, height)
		}
		y += height + gap
	}
	return p.withSize(width, y)
}

// limitGap reduces a gap so that n pictures in a row get at least half of the
// width.
func limitGap(gap, width float64, n int) float64 { return min(gap, width/2/float64(n+1)) }

// rowsPlan lays out rows that all fill the width of the sheet. Pictures of a
// row have the same height.
func rowsPlan(lines [][]float64, width, gap float64) sheetPlan {
	for _, line := range lines {
		gap = limitGap(gap, width, len(line))
	}
	var p sheetPlan
	y := gap
	for _, line := range lines {
		height := (width - gap*float64(len(line)+1)) / sumShapes(line)
		x := gap
		for _, shape := range line {
			p.addCell(x, y, height*shape, height)
			x += height*shape + gap
		}
		y += height + gap
	}
	return p.withSize(width, y)
}

// columnsPlan lays out columns of equal height that together fill the width of
// the sheet. Each number in lines is the height of a picture divided by its
// width. So the height of a column is its width times the sum of its numbers,
// plus the gaps. This determines the common height.
func columnsPlan(lines [][]float64, width, gap float64) sheetPlan {
	gap = limitGap(gap, width, len(lines))
	height := columnsHeight(lines, width, gap)
	for i := 0; i < len(lines); i++ {
		// A column of many flat pictures may consist mostly of gaps. The gap is
		// halved until no column is much too narrow.
		share := width / float64(4*len(lines))
		if gap > 0 && (height-gap*float64(len(lines[i])+1))/sumShapes(lines[i]) < min(share, height/sumShapes(lines[i])/2) {
			gap = math.Floor(gap / 2)
			height = columnsHeight(lines, width, gap)
			i = -1
		}
	}
	var p sheetPlan
	x := gap
	for _, line := range lines {
		w := (height - gap*float64(len(line)+1)) / sumShapes(line)
		y := gap
		for _, turned := range line {
			p.addCell(x, y, w, w*turned)
			y += w*turned + gap
		}
		x += w + gap
	}
	return p.withSize(width, height)
}

// columnsHeight returns the common height in pixels at which the columns
// together fill the width.
func columnsHeight(lines [][]float64, width, gap float64) float64 {
	space := width - gap
	slope := 0.0
	for _, line := range lines {
		space += gap*float64(len(line)+1)/sumShapes(line) - gap
		slope += 1 / sumShapes(line)
	}
	return space / slope
}

// addCell adds a cell, rounded to whole pixels. A cell is at least one pixel
// wide and high.
func (p *sheetPlan) addCell(x, y, w, h float64) {
	left := int(math.Round(x))
	top := int(math.Round(y))
	p.cells = append(p.cells, image.Rect(left, top, max(int(math.Round(x+w)), left+1), max(int(math.Round(y+h)), top+1)))
}

// withSize returns the plan with the sheet's size. The sheet is enlarged if
// rounding moved a cell beyond its edge.
func (p sheetPlan) withSize(w, h float64) sheetPlan {
	p.w = int(math.Round(w))
	p.h = int(math.Round(h))
	for _, r := range p.cells {
		p.w = max(p.w, r.Max.X)
		p.h = max(p.h, r.Max.Y)
	}
	return p
}

// breakLines distributes pictures over lines, in their order, so that the sheet
// has about the given aspect ratio and the lines are about equally full. Two or
// more pictures get at least two lines.
func breakLines(shapes []float64, aspect float64) [][]float64 {
	best := math.Inf(1)
	found := [][]float64{shapes}
	for n := min(2, len(shapes)); n <= len(shapes); n++ {
		lines := balanceLines(shapes, n)
		var height float64
		for _, line := range lines {
			height += 1 / sumShapes(line)
		}
		if off := math.Abs(math.Log(1 / height / aspect)); off < best {
			best = off
			found = lines
		}
	}
	return found
}

// balanceLines distributes pictures over n lines, in their order, so that the
// sums of the aspect ratios in the lines are as equal as possible.
func balanceLines(shapes []float64, n int) [][]float64 {
	fair := sumShapes(shapes) / float64(n)
	// cost[k][i] is the least sum of squared deviations for the first i
	// pictures in k lines.
	cost := make([][]float64, n+1)
	from := make([][]int, n+1)
	for k := range cost {
		cost[k] = make([]float64, len(shapes)+1)
		from[k] = make([]int, len(shapes)+1)
		for i := range cost[k] {
			cost[k][i] = math.Inf(1)
		}
	}
	cost[0][0] = 0
	for k := 1; k <= n; k++ {
		for i := k; i <= len(shapes); i++ {
			for j := k - 1; j < i; j++ {
				off := sumShapes(shapes[j:i]) - fair
				if c := cost[k-1][j] + off*off; c < cost[k][i] {
					cost[k][i] = c
					from[k][i] = j
				}
			}
		}
	}
	lines := make([][]float64, n)
	i := len(shapes)
	for k := n; k > 0; k-- {
		lines[k-1] = shapes[from[k][i]:i]
		i = from[k][i]
	}
	return lines
}

func sumShapes(line []float64) float64 {
	var sum float64
	for _, s := range line {
		sum += s
	}
	return sum
}
