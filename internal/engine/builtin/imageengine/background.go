package imageengine

import (
	"image"
	"image/color"
	"math"
	"slices"

	"atelier/internal/engine"
)

// terms are what the colour of a background may be made of: one colour, a
// slope each way, and the curves of light that falls off.
const terms = 6

// wall is a plain background: its colour at every place, in Oklab.
type wall struct {
	w, h  float64
	l     [terms]float64
	a     [terms]float64
	b     [terms]float64
	stray float64 // how far its pixels lie from that
	step  float32 // levels between neighbours that are no edge
}

var errNotPlain = engine.Fail(engine.Failed, "The background is not plain: along the border there are several colours. This tool needs one colour all round the subject.")

var errNoBackground = engine.Fail(engine.Failed, "The picture has no background to remove: its border is transparent.")

// sample is a pixel of the border.
type sample struct {
	basis [terms]float64
	lab
}

// learn finds the colour of the background from the border, of which the
// subject may cover a part.
func learn(m *image.NRGBA) (*wall, error) {
	const (
		// enough is how much of the border must be background.
		enough = 0.6
		// rough is how far the middle one of its pixels may stray.
		rough = 0.03
	)
	w := &wall{w: float64(m.Rect.Dx()), h: float64(m.Rect.Dy())}
	border, hidden := w.border(m)
	if hidden > len(border) {
		return nil, errNoBackground
	}
	// From the middle colour on, each fit trusts only what the last explains,
	// and may bend more.
	w.l[0], w.a[0], w.b[0] = middle(border)
	for _, round := range []struct {
		terms int
		trust float64
	}{{1, 0.25}, {3, 0.20}, {3, 0.12}, {terms, 0.10}, {terms, 0.08}} {
		w.fit(border, round.terms, round.trust)
	}
	const limit = 0.08
	var trusted []float64
	for i := range border {
		if d := border[i].distance(w.at(border[i].basis)); d < limit {
			trusted = append(trusted, d)
		}
	}
	if float64(len(trusted)) < enough*float64(len(border)) {
		return nil, errNotPlain
	}
	slices.Sort(trusted)
	if w.stray = trusted[len(trusted)/2]; w.stray > rough {
		return nil, errNotPlain
	}
	w.step = 5 + float32(6*255*w.stray)
	return w, nil
}

// border gives pixels along the border, and how many more are transparent.
func (w *wall) border(m *image.NRGBA) (all []sample, hidden int) {
	const most = 6000
	width := m.Rect.Dx()
	height := m.Rect.Dy()
	deep := min(max(min(width, height)/60, 1), 12)
	step := max(2*(width+height)*deep/most, 1)
	n := 0
	for y := range height {
		inside := y >= deep && y < height-deep
		for x := 0; x < width; x++ {
			if inside && x == deep {
				x = max(width-deep, deep)
				if x >= width {
					break
				}
			}
			if n++; n%step != 0 {
				continue
			}
			c := m.NRGBAAt(x, y)
			if c.A < 128 {
				hidden++
				continue
			}
			all = append(all, sample{basis: w.basis(x, y), lab: labOf(c)})
		}
	}
	if len(all) == 0 && hidden == 0 { // smaller than a step
		all = append(all, sample{basis: w.basis(0, 0), lab: labOf(m.NRGBAAt(0, 0))})
	}
	return all, hidden
}

func (w *wall) basis(x, y int) [terms]float64 {
	u := 2*(float64(x)+0.5)/w.w - 1
	v := 2*(float64(y)+0.5)/w.h - 1
	return [terms]float64{1, u, v, u * u, u * v, v * v}
}

func (w *wall) at(basis [terms]float64) (c lab) {
	for i, v := range basis {
		c.l += v * w.l[i]
		c.a += v * w.a[i]
		c.b += v * w.b[i]
	}
	return c
}

// distance counts colour twice: Oklab's steps of colour are small numbers, and
// the light on a wall changes more than its colour does.
func (c lab) distance(d lab) float64 {
	l := c.l - d.l
	a := 2 * (c.a - d.a)
	b := 2 * (c.b - d.b)
	return math.Sqrt(l*l + a*a + b*b)
}

func middle(all []sample) (l, a, b float64) {
	of := func(value func(lab) float64) float64 {
		list := make([]float64, len(all))
		for i := range all {
			list[i] = value(all[i].lab)
		}
		slices.Sort(list)
		return list[len(list)/2]
	}
	return of(func(c lab) float64 { return c.l }), of(func(c lab) float64 { return c.a }), of(func(c lab) float64 { return c.b })
}

// fit finds the terms that explain the samples that the terms so far explain
// up to trust (least squares).
func (w *wall) fit(all []sample, n int, trust float64) {
	matrix := make([]float64, n*n)
	right := [3][]float64{make([]float64, n), make([]float64, n), make([]float64, n)}
	for k := range all {
		s := &all[k]
		if s.distance(w.at(s.basis)) > trust {
			continue
		}
		for i := range n {
			for j := range n {
				matrix[i*n+j] += s.basis[i] * s.basis[j]
			}
			right[0][i] += s.basis[i] * s.l
			right[1][i] += s.basis[i] * s.a
			right[2][i] += s.basis[i] * s.b
		}
	}
	if matrix[0] == 0 {
		return // nothing is explained, and never will be
	}
	for i := 1; i < n; i++ {
		matrix[i*n+i] += 1e-3 * matrix[0] // what the border does not show stays small
	}
	cholesky(matrix, n)
	for c, into := range []*[terms]float64{&w.l, &w.a, &w.b} {
		substitute(matrix, n, right[c])
		copy(into[:], right[c])
	}
}

// compare tells how much a row of a picture is like the background.
//
// Beyond the tolerance, a pixel still is where only its light differs and does
// so softly, as in a shadow.
func (w *wall) compare(m *image.NRGBA, y int, tolerance float64, into []uint8) {
	const shadow = 3 // times the tolerance
	bound := tolerance + 2*w.stray
	stride := m.Stride
	for x := range into {
		p := m.Pix[y*stride+4*x:][:4]
		if p[3] < 8 {
			into[x] = exact
			continue
		}
		c := labOf(color.NRGBA{p[0], p[1], p[2], 255})
		d := w.at(w.basis(x, y))
		switch far := c.distance(d); {
		case far < 0.6*bound:
			into[x] = exact
		case far < bound:
			into[x] = like
		case far < shadow*bound && 2*math.Hypot(c.a-d.a, c.b-d.b) < 0.6*bound && w.smooth(m, x, y):
			into[x] = like
		}
	}
}

// smooth tells whether there is no edge at a pixel.
func (w *wall) smooth(m *image.NRGBA, x, y int) bool {
	at := func(x, y int) float32 {
		return luma(m.Pix[min(max(y, 0), m.Rect.Dy()-1)*m.Stride+4*min(max(x, 0), m.Rect.Dx()-1):])
	}
	across := at(x+2, y) - at(x-2, y)
	down := at(x, y+2) - at(x, y-2)
	return across*across+down*down < w.step*w.step
}
