package imageengine

import (
	"context"
	"image"
	"math"
)

// block is a rectangle of numbers.
type block struct {
	w, h int
	v    []float32
}

func newBlock(w, h int) block { return block{w, h, make([]float32, w*h)} }

func (b block) row(y int) []float32 { return b.v[y*b.w:][:b.w] }

// structureReach is how far round a pixel structure looks.
const structureReach = 3

// structure says of every pixel that is structureReach from the edge of the
// block how its surroundings run: which stretch and which angle of a prior fit
// them, as stretch*priorAngles+angle. noise is the deviation of flat parts.
func structure(luma block, noise float32, into []uint8) {
	const reach = structureReach - 1 // of the mean; a slope takes one more
	w := luma.w
	h := luma.h
	// The products of slopes, as those of one direction add up where slopes
	// that point to opposite sides would not (structure tensor).
	var slopes, means [3]block
	for i := range slopes {
		slopes[i] = newBlock(w, h)
		means[i] = newBlock(w, h)
	}
	for y := 1; y < h-1; y++ {
		a := luma.row(y - 1)
		b := luma.row(y)
		c := luma.row(y + 1)
		for x := 1; x < w-1; x++ {
			gx := (3*(a[x+1]-a[x-1]+c[x+1]-c[x-1]) + 10*(b[x+1]-b[x-1])) / 32
			gy := (3*(c[x-1]-a[x-1]+c[x+1]-a[x+1]) + 10*(c[x]-a[x])) / 32
			i := y*w + x
			slopes[0].v[i] = gx * gx
			slopes[1].v[i] = gx * gy
			slopes[2].v[i] = gy * gy
		}
	}
	weights := [2*reach + 1]float32{0.0545, 0.2442, 0.4026, 0.2442, 0.0545}
	for i := range slopes {
		for y := 1; y < h-1; y++ {
			from := slopes[i].row(y)
			to := means[i].row(y)
			for x := structureReach; x < w-structureReach; x++ {
				var sum float32
				for k, share := range weights {
					sum += share * from[x+k-reach]
				}
				to[x] = sum
			}
		}
	}
	for y := structureReach; y < h-structureReach; y++ {
		for x := structureReach; x < w-structureReach; x++ {
			var sums [3]float32
			for i := range sums {
				for k, share := range weights {
					sums[i] += share * means[i].v[(y+k-reach)*w+x]
				}
			}
			into[y*w+x] = runs(float64(sums[0]), float64(sums[1]), float64(sums[2]), float64(noise))
		}
	}
}

// runs reads a structure tensor. An edge is clear where the slopes along it are
// small against those across, and those are more than noise.
func runs(xx, xy, yy, noise float64) uint8 {
	apart := math.Sqrt((xx-yy)*(xx-yy) + 4*xy*xy)
	across := math.Sqrt(max(xx+yy+apart, 0) / 2)
	along := math.Sqrt(max(xx+yy-apart, 0) / 2)
	clarity := (across - along) / (across + along + noise)
	stretch := 0
	for stretch+1 < len(clearness) && clarity > clearness[stretch+1] {
		stretch++
	}
	if stretch == 0 {
		return 0 // the same at all angles
	}
	angle := math.Atan2(2*xy, xx-yy)/2 + math.Pi/2 // an edge runs across its slope
	return uint8(stretch*priorAngles + int(math.Round(angle/math.Pi*priorAngles))%priorAngles)
}

// noiseOf estimates how far pixels of flat parts stray, in levels. It looks at
// what neither a slope nor a straight edge along an axis can make, and takes
// the middle of all, which detail in less than half of the picture does not
// move.
func noiseOf(ctx context.Context, m *image.NRGBA) (float32, error) {
	const most = 256
	var counts [most]int
	w := m.Rect.Dx()
	h := m.Rect.Dy()
	step := max(h*w/2_000_000, 1) // rows; a part of them tells enough
	total := 0
	for y := 1; y < h-1; y += step {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		var lines [3][]uint8
		for i := range lines {
			lines[i] = m.Pix[(y+i-1)*m.Stride:][:4*w]
		}
		for x := 1; x < w-1; x++ {
			at := func(line, dx int) float32 { return luma(lines[line][4*(x+dx):]) }
			v := at(0, -1) + at(0, 1) + at(2, -1) + at(2, 1) - 2*(at(0, 0)+at(2, 0)+at(1, -1)+at(1, 1)) + 4*at(1, 0)
			counts[min(int(math.Abs(float64(v))), most-1)]++
			total++
		}
	}
	seen := 0
	for v, n := range counts {
		if seen += n; 2*seen > total {
			// The sum of squares of the weights is 36, and half of all normal
			// values lie within 0.6745 deviations.
			return float32(v) / (6 * 0.6745), nil
		}
	}
	return 0, nil
}
