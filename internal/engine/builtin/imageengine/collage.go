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

// manyPictures is from how many pictures on a collage shows a preview.
const manyPictures = 4

// collage: pictures, layout, gap, width, background.
func collage(ctx context.Context, t task, s engine.Span, _ uint32) (pixels.Picture, error) {
	files := t.Files["pictures"]
	if len(files) == 0 {
		return pixels.Picture{}, engine.Fail(engine.Failed, "At least one picture is needed.")
	}
	text := t.text("background", "#ffffff")
	background, ok := parseColour(text)
	if !ok {
		return pixels.Picture{}, engine.Fail(engine.Failed, fmt.Sprintf("The background %q is not a colour: write it as #rrggbb.", text))
	}
	shapes := make([]float64, len(files))
	looks := make([]pixels.Measure, len(files))
	for i, f := range files {
		in, err := pixels.Look(ctx, f)
		if err != nil {
			return pixels.Picture{}, err
		}
		looks[i] = in
		shapes[i] = float64(in.Width) / float64(in.Height)
	}
	plan, err := arrange(t.text("layout", "grid"), shapes, t.Number("width", 2048, 16, 16384), t.Number("gap", 16, 0, 1024))
	if err != nil {
		return pixels.Picture{}, err
	}
	if err := fits(plan.w, plan.h); err != nil {
		return pixels.Picture{}, err
	}
	if err := t.reserve(ctx, sheetMemory(looks, plan.places), int64(plan.w)*int64(plan.h)); err != nil {
		return pixels.Picture{}, err
	}
	sheet := newSheet(plan.w, plan.h, background)
	result := pixels.JPEG
	for i, f := range files {
		part := s.Part(float64(i)/float64(len(files)), float64(i+1)/float64(len(files)))
		p, err := pixels.Read(ctx, part.Part(0, 0.5), f)
		if err != nil {
			return pixels.Picture{}, err
		}
		if p.Format != pixels.JPEG {
			result = pixels.PNG
		}
		r := plan.places[i]
		small, err := scale(ctx, part.Part(0.5, 1), draw.CatmullRom, p.NRGBA, cut(p.NRGBA, float64(r.Dx()), float64(r.Dy()), 0.5, 0.5), r.Dx(), r.Dy())
		if err != nil {
			return pixels.Picture{}, err
		}
		over(sheet, r, small)
		if i+1 == len(files)/2 && len(files) >= manyPictures {
			if err := t.preview(ctx, sheet); err != nil {
				return pixels.Picture{}, err
			}
		}
	}
	return pixels.Picture{NRGBA: sheet, Format: result}, nil
}

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

// over lays a picture onto the sheet, through which the background shows where
// the picture is transparent.
func over(sheet *image.NRGBA, r image.Rectangle, m *image.NRGBA) {
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
				to[i+c] = pixels.Byte((float32(from[i+c])*a + float32(to[i+c])*under*(1-a)) / sum)
			}
			to[i+3] = pixels.Byte(sum * 255)
		}
	}
}

// plan is a sheet and where the pictures lie on it.
type plan struct {
	w, h   int
	places []image.Rectangle
}

// arrange lays pictures of the given shapes (width by height) out on a sheet.
//
// In a grid all rows have the same height and all cells of a row the same
// width, and cut what does not fit their shape. Rows show whole
// pictures: those of a row have the same height. Columns are rows turned over.
func arrange(layout string, shapes []float64, width, gap float64) (plan, error) {
	switch layout {
	case "grid":
		return gridPlan(shapes, width, gap), nil
	case "rows":
		return rowsPlan(split(shapes, 1), width, gap), nil
	case "columns":
		turned := make([]float64, len(shapes))
		for i, s := range shapes {
			turned[i] = 1 / s
		}
		return columnsPlan(split(turned, 1), width, gap), nil
	}
	return plan{}, engine.ErrSetup
}

