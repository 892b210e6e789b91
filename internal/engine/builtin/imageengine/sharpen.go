package imageengine

import (
	"context"
	"image"
	"math"

	"atelier/internal/engine"
	"atelier/internal/engine/builtin/pixels"
)

// sharpenPicture raises the contrast of edges after an enlargement by factor.
// The width of the blur that it corrects is proportional to factor. Differences
// of one or two levels are treated as noise and hardly raised, and no pixel
// changes by more than limit. All colour channels change equally, so that edges
// get no coloured fringes.
func sharpenPicture(ctx context.Context, s engine.Span, m *image.NRGBA, strength, factor float64) error {
	const (
		limit = 24.0
		noise = 2.0
	)
	if strength == 0 {
		s.ReportProgress(1)
		return nil
	}
	w := m.Rect.Dx()
	h := m.Rect.Dy()
	kernel := gaussKernel(0.3 + 0.45*factor)
	reach := len(kernel) / 2
	amount := float32(1.4 * strength)
	// Rows are changed in place, strip by strip, after all rows that they are
	// compared with have been blurred.
	const strip = 256
	b := blurredRows{m: m, kernel: kernel, rows: make([][]float32, min(strip+2*reach, h))}
	for i := range b.rows {
		b.rows[i] = make([]float32, 2*w)
	}
	taken := 0
	for top := 0; top < h; top += strip {
		bottom := min(top+strip, h)
		part := s.SubSpan(float64(top)/float64(h), float64(bottom)/float64(h))
		first := taken
		last := min(bottom+reach, h)
		taken = last
		err := eachBand(ctx, part.SubSpan(0, 0.5), last-first, 16, func(from, to int) { b.fillRows(first+from, first+to) })
		if err != nil {
			return err
		}
		err = eachBand(ctx, part.SubSpan(0.5, 1), bottom-top, 16, func(from, to int) {
			for y := top + from; y < top+to; y++ {
				b.sharpenRow(y, amount, limit, noise)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// blurredRows caches rows of brightness, blurred along the row. Pixels are
// weighted by alpha.
type blurredRows struct {
	m      *image.NRGBA
	kernel []float32
	rows   [][]float32 // row y is at index y modulo len(rows)
}

// sharpenRow sharpens row y in place.
func (b *blurredRows) sharpenRow(y int, amount, limit, noise float32) {
	w := b.m.Rect.Dx()
	h := b.m.Rect.Dy()
	reach := len(b.kernel) / 2
	pix := b.m.Pix[y*b.m.Stride:][:4*w]
	for x := range w {
		var sum, weight float32
		for k, share := range b.kernel {
			if sy := y + k - reach; sy >= 0 && sy < h {
				row := b.rows[sy%len(b.rows)]
				sum += share * row[2*x]
				weight += share * row[2*x+1]
			}
		}
		p := pix[4*x:][:4]
		if p[3] == 0 || weight == 0 {
			continue
		}
		d := lumaOf(p) - sum/weight
		d *= d * d / (d*d + noise*noise) * amount
		d = min(max(d, -limit), limit)
		p[0] = pixels.ClampByte(float32(p[0]) + d)
		p[1] = pixels.ClampByte(float32(p[1]) + d)
		p[2] = pixels.ClampByte(float32(p[2]) + d)
	}
}

// fillRows computes the blurred rows in the range [from, to).
func (b *blurredRows) fillRows(from, to int) {
	w := b.m.Rect.Dx()
	reach := len(b.kernel) / 2
	line := make([]float32, 2*w)
	for y := from; y < to; y++ {
		pix := b.m.Pix[y*b.m.Stride:][:4*w]
		for x := range w {
			p := pix[4*x:][:4]
			a := float32(p[3]) / 255
			line[2*x] = lumaOf(p) * a
			line[2*x+1] = a
		}
		into := b.rows[y%len(b.rows)]
		for x := range w {
			var sum, weight float32
			for k, share := range b.kernel {
				if sx := x + k - reach; sx >= 0 && sx < w {
					sum += share * line[2*sx]
					weight += share * line[2*sx+1]
				}
			}
			into[2*x] = sum
			into[2*x+1] = weight
		}
	}
}

func lumaOf(p []uint8) float32 {
	return 0.2126*float32(p[0]) + 0.7152*float32(p[1]) + 0.0722*float32(p[2])
}

func gaussKernel(sigma float64) []float32 {
	reach := int(math.Ceil(2.5 * sigma))
	k := make([]float32, 2*reach+1)
	for i := range k {
		d := float64(i-reach) / sigma
		k[i] = float32(math.Exp(-d * d / 2))
	}
	return k
}
