package imageengine

import (
	"math"
	"sync"
)

// Parameters of the kernels with which photographs are enlarged.
const (
	kernelReach  = 2 // distance from the centre to the edge of a kernel, in source pixels
	kernelSide   = 2*kernelReach + 1
	kernelAngles = 16

	// correlationLength is the distance, in source pixels, at which two points
	// are hardly correlated. correlationNoise is the variance that is added for
	// the noise of a single pixel.
	correlationLength = 3
	correlationNoise  = 0.003
)

// stretches are the ratios of the correlation length along an edge to the
// length across it. clearness is the minimum clearness of an edge for each
// ratio, from 0 to 1. Both were tuned on test pictures
// (TestPhotoUpscaleIsBetter).
var (
	stretches = [...]float64{1, 2, 4, 10}
	clearness = [...]float64{0, 0.25, 0.5, 0.75}
)

// upscaleKernel has the weights of the source pixels from which one pixel of
// the result is computed, row by row.
type upscaleKernel [kernelSide * kernelSide]float32

// kernelSet has the kernels for one integer factor of enlargement: for every
// class of edge and every position of a result pixel within its source pixel.
//
// The kernels follow from a model of photographs. A source pixel is the mean of
// the result pixels that replace it. Two points are less correlated the farther
// apart they are, and this decrease is slower along an edge than across it. The
// kernels are optimal for this model (kriging): they undo the averaging as far
// as possible, draw edges smoothly along their direction, and hardly overshoot.
type kernelSet struct {
	factor  int
	kernels []upscaleKernel // sorted by stretch, then angle, then position within the source pixel
}

func (p *kernelSet) kernelsFor(stretch, angle int) []upscaleKernel {
	n := p.factor * p.factor
	return p.kernels[(stretch*kernelAngles+angle)*n:][:n]
}

// kernelSets returns the kernels for a factor. They are computed at first use.
var kernelSets = [...]func() *kernelSet{
	2: sync.OnceValue(func() *kernelSet { return newKernelSet(2) }),
	3: sync.OnceValue(func() *kernelSet { return newKernelSet(3) }),
	4: sync.OnceValue(func() *kernelSet { return newKernelSet(4) }),
}

func newKernelSet(factor int) *kernelSet {
	p := &kernelSet{factor: factor, kernels: make([]upscaleKernel, len(stretches)*kernelAngles*factor*factor)}
	for s, stretch := range stretches {
		for a := range kernelAngles {
			solveKernels(p.kernelsFor(s, a), factor, stretch, math.Pi*float64(a)/kernelAngles)
		}
	}
	return p
}

// solveKernels computes the kernels for edges at an angle in radians: one for
// each position within a source pixel.
func solveKernels(into []upscaleKernel, factor int, stretch, angle float64) {
	sin, cos := math.Sincos(angle)
	// alike returns the correlation of two points whose distance is given in
	// pixels of the result.
	across := correlationLength * float64(factor) / math.Sqrt(stretch)
	along := across * stretch
	alike := func(dx, dy float64) float64 {
		u := (dx*cos + dy*sin) / along
		v := (dy*cos - dx*sin) / across
		return math.Exp(-math.Sqrt(u*u + v*v))
	}
	const n = kernelSide * kernelSide
	f := float64(factor)
	// between is the correlation of two source pixels, indexed by their
	// distance.
	const span = 2*kernelSide - 1
	var between [span * span]float64
	for i := range between {
		dx := float64(i%span-kernelSide+1) * f
		dy := float64(i/span-kernelSide+1) * f
		for k := range (2*factor - 1) * (2*factor - 1) {
			ox := k%(2*factor-1) - factor + 1
			oy := k/(2*factor-1) - factor + 1
			weight := (f - math.Abs(float64(ox))) * (f - math.Abs(float64(oy))) / (f * f * f * f)
			between[i] += weight * alike(dx+float64(ox), dy+float64(oy))
		}
	}
	matrix := make([]float64, n*n)
	for i := range n {
		for j := range n {
			dx := j%kernelSide - i%kernelSide
			dy := j/kernelSide - i/kernelSide
			matrix[i*n+j] = between[(dy+kernelSide-1)*span+dx+kernelSide-1]
		}
		matrix[i*n+i] += correlationNoise
	}
	choleskyRoot(matrix, n)
	ones := make([]float64, n)
	for i := range ones {
		ones[i] = 1
	}
	solveCholesky(matrix, n, ones)
	var whole float64
	for _, v := range ones {
		whole += v
	}
	for place := range into {
		px := float64(place%factor) - (f-1)/2
		py := float64(place/factor) - (f-1)/2
		w := make([]float64, n)
		for i := range w {
			cx := float64(i%kernelSide-kernelReach) * f
			cy := float64(i/kernelSide-kernelReach) * f
			for k := range factor * factor {
				w[i] += alike(cx+float64(k%factor)-(f-1)/2-px, cy+float64(k/factor)-(f-1)/2-py) / (f * f)
			}
		}
		solveCholesky(matrix, n, w)
		// Adjust the weights to add up to 1, so that flat areas keep their
		// value.
		var sum float64
		for _, v := range w {
			sum += v
		}
		for i := range w {
			into[place][i] = float32(w[i] + ones[i]*(1-sum)/whole)
		}
	}
}

// choleskyRoot replaces a symmetric n by n matrix by its lower Cholesky factor.
func choleskyRoot(m []float64, n int) {
	for j := range n {
		for i := j; i < n; i++ {
			sum := m[i*n+j]
			for k := range j {
				sum -= m[i*n+k] * m[j*n+k]
			}
			if i == j {
				m[j*n+j] = math.Sqrt(sum)
			} else {
				m[i*n+j] = sum / m[j*n+j]
			}
		}
	}
}

// solveCholesky solves a system of linear equations in place. root is the
// matrix's Cholesky factor, v the right-hand side and then the solution.
func solveCholesky(root []float64, n int, v []float64) {
	for i := range n {
		for k := range i {
			v[i] -= root[i*n+k] * v[k]
		}
		v[i] /= root[i*n+i]
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			v[i] -= root[k*n+i] * v[k]
		}
		v[i] /= root[i*n+i]
	}
}
