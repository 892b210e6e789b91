package imageengine

import (
	"context"
	"image"
	"math"

	"golang.org/x/image/draw"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// lanczos is the sharpest of the usual filters, for enlarging.
var lanczos = &draw.Kernel{Support: 3, At: func(t float64) float64 {
	if t == 0 {
		return 1
	}
	x := math.Pi * t
	return 3 * math.Sin(x) * math.Sin(x/3) / (x * x)
}}

// area is a part of a picture, in pixels and fractions of them.
type area struct{ x, y, w, h float64 }

func whole(m *image.NRGBA) area {
	return area{w: float64(m.Rect.Dx()), h: float64(m.Rect.Dy())}
}

// taps are the source pixels that one pixel of a result is made of.
type taps struct {
	first   int
	weights []float32
}

// filter gives the taps for n pixels over the part of a line from start on.
func filter(k *draw.Kernel, start, length float64, n, line int) []taps {
	step := length / float64(n)
	wide := max(step, 1) // a smaller result averages more pixels
	all := make([]taps, n)
	for i := range all {
		centre := start + (float64(i)+0.5)*step - 0.5
		first := max(int(math.Ceil(centre-k.Support*wide)), 0)
		last := min(int(math.Floor(centre+k.Support*wide)), line-1)
		// At the far ends no pixel may be in reach but the last one.
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
		all[i] = taps{first, weights}
	}
	return all
}

// scale draws a part of a picture into a new one of w by h pixels.
//
// It is the scaler of x/image/draw with four differences: it can be ended, it
// uses all cores, it holds only the rows that it is at, and it makes pictures
// smaller in linear light, so that fine detail keeps its brightness. Enlarging
// in linear light would draw dark rings round bright spots, so that is done on
// the stored values.
func scale(ctx context.Context, s engine.Span, k *draw.Kernel, src *image.NRGBA, part area, w, h int) (*image.NRGBA, error) {
	dst := image.NewNRGBA(image.Rect(0, 0, w, h))
	sw := src.Rect.Dx()
	sh := src.Rect.Dy()
	if part == whole(src) && w == sw && h == sh {
		for y := range h {
			copy(dst.Pix[y*dst.Stride:], src.Pix[y*src.Stride:][:4*w])
		}
		s.At(1)
		return dst, ctx.Err()
	}
	across := filter(k, part.x, part.w, w, sw)
	down := filter(k, part.y, part.h, h, sh)
	t := light()
	values := &t.plain
	linear := part.w > float64(w) || part.h > float64(h)
	if linear {
		values = &t.linear
	}
	// Each band makes the rows of the source at its ends once more, so it must
	// not be small.
	err := bands(ctx, s, h, 48, func(from, to int) {
		ring := newRing(down[from:to], w)
		line := make([]float32, 4*sw)
		row := make([]float32, 4*w)
		for y := from; y < to && ctx.Err() == nil; y++ {
			clear(row)
			for j, weight := range down[y].weights {
				from := ring.row(down[y].first+j, func(into []float32, sy int) {
					premultiply(line, src.Pix[sy*src.Stride:][:4*sw], values)
					narrow(into, line, across)
				})
				for i, v := range from {
					row[i] += weight * v
				}
			}
			store(dst.Pix[y*dst.Stride:][:4*w], row, t, linear)
		}
	})
	return dst, err
}

// ring holds the rows of the source that are in use, already at the width of
// the result.
type ring struct {
	rows [][]float32
	held []int // which row lies where
}

func newRing(down []taps, width int) *ring {
	n := 1
	for _, t := range down {
		n = max(n, len(t.weights))
	}
	r := &ring{make([][]float32, n), make([]int, n)}
	for i := range r.rows {
		r.rows[i] = make([]float32, 4*width)
		r.held[i] = -1
	}
	return r
}

func (r *ring) row(y int, fill func(into []float32, y int)) []float32 {
	slot := y % len(r.rows)
	if r.held[slot] != y {
		fill(r.rows[slot], y)
		r.held[slot] = y
	}
	return r.rows[slot]
}

// premultiply keeps transparent pixels, whose colour nobody sees, from
// bleeding into their neighbours.
func premultiply(into []float32, pix []uint8, values *[256]float32) {
	for i := 0; i < len(pix); i += 4 {
		a := float32(pix[i+3]) / 255
		into[i] = values[pix[i]] * a
		into[i+1] = values[pix[i+1]] * a
		into[i+2] = values[pix[i+2]] * a
		into[i+3] = a
	}
}

func narrow(into, line []float32, across []taps) {
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

func store(pix []uint8, row []float32, t *tables, linear bool) {
	for i := 0; i < len(pix); i += 4 {
		a := row[i+3] // the filter may swing over 1, and the colours with it
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
				pix[i+c] = pixels.Byte(v * 255)
			}
		}
		pix[i+3] = pixels.Byte(a * 255)
	}
}
