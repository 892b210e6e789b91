package imageengine

import (
	"image"

	"atelier/internal/engine/builtin/pixels"
)

// edgeUnmixer separates the pixels at the edge of a subject into the subject's
// colour and the background's colour.
type edgeUnmixer struct {
	m      *image.NRGBA
	depth  []uint8
	behind *backgroundGrid
	reach  int

	// old is the original content of rows that have been changed, beginning
	// with row first.
	first int
	old   []uint8
}

// keepRows copies the original content of the rows in the range [from, to),
// which are about to be changed.
func (e *edgeUnmixer) keepRows(from, to int) {
	from = max(from, 0)
	w := 4 * e.m.Rect.Dx()
	kept := make([]uint8, 0, (to-from)*w)
	for y := from; y < to; y++ {
		kept = append(kept, e.originalRow(y)...)
	}
	e.first = from
	e.old = kept
}

// originalRow returns the pixels of row y before any change.
func (e *edgeUnmixer) originalRow(y int) []uint8 {
	w := 4 * e.m.Rect.Dx()
	if i := y - e.first; i >= 0 && (i+1)*w <= len(e.old) {
		return e.old[i*w:][:w]
	}
	return e.m.Pix[y*e.m.Stride:][:w]
}

// unmixRow computes, for each pixel of row y, the fraction of the pixel that
// belongs to the subject, and the colour of the subject at the pixel.
func (e *edgeUnmixer) unmixRow(y int, alphas []float32, colours []uint8) {
	w := e.m.Rect.Dx()
	pix := e.originalRow(y)
	for x := range w {
		depth := e.depth[y*w+x]
		p := pix[4*x:][:4]
		to := colours[3*x:][:3]
		copy(to, p)
		opacity := float32(p[3]) / 255
		switch {
		case depth > backgroundDepth+uint8(e.reach):
			alphas[x] = 0
			continue
		case depth < backgroundDepth && int(depth) > edgeWidth:
			alphas[x] = opacity
			continue
		}
		back := e.behind.colourAt(x, y)
		front, ok := e.subjectColour(x, y, back)
		if !ok { // there is no pixel of the subject nearby
			alphas[x] = 0
			continue
		}
		share := blendShare(p, front, back)
		if depth > backgroundDepth {
			// This pixel was classified as background, so a difference in
			// colour counts only directly next to the subject.
			if depth > backgroundDepth+2 {
				share = 0
			}
		} else {
			// Farther inside the subject, a pixel with the background's colour
			// belongs to the subject.
			share = max(share, (float32(depth)-2)/(edgeWidth-1))
		}
		alphas[x] = share * opacity
		for c := range to {
			own := front[c]
			if share > 0.05 {
				// mine is the colour of the pixel without the background. The
				// smaller the subject's fraction, the less reliable this colour
				// is.
				mine := (float32(p[c]) - (1-share)*back[c]) / share
				own += (mine - own) * share
			}
			to[c] = pixels.ClampByte(own)
		}
	}
}

// blendShare returns the position of the colour p between back (0) and front
// (1).
func blendShare(p []uint8, front, back [3]float32) float32 {
	const apart = 12 * 12 // squared distance below which the two colours are too similar to distinguish
	var along, whole float32
	for c := range front {
		d := front[c] - back[c]
		along += d * (float32(p[c]) - back[c])
		whole += d * d
	}
	if whole < apart {
		return 1
	}
	return clampTo(along/whole, 0, 1)
}

// subjectColour returns the colour of the subject near a pixel: the weighted
// mean of nearby pixels that certainly belong to the subject. If there are
// none, as in hair, it is the nearby colour that differs most from the
// background.
func (e *edgeUnmixer) subjectColour(x, y int, back [3]float32) (front [3]float32, ok bool) {
	w := e.m.Rect.Dx()
	h := e.m.Rect.Dy()
	reach := e.reach + 2
	var sum [3]float32
	var n, most float32
	for sy := max(y-reach, 0); sy <= min(y+reach, h-1); sy++ {
		row := e.originalRow(sy)
		depths := e.depth[sy*w:][:w]
		for sx := max(x-reach, 0); sx <= min(x+reach, w-1); sx++ {
			depth := depths[sx]
			if depth >= backgroundDepth {
				continue
			}
			p := row[4*sx:][:4]
			if depth >= edgeWidth-1 {
				weight := 1 / float32(1+(sx-x)*(sx-x)+(sy-y)*(sy-y))
				for c := range sum {
					sum[c] += weight * float32(p[c])
				}
				n += weight
			}
			if n > 0 {
				continue
			}
			var far float32
			for c := range back {
				d := float32(p[c]) - back[c]
				far += d * d
			}
			if far >= most {
				most = far
				ok = true
				front = [3]float32{float32(p[0]), float32(p[1]), float32(p[2])}
			}
		}
	}
	if n > 0 {
		return [3]float32{sum[0] / n, sum[1] / n, sum[2] / n}, true
	}
	return front, ok
}

// writeRow writes the new pixels of a row, with the alpha channel blurred with
// the given kernel.
func (e *edgeUnmixer) writeRow(y int, alphas block, colours []uint8, kernel []float32) {
	w := e.m.Rect.Dx()
	h := e.m.Rect.Dy()
	reach := len(kernel) / 2
	pix := e.m.Pix[y*e.m.Stride:][:4*w]
	for x := range w {
		p := pix[4*x:][:4]
		depth := e.depth[y*w+x]
		switch {
		case depth < backgroundDepth && int(depth) > edgeWidth+reach:
			continue // pixels inside the subject stay unchanged
		case int(depth) > backgroundDepth+reach+2:
			clear(p)
			continue
		}
		var sum, whole float32
		for j, a := range kernel {
			sy := y + j - reach
			if sy < 0 || sy >= h {
				continue
			}
			row := alphas.row(sy % alphas.h)
			for i, b := range kernel {
				if sx := x + i - reach; sx >= 0 && sx < w {
					sum += a * b * row[sx]
					whole += a * b
				}
			}
		}
		if p[3] = pixels.ClampByte(255 * sum / whole); p[3] == 0 {
			p[0] = 0
			p[1] = 0
			p[2] = 0
			continue
		}
		copy(p[:3], colours[3*(y%alphas.h*w+x):][:3])
	}
}
