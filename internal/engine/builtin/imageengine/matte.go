package imageengine

import (
	"context"
	"image"
	"math"

	"atelier/internal/engine"
)

// edgeWidth is the width in pixels, measured inwards from the subject's
// outline, of the zone in which an edge may be blurred.
const edgeWidth = 4

// applyMatte sets the alpha of the picture to 1 inside the subject and 0
// outside. Pixels at the edge are treated as blends of the nearby subject
// colour and the background colour. Only the subject's part of the blend is
// kept, so that no rim of the old background shows on a new one. soften is the
// approximate number of additional pixels over which the edge fades.
func applyMatte(ctx context.Context, s engine.Span, m *image.NRGBA, area []uint8, soften float64) error {
	w := m.Rect.Dx()
	h := m.Rect.Dy()
	reach := edgeWidth + int(math.Ceil(soften))
	behind := newBackgroundGrid(m, area)
	depth := edgeDepths(area, w, h) // area is not used after this line
	if err := ctx.Err(); err != nil {
		return err
	}
	s.ReportProgress(0.1)
	e := edgeUnmixer{m: m, depth: depth, behind: behind, reach: reach}
	kernel := []float32{1}
	if soften > 0 {
		kernel = gaussKernel(soften / 2)
	}
	// The picture is processed in strips, as in sharpenPicture: pixels are
	// changed in place only after all computations that read them.
	const strip = 256
	margin := len(kernel)/2 + 1
	alphas := newBlock(w, min(strip+2*margin, h))
	colours := make([]uint8, 3*w*alphas.h)
	done := 0
	look := reach + 3
	for top := 0; top < h; top += strip {
		bottom := min(top+strip, h)
		part := s.SubSpan(0.1+0.9*float64(top)/float64(h), 0.1+0.9*float64(bottom)/float64(h))
		// The search for colours also reads rows that have already been
		// changed, so the original content of those rows is kept.
		first := done
		last := min(bottom+margin, h)
		done = last
		err := eachBand(ctx, part.SubSpan(0, 0.6), last-first, 8, func(from, to int) {
			for y := first + from; y < first+to; y++ {
				slot := y % alphas.h
				e.unmixRow(y, alphas.row(slot), colours[3*w*slot:][:3*w])
			}
		})
		if err != nil {
			return err
		}
		e.keepRows(bottom-look, bottom)
		err = eachBand(ctx, part.SubSpan(0.6, 1), bottom-top, 8, func(from, to int) {
			for y := top + from; y < top+to; y++ {
				e.writeRow(y, alphas, colours, kernel)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// edgeDepths returns the distance of each pixel from the subject's edge in
// pixels, from 1 at the edge up to 100. Distances of background pixels have
// backgroundDepth added.
func edgeDepths(area []uint8, w, h int) []uint8 {
	const maxDepth = 100
	at := func(i int) bool { return area[i] == ground }
	d := make([]uint8, len(area))
	for i := range d {
		d[i] = maxDepth
	}
	// Two passes of a chamfer distance transform in half pixels: 2 to a direct
	// neighbour, 3 to a diagonal one.
	relax := func(i, j int, step uint8) {
		if at(i) != at(j) {
			d[i] = min(d[i], step)
		} else if v := d[j] + step; v < d[i] {
			d[i] = v
		}
	}
	for y := range h {
		for x := range w {
			i := y*w + x
			if x > 0 {
				relax(i, i-1, 2)
			}
			if y > 0 {
				relax(i, i-w, 2)
				if x > 0 {
					relax(i, i-w-1, 3)
				}
				if x < w-1 {
					relax(i, i-w+1, 3)
				}
			}
		}
	}
	for y := h - 1; y >= 0; y-- {
		for x := w - 1; x >= 0; x-- {
			i := y*w + x
			if x < w-1 {
				relax(i, i+1, 2)
			}
			if y < h-1 {
				relax(i, i+w, 2)
				if x < w-1 {
					relax(i, i+w+1, 3)
				}
				if x > 0 {
					relax(i, i+w-1, 3)
				}
			}
		}
	}
	for i := range d {
		d[i] = (d[i] + 1) / 2
		if at(i) {
			d[i] += backgroundDepth
		}
	}
	return d
}

// backgroundDepth is the offset added to the depths of background pixels, which
// distinguishes them from pixels of the subject.
const backgroundDepth = 128

// backgroundGrid estimates the colour of the background everywhere, including
// behind the subject, in sRGB values.
type backgroundGrid struct {
	cell, w, h int
	colours    [][3]float32
}

// newBackgroundGrid computes the mean background colour in square cells of the
// picture. Cells with too little background get the mean colour of their
// neighbours.
func newBackgroundGrid(m *image.NRGBA, area []uint8) *backgroundGrid {
	w := m.Rect.Dx()
	h := m.Rect.Dy()
	b := &backgroundGrid{cell: max(max(w, h)/48, 8)}
	b.w = (w + b.cell - 1) / b.cell
	b.h = (h + b.cell - 1) / b.cell
	b.colours = make([][3]float32, b.w*b.h)
	sums := make([][4]float64, b.w*b.h)
	for y := range h {
		for x := range w {
			if area[y*w+x] != ground {
				continue
			}
			p := m.Pix[y*m.Stride+4*x:][:4]
			if p[3] < 8 {
				continue
			}
			to := &sums[y/b.cell*b.w+x/b.cell]
			to[0] += float64(p[0])
			to[1] += float64(p[1])
			to[2] += float64(p[2])
			to[3]++
		}
	}
	// A few pixels of background are mostly part of the subject's edge, so
	// their colour is not used.
	few := float64(b.cell*b.cell) / 16
	known := make([]bool, len(sums))
	left := 0
	for i, s := range sums {
		if s[3] > few {
			b.colours[i] = [3]float32{float32(s[0] / s[3]), float32(s[1] / s[3]), float32(s[2] / s[3])}
			known[i] = true
		} else {
			left++
		}
	}
	for grew := true; left > 0 && grew; {
		grew = false
		var found []int
		for i := range known {
			if known[i] {
				continue
			}
			var sum [3]float32
			n := float32(0)
			for _, j := range b.neighbourCells(i) {
				if known[j] {
					for c := range sum {
						sum[c] += b.colours[j][c]
					}
					n++
				}
			}
			if n > 0 {
				b.colours[i] = [3]float32{sum[0] / n, sum[1] / n, sum[2] / n}
				found = append(found, i)
			}
		}
		for _, i := range found {
			known[i] = true
			left--
			grew = true
		}
	}
	return b
}

func (b *backgroundGrid) neighbourCells(i int) []int {
	var all []int
	x := i % b.w
	y := i / b.w
	for dy := max(y-1, 0); dy <= min(y+1, b.h-1); dy++ {
		for dx := max(x-1, 0); dx <= min(x+1, b.w-1); dx++ {
			if dx != x || dy != y {
				all = append(all, dy*b.w+dx)
			}
		}
	}
	return all
}

// colourAt returns the background colour at a pixel, interpolated between the
// centres of the grid's cells.
func (b *backgroundGrid) colourAt(x, y int) (c [3]float32) {
	u := (float32(x)+0.5)/float32(b.cell) - 0.5
	v := (float32(y)+0.5)/float32(b.cell) - 0.5
	u = min(max(u, 0), float32(b.w-1))
	v = min(max(v, 0), float32(b.h-1))
	i := min(int(u), max(b.w-2, 0))
	j := min(int(v), max(b.h-2, 0))
	u = u - float32(i)
	v = v - float32(j)
	right := min(i+1, b.w-1)
	down := min(j+1, b.h-1)
	for k := range c {
		upper := b.colours[j*b.w+i][k]*(1-u) + b.colours[j*b.w+right][k]*u
		lower := b.colours[down*b.w+i][k]*(1-u) + b.colours[down*b.w+right][k]*u
		c[k] = upper*(1-v) + lower*v
	}
	return c
}