// gridPlan gives all cells the mean shape of the pictures.
func gridPlan(shapes []float64, width, gap float64) plan {
	var mean float64
	for _, s := range shapes {
		mean += math.Log(s) / float64(len(shapes))
	}
	shape := min(max(math.Exp(mean), 0.25), 4)
	columns := int(math.Ceil(math.Sqrt(float64(len(shapes)))))
	lines := (len(shapes) + columns - 1) / columns
	gap = bearable(gap, width, columns)
	height := (width - gap*float64(columns+1)) / float64(columns) / shape
	var p plan
	y := gap
	for line := range lines {
		n := (len(shapes) + lines - 1 - line) / lines // the first rows take what is over
		cell := (width - gap*float64(n+1)) / float64(n)
		for i := range n {
			p.add(gap+float64(i)*(cell+gap), y, cell, height)
		}
		y += height + gap
	}
	return p.sized(width, y)
}

// bearable gives a gap that leaves at least half of the width to n pictures.
func bearable(gap, width float64, n int) float64 { return min(gap, width/2/float64(n+1)) }

func rowsPlan(lines [][]float64, width, gap float64) plan {
	for _, line := range lines {
		gap = bearable(gap, width, len(line))
	}
	var p plan
	y := gap
	for _, line := range lines {
		height := (width - gap*float64(len(line)+1)) / total(line)
		x := gap
		for _, shape := range line {
			p.add(x, y, height*shape, height)
			x += height*shape + gap
		}
		y += height + gap
	}
	return p.sized(width, y)
}

// columnsPlan makes all columns equally high and together as wide as the
// sheet: a column of width w is w*sum+gaps high, so the height follows.
func columnsPlan(lines [][]float64, width, gap float64) plan {
	gap = bearable(gap, width, len(lines))
	height := columnsHeight(lines, width, gap)
	for i := 0; i < len(lines); i++ {
		// A column of many flat pictures may be little but gaps: then all are
		// made smaller. Without any the share is fair.
		share := width / float64(4*len(lines))
		if gap > 0 && (height-gap*float64(len(lines[i])+1))/total(lines[i]) < min(share, height/total(lines[i])/2) {
			gap = math.Floor(gap / 2)
			height = columnsHeight(lines, width, gap)
			i = -1
		}
	}
	var p plan
	x := gap
	for _, line := range lines {
		w := (height - gap*float64(len(line)+1)) / total(line)
		y := gap
		for _, turned := range line {
			p.add(x, y, w, w*turned)
			y += w*turned + gap
		}
		x += w + gap
	}
	return p.sized(width, height)
}

// columnsHeight is how high the columns are when together they fill the width.
func columnsHeight(lines [][]float64, width, gap float64) float64 {
	space := width - gap
	slope := 0.0
	for _, line := range lines {
		space += gap*float64(len(line)+1)/total(line) - gap
		slope += 1 / total(line)
	}
	return space / slope
}

func (p *plan) add(x, y, w, h float64) {
	left := int(math.Round(x))
	top := int(math.Round(y))
	p.places = append(p.places, image.Rect(left, top, max(int(math.Round(x+w)), left+1), max(int(math.Round(y+h)), top+1)))
}

// sized gives the sheet its size; rounding must push no picture over the edge.
func (p plan) sized(w, h float64) plan {
	p.w = int(math.Round(w))
	p.h = int(math.Round(h))
	for _, r := range p.places {
		p.w = max(p.w, r.Max.X)
		p.h = max(p.h, r.Max.Y)
	}
	return p
}

// split breaks the pictures into lines, in order, such that the sheet comes
// out about as wide as want times its height and the lines are about equally
// full. Two pictures or more make at least two lines.
func split(shapes []float64, want float64) [][]float64 {
	best := math.Inf(1)
	found := [][]float64{shapes}
	for n := min(2, len(shapes)); n <= len(shapes); n++ {
		lines := balanced(shapes, n)
		var height float64
		for _, line := range lines {
			height += 1 / total(line)
		}
		if off := math.Abs(math.Log(1 / height / want)); off < best {
			best = off
			found = lines
		}
	}
	return found
}

// balanced breaks the pictures into n lines whose sums differ least.
func balanced(shapes []float64, n int) [][]float64 {
	fair := total(shapes) / float64(n)
	// cost[k][i] is the least sum of squares for the first i pictures in k lines.
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
				off := total(shapes[j:i]) - fair
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

func total(line []float64) float64 {
	var sum float64
	for _, s := range line {
		sum += s
	}
	return sum
}
