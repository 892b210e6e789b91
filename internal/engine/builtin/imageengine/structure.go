package imageengine

import (
	"context"
	"image"
	"math"
)

// block is a rectangle of w by h numbers, row by row.
type block struct {
	w, h int
	v    []float32
}

func newBlock(w, h int) block { return block{w, h, make([]float32, w*h)} }

func (b block) row(y int) []float32 { return b.v[y*b.w:][:b.w] }

// edgeReach is the distance in pixels up to which classifyEdges reads the
// surroundings of a pixel.
const edgeReach = 3

// classifyEdges determines the direction and clearness of the edge at every
// pixel that is at least edgeReach pixels from the border of the block. It
// stores the indices of the matching kernels of a kernelSet as
// stretch*kernelAngles+angle. noise is the standard deviation in flat areas.
func classifyEdges(luma block, noise float32, into []uint8) {
	const reach = edgeReach - 1 // distance that the weighted mean covers; computing a slope reads one more pixel
	w := luma.w
	h := luma.h
	// Compute the structure tensor. It averages products of slopes, because
	// slopes of opposite sign would cancel out.
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
			for x := edgeReach; x < w-edgeReach; x++ {
				var sum float32
				for k, share := range weights {
					sum += share * from[x+k-reach]
				}
				to[x] = sum
			}
		}
	}
	for y := edgeReach; y < h-edgeReach; y++ {
		for x := edgeReach; x < w-edgeReach; x++ {
			var sums [3]float32
			for i := range sums {
				for k, share := range weights {
					sums[i] += share * means[i].v[(y+k-reach)*w+x]
				}
			}
			into[y*w+x] = classifyTensor(float64(sums[0]), float64(sums[1]), float64(sums[2]), float64(noise))
		}
	}
}

// classifyTensor returns the edge class for a structure tensor. An edge is
// clear if the slopes along it are small compared with the slopes across it,
// and the slopes across it are larger than noise.
func classifyTensor(xx, xy, yy, noise float64) uint8 {
	apart := math.Sqrt((xx-yy)*(xx-yy) + 4*xy*xy)
	across := math.Sqrt(max(xx+yy+apart, 0) / 2)
	along := math.Sqrt(max(xx+yy-apart, 0) / 2)
	clarity := (across - along) / (across + along + noise)
	stretch := 0
	for stretch+1 < len(clearness) && clarity > clearness[stretch+1] {
		stretch++
	}
	if stretch == 0 {
		return 0 // without a clear edge all angles are equal
	}
	angle := math.Atan2(2*xy, xx-yy)/2 + math.Pi/2 // an edge is perpendicular to the direction of the steepest slope
	return uint8(stretch*kernelAngles + int(math.Round(angle/math.Pi*kernelAngles))%kernelAngles)
}

// estimateNoise estimates the standard deviation of pixels in flat areas, in
// 8-bit levels. It uses second differences, which are zero on slopes and
// straight edges along an axis, and takes their median, so that detail in less
// than half of the picture has no effect.
func estimateNoise(ctx context.Context, m *image.NRGBA) (float32, error) {
	const most = 256
	var counts [most]int
	w := m.Rect.Dx()
	h := m.Rect.Dy()
	step := max(h*w/2_000_000, 1) // examine every step-th row, because a sample of the picture is enough
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
			at := func(line, dx int) float32 { return lumaOf(lines[line][4*(x+dx):]) }
			v := at(0, -1) + at(0, 1) + at(2, -1) + at(2, 1) - 2*(at(0, 0)+at(2, 0)+at(1, -1)+at(1, 1)) + 4*at(1, 0)
			counts[min(int(math.Abs(float64(v))), most-1)]++
			total++
		}
	}
	seen := 0
	for v, n := range counts {
		if seen += n; 2*seen > total {
			// The sum of squares of the weights is 36, and half of all normally
			// distributed values are within 0.6745 standard deviations.
			return float32(v) / (6 * 0.6745), nil
		}
	}
	return 0, nil
}
