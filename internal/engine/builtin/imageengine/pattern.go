package imageengine

import (
	"context"
	"image"
	"math"
	"math/rand/v2"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// drawPattern draws a seamless pattern. Its inputs are motif, scale and size.
// Copies of the picture fit side by side, because each motif consists of whole
// numbers of cells across and down, and cell indices wrap around at the edges.
func drawPattern(ctx context.Context, t task, s engine.Span, seed uint32) (pixels.Picture, error) {
	w, h, err := t.sizeInput("size", 1024, 1024)
	if err != nil {
		return pixels.Picture{}, err
	}
	g := newCellGrid(w, h, t.NumberInput("scale", 8, 2, 256), seed)
	r := newRandom(seed)
	var at func(u, v float64) rgb
	switch t.textInput("motif", "truchet") {
	case "truchet":
		at = g.truchetMotif(r)
	case "cells":
		at = g.cellsMotif(r)
	case "waves":
		at = g.wavesMotif(r)
	case "clouds":
		at = g.cloudsMotif(r)
	default:
		return pixels.Picture{}, engine.ErrMisconfigured
	}
	table := linearTables()
	if err := t.reserveMemory(ctx, 0, int64(w)*int64(h)); err != nil {
		return pixels.Picture{}, err
	}
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	err = pixels.EachRow(ctx, s, h, func(y int) {
		pix := m.Pix[y*m.Stride:][:4*w]
		v := (float64(y) + 0.5) * g.pixelV
		for x := range w {
			c := at((float64(x)+0.5)*g.pixelU, v)
			p := pix[4*x:][:4]
			p[0] = table.encodedByte(c.r)
			p[1] = table.encodedByte(c.g)
			p[2] = table.encodedByte(c.b)
			p[3] = 255
		}
	})
	return pixels.Picture{NRGBA: m, Format: pixels.PNG}, err
}

// cellGrid divides a picture into cells that are as square as whole numbers
// allow. The scale is the number of cells along the shorter side.
type cellGrid struct {
	nx, ny         int
	pixelU, pixelV float64 // width and height of a pixel, in cells
	seed           uint32
}

func newCellGrid(w, h int, scale float64, seed uint32) cellGrid {
	short := float64(min(w, h))
	n := func(side int) int { return int(max(math.Round(scale*float64(side)/short), 1)) }
	g := cellGrid{nx: n(w), ny: n(h), seed: seed}
	g.pixelU = float64(g.nx) / float64(w)
	g.pixelV = float64(g.ny) / float64(h)
	return g
}

// hashWrapped returns a pseudo-random number for a cell of a grid of nx by ny
// cells that wraps around at the edges.
func hashWrapped(seed uint32, x, y, nx, ny int) uint32 {
	return hashCell(seed, uint32(wrapIndex(x, nx)), uint32(wrapIndex(y, ny)))
}

func wrapIndex(i, n int) int {
	if i %= n; i < 0 {
		i += n
	}
	return i
}

// edgeCoverage returns the fraction of a pixel that a shape covers. inside is
// the distance from the shape's edge to the pixel's centre, positive inside the
// shape; pixel is the size of a pixel.
func edgeCoverage(inside, pixel float64) float32 {
	return float32(min(max(inside/pixel+0.5, 0), 1))
}

// truchetMotif draws two quarter circles in each cell, in one of two
// orientations. They end at the middle of the cell's sides, so cells of both
// orientations connect.
func (g cellGrid) truchetMotif(r *rand.Rand) func(u, v float64) rgb {
	const band, core = 0.19, 0.07
	c := chooseHarmony(r, 3)
	if r.IntN(2) == 0 {
		c[0], c[2] = c[2], c[0]
	}
	ground := c[0].linearRGB()
	ribbon := c[1].linearRGB()
	line := c[2].linearRGB()
	pixel := (g.pixelU + g.pixelV) / 2
	return func(u, v float64) rgb {
		i := math.Floor(u)
		j := math.Floor(v)
		a := u - i
		b := v - j
		if hashWrapped(g.seed, int(i), int(j), g.nx, g.ny)&1 == 1 {
			a = 1 - a
		}
		d := min(math.Abs(math.Hypot(a, b)-0.5), math.Abs(math.Hypot(1-a, 1-b)-0.5))
		return ground.mixWith(ribbon, edgeCoverage(band-d, pixel)).mixWith(line, edgeCoverage(core-d, pixel))
	}
}

// cellsMotif draws a Voronoi diagram of random points with gaps between the cells.
func (g cellGrid) cellsMotif(r *rand.Rand) func(u, v float64) rgb {
	const gap = 0.045
	c := chooseHarmony(r, 4)
	gaps := labFromPolar(0.16+0.05*r.Float64(), 0.03, r.Float64()).linearRGB()
	if r.IntN(2) == 0 {
		gaps = labFromPolar(0.97, 0.01, r.Float64()).linearRGB()
	}
	type seat struct {
		x, y         float64
		centre, edge rgb
	}
	seats := make([]seat, g.nx*g.ny)
	for i := range seats {
		x := i % g.nx
		y := i / g.nx
		colour := c[hashWrapped(g.seed^1, x, y, g.nx, g.ny)%uint32(len(c))]
		colour.l = min(max(colour.l+0.08*(r.Float64()-0.5), 0), 1)
		bright := colour
		dim := colour
		bright.l = min(bright.l+0.05, 1)
		dim.l = max(dim.l-0.05, 0)
		seats[i] = seat{0.1 + 0.8*r.Float64(), 0.1 + 0.8*r.Float64(), bright.linearRGB(), dim.linearRGB()}
	}
	pixel := (g.pixelU + g.pixelV) / 2
	return func(u, v float64) rgb {
		i := int(math.Floor(u))
		j := int(math.Floor(v))
		type near struct{ d2, x, y float64 }
		first := near{d2: math.Inf(1)}
		second := near{d2: math.Inf(1)}
		var mine *seat
		for dy := -2; dy <= 2; dy++ {
			line := wrapIndex(j+dy, g.ny) * g.nx
			for dx := -2; dx <= 2; dx++ {
				s := &seats[line+wrapIndex(i+dx, g.nx)]
				n := near{x: float64(i+dx) + s.x - u, y: float64(j+dy) + s.y - v}
				n.d2 = n.x*n.x + n.y*n.y
				switch {
				case n.d2 < first.d2:
					second = first
					first = n
					mine = s
				case n.d2 < second.d2:
					second = n
				}
			}
		}
		// The distance to the border between the two cells, which is equally
		// far from both points.
		apart := math.Hypot(second.x-first.x, second.y-first.y)
		border := (second.d2 - first.d2) / (2 * apart)
		body := mine.centre.mixWith(mine.edge, float32(min(math.Sqrt(first.d2)*1.2, 1)))
		return gaps.mixWith(body, edgeCoverage(border-gap, pixel))
	}
}

// wavesMotif draws wavy bands. The number of waves across the picture is whole,
// so that copies fit together.
func (g cellGrid) wavesMotif(r *rand.Rand) func(u, v float64) rgb {
	c := chooseHarmony(r, 4)
	bands := make([][2]rgb, max(g.ny, 2))
	last := -1
	for i := range bands {
		k := r.IntN(len(c))
		for k == last || i == len(bands)-1 && i > 0 && c[k].linearRGB() == bands[0][0] {
			k = (k + 1) % len(c)
		}
		last = k
		dim := c[k]
		dim.l = max(dim.l-0.10, 0)
		bands[i] = [2]rgb{c[k].linearRGB(), dim.linearRGB()}
	}
	type swing struct{ height, along, down, phase float64 }
	swings := make([]swing, 3)
	for i := range swings {
		turns := max(math.Round(float64(g.nx)/float64(5-i)*(0.7+0.6*r.Float64())), 1)
		swings[i] = swing{
			height: 0.55 / float64(i*i+1),
			along:  2 * math.Pi * turns / float64(g.nx),
			down:   2 * math.Pi * float64(r.IntN(3)-1) / float64(g.ny),
			phase:  2 * math.Pi * r.Float64(),
		}
	}
	stretch := float64(len(bands)) / float64(g.ny)
	return func(u, v float64) rgb {
		f := v * stretch
		slopeU := 0.0
		slopeV := stretch
		for _, s := range swings {
			sin, cos := math.Sincos(s.along*u + s.down*v + s.phase)
			f += s.height * sin
			slopeU += s.height * s.along * cos
			slopeV += s.height * s.down * cos
		}
		pixel := math.Hypot(slopeU*g.pixelU, slopeV*g.pixelV)
		i := math.Floor(f)
		t := f - i
		this := bands[wrapIndex(int(i), len(bands))]
		before := bands[wrapIndex(int(i)-1, len(bands))]
		// The first pixel of a band blends with the previous band.
		return before[1].mixWith(this[0].mixWith(this[1], float32(t)), min(float32(t/max(pixel, 1e-9)), 1))
	}
}

// cloudsMotif draws fractal gradient noise, distorted by further noise.
func (g cellGrid) cloudsMotif(r *rand.Rand) func(u, v float64) rgb {
	const octaves, bend = 6, 0.25
	way := newColourRamp(chooseHarmony(r, 3))
	return func(u, v float64) rgb {
		du := g.gradientNoise(u, v, 1, g.seed^0x51)
		dv := g.gradientNoise(u, v, 1, g.seed^0x52)
		u = u + bend*du
		v = v + bend*dv
		var sum float64
		height := 0.5
		fine := 1
		for k := range octaves {
			if k > 1 && float64(fine)*g.pixelU > 0.5 {
				break // details smaller than a pixel would only add noise
			}
			sum += height * g.gradientNoise(u, v, fine, g.seed+uint32(k))
			height = height / 2
			fine = fine * 2
		}
		return way.colourAt(0.5 + 1.3*sum).linearRGB()
	}
}

// gradientNoise returns gradient noise at a point, from about -1 to 1. Each
// cell of the grid is divided into fine×fine noise cells.
func (g cellGrid) gradientNoise(u, v float64, fine int, seed uint32) float64 {
	u = u * float64(fine)
	v = v * float64(fine)
	i := math.Floor(u)
	j := math.Floor(v)
	a := u - i
	b := v - j
	left := uint32(wrapIndex(int(i), g.nx*fine))
	top := uint32(wrapIndex(int(j), g.ny*fine))
	right := uint32(wrapIndex(int(i)+1, g.nx*fine))
	bottom := uint32(wrapIndex(int(j)+1, g.ny*fine))
	x := smoothStep(a)
	y := smoothStep(b)
	upper := cornerSlope(seed, left, top, a, b)
	upper += x * (cornerSlope(seed, right, top, a-1, b) - upper)
	lower := cornerSlope(seed, left, bottom, a, b-1)
	lower += x * (cornerSlope(seed, right, bottom, a-1, b-1) - lower)
	return 1.4 * (upper + y*(lower-upper))
}

// cornerSlope returns the height at (a,b), relative to a corner of a noise
// cell, of a plane through the corner with a pseudo-random slope.
func cornerSlope(seed, x, y uint32, a, b float64) float64 {
	d := &directions[hashCell(seed, x, y)>>26]
	return d[0]*a + d[1]*b
}

func smoothStep(t float64) float64 { return t * t * t * (t*(t*6-15) + 10) }

// directions are 64 unit vectors, evenly spaced around the circle.
var directions = func() (d [64][2]float64) {
	for i := range d {
		d[i][1], d[i][0] = math.Sincos(2 * math.Pi * float64(i) / float64(len(d)))
	}
	return d
}()
