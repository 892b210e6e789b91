package imageengine

import (
	"context"
	"image"
	"math"
	"math/rand/v2"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// pattern: motif, scale, size. Every motif is drawn on a torus: whole numbers
// of cells lie across and down, and the cells count modulo those numbers, so
// copies of the picture fit side by side.
func pattern(ctx context.Context, t task, s engine.Span, seed uint32) (pixels.Picture, error) {
	w, h, err := t.size("size", 1024, 1024)
	if err != nil {
		return pixels.Picture{}, err
	}
	g := newGrid(w, h, t.Number("scale", 8, 2, 256), seed)
	r := random(seed)
	var at func(u, v float64) rgb
	switch t.text("motif", "truchet") {
	case "truchet":
		at = g.truchet(r)
	case "cells":
		at = g.cells(r)
	case "waves":
		at = g.waves(r)
	case "clouds":
		at = g.clouds(r)
	default:
		return pixels.Picture{}, engine.ErrSetup
	}
	table := light()
	if err := t.reserve(ctx, 0, int64(w)*int64(h)); err != nil {
		return pixels.Picture{}, err
	}
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	err = pixels.Rows(ctx, s, h, func(y int) {
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

// grid divides a picture into cells, as many along the shorter side as the
// scale says and as near to squares as whole numbers allow.
type grid struct {
	nx, ny         int
	pixelU, pixelV float64 // a pixel, in cells
	seed           uint32
}

func newGrid(w, h int, scale float64, seed uint32) grid {
	short := float64(min(w, h))
	n := func(side int) int { return int(max(math.Round(scale*float64(side)/short), 1)) }
	g := grid{nx: n(w), ny: n(h), seed: seed}
	g.pixelU = float64(g.nx) / float64(w)
	g.pixelV = float64(g.ny) / float64(h)
	return g
}

// roll is a random number for a cell of a torus of nx by ny cells.
func roll(seed uint32, x, y, nx, ny int) uint32 {
	return scatter(seed, uint32(wrap(x, nx)), uint32(wrap(y, ny)))
}

func wrap(i, n int) int {
	if i %= n; i < 0 {
		i += n
	}
	return i
}

// cover is how much of a pixel lies within a line's edge.
func cover(inside, pixel float64) float32 {
	return float32(min(max(inside/pixel+0.5, 0), 1))
}

// truchet draws two quarter circles in each cell, turned one way or the other.
// They end in the middle of the sides, so every turn fits.
func (g grid) truchet(r *rand.Rand) func(u, v float64) rgb {
	const band, core = 0.19, 0.07
	c := harmony(r, 3)
	if r.IntN(2) == 0 {
		c[0], c[2] = c[2], c[0]
	}
	ground := c[0].rgb()
	ribbon := c[1].rgb()
	line := c[2].rgb()
	pixel := (g.pixelU + g.pixelV) / 2
	return func(u, v float64) rgb {
		i := math.Floor(u)
		j := math.Floor(v)
		a := u - i
		b := v - j
		if roll(g.seed, int(i), int(j), g.nx, g.ny)&1 == 1 {
			a = 1 - a
		}
		d := min(math.Abs(math.Hypot(a, b)-0.5), math.Abs(math.Hypot(1-a, 1-b)-0.5))
		return ground.mix(ribbon, cover(band-d, pixel)).mix(line, cover(core-d, pixel))
	}
}

// cells draws what lies nearest to each of many points (a Voronoi diagram),
// with a gap between neighbours.
func (g grid) cells(r *rand.Rand) func(u, v float64) rgb {
	const gap = 0.045
	c := harmony(r, 4)
	gaps := polar(0.16+0.05*r.Float64(), 0.03, r.Float64()).rgb()
	if r.IntN(2) == 0 {
		gaps = polar(0.97, 0.01, r.Float64()).rgb()
	}
	type seat struct {
		x, y         float64
		centre, edge rgb
	}
	seats := make([]seat, g.nx*g.ny)
	for i := range seats {
		x := i % g.nx
		y := i / g.nx
		colour := c[roll(g.seed^1, x, y, g.nx, g.ny)%uint32(len(c))]
		colour.l = min(max(colour.l+0.08*(r.Float64()-0.5), 0), 1)
		bright := colour
		dim := colour
		bright.l = min(bright.l+0.05, 1)
		dim.l = max(dim.l-0.05, 0)
		seats[i] = seat{0.1 + 0.8*r.Float64(), 0.1 + 0.8*r.Float64(), bright.rgb(), dim.rgb()}
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
			line := wrap(j+dy, g.ny) * g.nx
			for dx := -2; dx <= 2; dx++ {
				s := &seats[line+wrap(i+dx, g.nx)]
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
		// The distance to the line that is equally far from both.
		apart := math.Hypot(second.x-first.x, second.y-first.y)
		border := (second.d2 - first.d2) / (2 * apart)
		body := mine.centre.mix(mine.edge, float32(min(math.Sqrt(first.d2)*1.2, 1)))
		return gaps.mix(body, cover(border-gap, pixel))
	}
}

// waves draws bands that swing up and down a whole number of times.
func (g grid) waves(r *rand.Rand) func(u, v float64) rgb {
	c := harmony(r, 4)
	bands := make([][2]rgb, max(g.ny, 2))
	last := -1
	for i := range bands {
		k := r.IntN(len(c))
		for k == last || i == len(bands)-1 && i > 0 && c[k].rgb() == bands[0][0] {
			k = (k + 1) % len(c)
		}
		last = k
		dim := c[k]
		dim.l = max(dim.l-0.10, 0)
		bands[i] = [2]rgb{c[k].rgb(), dim.rgb()}
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
		this := bands[wrap(int(i), len(bands))]
		before := bands[wrap(int(i)-1, len(bands))]
		// The first pixel of a band still shows some of the one before.
		return before[1].mix(this[0].mix(this[1], float32(t)), min(float32(t/max(pixel, 1e-9)), 1))
	}
}

// clouds draws noise of several sizes (fractal gradient noise), bent by noise
// of its own.
func (g grid) clouds(r *rand.Rand) func(u, v float64) rgb {
	const octaves, bend = 6, 0.25
	way := newRamp(harmony(r, 3))
	return func(u, v float64) rgb {
		du := g.noise(u, v, 1, g.seed^0x51)
		dv := g.noise(u, v, 1, g.seed^0x52)
		u = u + bend*du
		v = v + bend*dv
		var sum float64
		height := 0.5
		fine := 1
		for k := range octaves {
			if k > 1 && float64(fine)*g.pixelU > 0.5 {
				break // finer than pixels is only noise
			}
			sum += height * g.noise(u, v, fine, g.seed+uint32(k))
			height = height / 2
			fine = fine * 2
		}
		return way.at(0.5 + 1.3*sum).rgb()
	}
}

// noise is gradient noise with fine cells in each cell of the grid, from about
// -1 to 1.
func (g grid) noise(u, v float64, fine int, seed uint32) float64 {
	u = u * float64(fine)
	v = v * float64(fine)
	i := math.Floor(u)
	j := math.Floor(v)
	a := u - i
	b := v - j
	left := uint32(wrap(int(i), g.nx*fine))
	top := uint32(wrap(int(j), g.ny*fine))
	right := uint32(wrap(int(i)+1, g.nx*fine))
	bottom := uint32(wrap(int(j)+1, g.ny*fine))
	x := fade(a)
	y := fade(b)
	upper := slope(seed, left, top, a, b)
	upper += x * (slope(seed, right, top, a-1, b) - upper)
	lower := slope(seed, left, bottom, a, b-1)
	lower += x * (slope(seed, right, bottom, a-1, b-1) - lower)
	return 1.4 * (upper + y*(lower-upper))
}

// slope is the height at (a,b) of the slanted plane through a corner.
func slope(seed, x, y uint32, a, b float64) float64 {
	d := &directions[scatter(seed, x, y)>>26]
	return d[0]*a + d[1]*b
}

func fade(t float64) float64 { return t * t * t * (t*(t*6-15) + 10) }

// directions are 64 steps round a circle.
var directions = func() (d [64][2]float64) {
	for i := range d {
		d[i][1], d[i][0] = math.Sincos(2 * math.Pi * float64(i) / float64(len(d)))
	}
	return d
}()
