package imageengine

import (
	"context"
	"image"
	"math"

	"golang.org/x/image/draw"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// lanczos is the Lanczos filter with three lobes, the sharpest of the usual
// filters. It is used for enlarging.
var lanczos = &draw.Kernel{Support: 3, At: func(t float64) float64 {
	if t == 0 {
		return 1
	}
	x := math.Pi * t
	return 3 * math.Sin(x) * math.Sin(x/3) / (x * x)
}}

// pictureArea is a rectangle within a picture. Its position and size are in
// pixels and may be fractional.
type pictureArea struct{ x, y, w, h float64 }

func wholeArea(m *image.NRGBA) pictureArea {
	return pictureArea{w: float64(m.Rect.Dx()), h: float64(m.Rect.Dy())}
}

// filterTaps are the weights of the source pixels from which one pixel of a
// result is computed. first is the index of the first source pixel.
type filterTaps struct {
	first   int
	weights []float32
}

// computeTaps returns the filter taps of the n pixels of a result row or
// column. The source begins at the position start and is length pixels long;
// line is the number of pixels of the whole source row or column.
func computeTaps(k *draw.Kernel, start, length float64, n, line int) []filterTaps {
	step := length / float64(n)
	wide := max(step, 1) // if the picture is reduced, each pixel averages more source pixels
	all := make([]filterTaps, n)
	for i := range all {
		centre := start + (float64(i)+0.5)*step - 0.5
		first := max(int(math.Ceil(centre-k.Support*wide)), 0)
		last := min(int(math.Floor(centre+k.Support*wide)), line-1)
		// Near the picture's border the filter may cover only the last pixel.
		first = min(first, line-1)
		last = max(last, 0)
		weights := make([]float32, max(last-first+1, 1))
		var sum float64
		for j := range weights {
			if d := math.Abs(centre-float64(first+j)) / wide; d < k.Support {
				w := k.At(d)
				weights[j] = float32(w)
				sum = sum + w
			}
		}
		if sum == 0 {
			weights[0] = 1
			sum = 1
		}
		for j := range weights {
			weights[j] /= float32(sum)
		}
		all[i] = filterTaps{first, weights}
	}
	return all
}

// scaleArea scales a part of a picture to w by h pixels.
//
// It differs from the scaler of x/image/draw in four ways: it can be cancelled,
// it uses all cores, it keeps only the rows in use in memory, and it reduces
// pictures in linear light, so that fine detail keeps its brightness. Enlarging
// uses stored values, because linear light would draw dark rings around bright
// spots.
func scaleArea(ctx context.Context, s engine.Span, k *draw.Kernel, src *image.NRGBA, part pictureArea, w, h int) (*image.NRGBA, error) {
	dst := image.NewNRGBA(image.Rect(0, 0, w, h))
	sw := src.Rect.Dx()
	sh := src.Rect.Dy()
	if part == wholeArea(src) && w == sw && h == sh {
		for y := range h {
			copy(dst.Pix[y*dst.Stride:], src.Pix[y*src.Stride:][:4*w])
		}
		s.ReportProgress(1)
		return dst, ctx.Err()
	}
	across := computeTaps(k, part.x, part.w, w, sw)
	down := computeTaps(k, part.y, part.h, h, sh)
	t := linearTables()
	values := &t.plain
	linear := part.w > float64(w) || part.h > float64(h)
	if linear {
		values = &t.linear
	}
	// Each band recomputes the source rows at its ends, so bands must not be
	// small.
	err := eachBand(ctx, s, h, 48, func(from, to int) {
		ring := newRowRing(down[from:to], w)
		line := make([]float32, 4*sw)
		row := make([]float32, 4*w)
		for y := from; y < to && ctx.Err() == nil; y++ {
			clear(row)
			for j, weight := range down[y].weights {
				from := ring.rowAt(down[y].first+j, func(into []float32, sy int) {
					premultiplyRow(line, src.Pix[sy*src.Stride:][:4*sw], values)
					filterRow(into, line, across)
				})
				for i, v := range from {
					row[i] += weight * v
				}
			}
			storeRow(dst.Pix[y*dst.Stride:][:4*w], row, t, linear)
		}
	})
	return dst, err
}

// rowRing caches the source rows in use, already scaled to the width of the
// result.
type rowRing struct {
	rows    [][]float32
	sources []int // index of the source row in each slot, -1 if empty
}

func newRowRing(down []filterTaps, width int) *rowRing {
	n := 1
	for _, t := range down {
		n = max(n, len(t.weights))
	}
	r := &rowRing{make([][]float32, n), make([]int, n)}
	for i := range r.rows {
		r.rows[i] = make([]float32, 4*width)
		r.sources[i] = -1
	}
	return r
}

func (r *rowRing) rowAt(y int, fill func(into []float32, y int)) []float32 {
	slot := y % len(r.rows)
	if r.sources[slot] != y {
		fill(r.rows[slot], y)
		r.sources[slot] = y
	}
	return r.rows[slot]
}

// premultiplyRow multiplies the colours of a row by alpha, so that invisible
// colours of transparent pixels do not bleed into their neighbours.
func premultiplyRow(into []float32, pix []uint8, values *[256]float32) {
	for i := 0; i < len(pix); i += 4 {
		a := float32(pix[i+3]) / 255
		into[i] = values[pix[i]] * a
		into[i+1] = values[pix[i+1]] * a
		into[i+2] = values[pix[i+2]] * a
		into[i+3] = a
	}
}

func filterRow(into, line []float32, across []filterTaps) {
	for x := range across {
		t := &across[x]
		var r, g, b, a float32
		from := line[4*t.first:][:4*len(t.weights)]
		for j, w := range t.weights {
			p := from[4*j:][:4]
			r += w * p[0]
			g += w * p[1]
			b += w * p[2]
			a += w * p[3]
		}
		to := into[4*x:][:4]
		to[0] = r
		to[1] = g
		to[2] = b
		to[3] = a
	}
}

func storeRow(pix []uint8, row []float32, t *colourTables, linear bool) {
	for i := 0; i < len(pix); i += 4 {
		a := row[i+3] // the filter may overshoot, so alpha and colours may exceed 1
		if a < 1.0/510 {
			pix[i] = 0
			pix[i+1] = 0
			pix[i+2] = 0
			pix[i+3] = 0
			continue
		}
		for c := range 3 {
			if v := row[i+c] / a; linear {
				pix[i+c] = t.encodedByte(v)
			} else {
				pix[i+c] = pixels.ClampByte(v * 255)
			}
		}
		pix[i+3] = pixels.ClampByte(a * 255)
	}
}
