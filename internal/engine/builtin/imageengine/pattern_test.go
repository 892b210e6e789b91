package imageengine_test

import (
	stdimage "image"
	"math"
	"slices"
	"testing"
)

var motifs = []string{"truchet", "cells", "waves", "clouds"}

// step is how much the picture changes from column x to the next, or to the
// first one after the last.
func step(m *stdimage.NRGBA, x int) float64 {
	var sum float64
	for y := range m.Rect.Dy() {
		row := m.Pix[y*m.Stride:]
		for c := range 3 {
			sum += math.Abs(float64(row[4*x+c]) - float64(row[4*((x+1)%m.Rect.Dx())+c]))
		}
	}
	return sum
}

// transposed turns a picture over, so that rows become columns.
func transposed(m *stdimage.NRGBA) *stdimage.NRGBA {
	t := stdimage.NewNRGBA(stdimage.Rect(0, 0, m.Rect.Dy(), m.Rect.Dx()))
	for y := range m.Rect.Dy() {
		for x := range m.Rect.Dx() {
			t.SetNRGBA(y, x, m.NRGBAAt(x, y))
		}
	}
	return t
}

// TestPatternsAreSeamless compares the step over the seam with those within:
// a seam would stand out. That the motifs repeat exactly is tested inside.
func TestPatternsAreSeamless(t *testing.T) {
	t.Parallel()
	for _, motif := range motifs {
		for _, s := range []values{size(96, 96), size(120, 56)} {
			for _, scale := range []int64{2, 5} {
				for seed := range uint32(2) {
					j := job("pattern", values{"motif": motif, "size": s, "scale": scale})
					j.Seed = seed
					m := drawn(t, j)
					for name, m := range map[string]*stdimage.NRGBA{"left and right": m, "top and bottom": transposed(m)} {
						var steps []float64
						for x := range m.Rect.Dx() - 1 {
							steps = append(steps, step(m, x))
						}
						if seam, most := step(m, m.Rect.Dx()-1), slices.Max(steps); seam > most*1.4 {
							t.Errorf("%s %v, scale %d, seed %d: %s differ by %.0f, neighbours by at most %.0f", motif, s, scale, seed, name, seam, most)
						}
					}
				}
			}
		}
	}
}

// TestSeamlessIsWorthTesting proves that the test above sees a seam: a part of
// a pattern has one.
func TestSeamlessIsWorthTesting(t *testing.T) {
	t.Parallel()
	for _, motif := range motifs {
		m := drawn(t, job("pattern", values{"motif": motif, "size": size(128, 128), "scale": int64(5)}))
		found := false
		for _, w := range []int{88, 95, 101, 108} {
			part := stdimage.NewNRGBA(stdimage.Rect(0, 0, w, 128))
			for y := range 128 {
				copy(part.Pix[y*part.Stride:][:4*w], m.Pix[y*m.Stride:])
			}
			var most float64
			for x := range w - 1 {
				most = max(most, step(part, x))
			}
			found = found || step(part, w-1) > most*1.4
		}
		if !found {
			t.Errorf("%s: no part has a seam that is seen", motif)
		}
	}
}

// TestMoreMotifsHaveMoreDetail counts how much changes from pixel to pixel.
func TestMoreMotifsHaveMoreDetail(t *testing.T) {
	t.Parallel()
	for _, motif := range motifs {
		last := 0.0
		for _, scale := range []int64{2, 5, 12} {
			m := drawn(t, job("pattern", values{"motif": motif, "size": size(128, 128), "scale": scale}))
			var sum float64
			turned := transposed(m)
			for x := range 128 {
				sum += step(m, x) + step(turned, x)
			}
			sum /= deviation(m)
			if sum <= last {
				t.Errorf("%s: detail at scale %d = %.0f, want more than %.0f", motif, scale, sum, last)
			}
			last = sum
		}
	}
}

func TestPatternsAreSeen(t *testing.T) {
	t.Parallel()
	for _, motif := range motifs {
		for seed := range uint32(4) {
			j := job("pattern", values{"motif": motif, "size": size(64, 64)})
			j.Seed = seed
			if d := deviation(drawn(t, j)); d < 8 {
				t.Errorf("%s, seed %d: deviation = %.1f, want a picture with contrast", motif, seed, d)
			}
		}
	}
}

func TestOddSizesOfPatterns(t *testing.T) {
	t.Parallel()
	for _, motif := range motifs {
		wantSize(t, drawn(t, job("pattern", values{"motif": motif, "size": size(64, 1), "scale": int64(32)})), 64, 1)
		wantSize(t, drawn(t, job("pattern", values{"motif": motif, "size": size(8, 640), "scale": int64(2)})), 8, 640)
	}
}
