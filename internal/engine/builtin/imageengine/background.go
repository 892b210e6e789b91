package imageengine

import (
	"image"
	"image/color"
	"math"
	"slices"

	"atelier/internal/engine"
)

// backgroundTerms is the number of terms of the polynomial that models the
// colour of a background: a constant, a slope in each direction, and three
// quadratic terms for light that fades towards one side.
const backgroundTerms = 6

// backgroundModel computes the colour of a plain background at every point, in
// Oklab.
type backgroundModel struct {
	w, h      float64
	l         [backgroundTerms]float64
	a         [backgroundTerms]float64
	b         [backgroundTerms]float64
	deviation float64 // median colour distance of background pixels from the model
	step      float32 // largest difference in brightness between nearby pixels that is not an edge, in 8-bit levels
}

var errNotPlain = engine.Fail(engine.Failed, "The background is not plain: its border has several colours. This tool needs one colour all around the subject.")

var errNoBackground = engine.Fail(engine.Failed, "The picture has no background to remove: its border is transparent.")

// borderSample is the colour of a pixel near the picture's border and the
// values of the model's terms at that pixel.
type borderSample struct {
	basis [backgroundTerms]float64
	lab
}

// learnBackground determines the background's colour from the border of the
// picture. The subject may cover a part of the border.
func learnBackground(m *image.NRGBA) (*backgroundModel, error) {
	const (
		// enough is the fraction of the border that must be background.
		enough = 0.6
		// rough is the largest allowed median deviation from the model.
		rough = 0.03
	)
	w := &backgroundModel{w: float64(m.Rect.Dx()), h: float64(m.Rect.Dy())}
	border, hidden := w.borderSamples(m)
	if hidden > len(border) {
		return nil, errNoBackground
	}
	// Start with the median colour. Each further fit uses only samples near the
	// previous fit, and may have more terms.
	w.l[0], w.a[0], w.b[0] = medianColour(border)
	for _, round := range []struct {
		terms int
		trust float64
	}{{1, 0.25}, {3, 0.20}, {3, 0.12}, {backgroundTerms, 0.10}, {backgroundTerms, 0.08}} {
		w.fitTerms(border, round.terms, round.trust)
	}
	const limit = 0.08
	var trusted []float64
	for i := range border {
		if d := border[i].colourDistance(w.colourAt(border[i].basis)); d < limit {
			trusted = append(trusted, d)
		}
	}
	if float64(len(trusted)) < enough*float64(len(border)) {
		return nil, errNotPlain
	}
	slices.Sort(trusted)
	if w.deviation = trusted[len(trusted)/2]; w.deviation > rough {
		return nil, errNotPlain
	}
	w.step = 5 + float32(6*255*w.deviation)
	return w, nil
}

// borderSamples returns a sample of the pixels near the border, and the number
// of transparent pixels that it skipped.
func (w *backgroundModel) borderSamples(m *image.NRGBA) (all []borderSample, hidden int) {
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
			all = append(all, borderSample{basis: w.basisAt(x, y), lab: labOf(c)})
		}
	}
	if len(all) == 0 && hidden == 0 { // the border has fewer pixels than one step
		all = append(all, borderSample{basis: w.basisAt(0, 0), lab: labOf(m.NRGBAAt(0, 0))})
	}
	return all, hidden
}

func (w *backgroundModel) basisAt(x, y int) [backgroundTerms]float64 {
	u := 2*(float64(x)+0.5)/w.w - 1
	v := 2*(float64(y)+0.5)/w.h - 1
	return [backgroundTerms]float64{1, u, v, u * u, u * v, v * v}
}

func (w *backgroundModel) colourAt(basis [backgroundTerms]float64) (c lab) {
	for i, v := range basis {
		c.l += v * w.l[i]
		c.a += v * w.a[i]
		c.b += v * w.b[i]
	}
	return c
}

// colourDistance returns the distance of two colours in Oklab, with differences
// in hue and chroma doubled: they are small numbers in Oklab, and on a
// background the brightness varies more than the hue.
func (c lab) colourDistance(d lab) float64 {
	l := c.l - d.l
	a := 2 * (c.a - d.a)
	b := 2 * (c.b - d.b)
	return math.Sqrt(l*l + a*a + b*b)
}

func medianColour(all []borderSample) (l, a, b float64) {
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

// fitTerms fits the first n terms by least squares to the samples whose
// distance from the current model is at most trust.
func (w *backgroundModel) fitTerms(all []borderSample, n int, trust float64) {
	matrix := make([]float64, n*n)
	right := [3][]float64{make([]float64, n), make([]float64, n), make([]float64, n)}
	for k := range all {
		s := &all[k]
		if s.colourDistance(w.colourAt(s.basis)) > trust {
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
		return // no sample is near the model, so no later fit could find any
	}
	for i := 1; i < n; i++ {
		matrix[i*n+i] += 1e-3 * matrix[0] // regularization: terms that the border does not determine stay small
	}
	choleskyRoot(matrix, n)
	for c, into := range []*[backgroundTerms]float64{&w.l, &w.a, &w.b} {
		solveCholesky(matrix, n, right[c])
		copy(into[:], right[c])
	}
}

// classifyRow sets the state of each pixel of a row by its similarity to the
// background.
//
// A pixel beyond the tolerance still counts as background if only its
// brightness differs and there is no edge, as in a soft shadow.
func (w *backgroundModel) classifyRow(m *image.NRGBA, y int, tolerance float64, into []uint8) {
	const shadow = 3 // tolerance for differences in brightness alone, as a multiple of the general tolerance
	bound := tolerance + 2*w.deviation
	stride := m.Stride
	for x := range into {
		p := m.Pix[y*stride+4*x:][:4]
		if p[3] < 8 {
			into[x] = exact
			continue
		}
		c := labOf(color.NRGBA{p[0], p[1], p[2], 255})
		d := w.colourAt(w.basisAt(x, y))
		switch far := c.colourDistance(d); {
		case far < 0.6*bound:
			into[x] = exact
		case far < bound:
			into[x] = like
		case far < shadow*bound && 2*math.Hypot(c.a-d.a, c.b-d.b) < 0.6*bound && w.isSmooth(m, x, y):
			into[x] = like
		}
	}
}

// isSmooth reports whether brightness changes little around a pixel, so that
// there is no edge.
func (w *backgroundModel) isSmooth(m *image.NRGBA, x, y int) bool {
	at := func(x, y int) float32 {
		return lumaOf(m.Pix[min(max(y, 0), m.Rect.Dy()-1)*m.Stride+4*min(max(x, 0), m.Rect.Dx()-1):])
	}
	across := at(x+2, y) - at(x-2, y)
	down := at(x, y+2) - at(x, y-2)
	return across*across+down*down < w.step*w.step
}
