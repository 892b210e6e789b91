package imageengine

import (
	"math"
	"sync"
)

// The measures of what an enlarged pixel is made of.
const (
	priorReach  = 2 // source pixels each way
	priorSide   = 2*priorReach + 1
	priorAngles = 16

	// likeLength is the distance, in source pixels, after which two places have
	// little in common, and likeNoise what a pixel has for itself.
	likeLength = 3
	likeNoise  = 0.003
)

// stretches are how many times farther places are alike along an edge than
// across it, and clearness how clear an edge has to be for that, of 1. Both were
// found by trying on pictures made for it (TestPhotoUpscaleIsBetter).
var (
	stretches = [...]float64{1, 2, 4, 10}
	clearness = [...]float64{0, 0.25, 0.5, 0.75}
)

// kernel is how much of each source pixel round it one pixel of the result is.
type kernel [priorSide * priorSide]float32

// prior holds, for one whole factor, the kernels for every kind of surroundings
// and every place within a source pixel.
//
// A source pixel counts as the mean of those that it becomes, and two places
// of a photograph as the less alike the farther apart they are, along an edge
// less so than across. Given these two, the kernels are the best there are
// (kriging): they undo the averaging as far as they can, draw edges smooth
// along their direction, and hardly swing over.
type prior struct {
	factor  int
	kernels []kernel // by stretch, angle and place
}

func (p *prior) of(stretch, angle int) []kernel {
	n := p.factor * p.factor
	return p.kernels[(stretch*priorAngles+angle)*n:][:n]
}

// priors makes the kernels of a factor once.
var priors = [...]func() *prior{
	2: sync.OnceValue(func() *prior { return newPrior(2) }),
	3: sync.OnceValue(func() *prior { return newPrior(3) }),
	4: sync.OnceValue(func() *prior { return newPrior(4) }),
}

func newPrior(factor int) *prior {
	p := &prior{factor: factor, kernels: make([]kernel, len(stretches)*priorAngles*factor*factor)}
	for s, stretch := range stretches {
		for a := range priorAngles {
			solve(p.of(s, a), factor, stretch, math.Pi*float64(a)/priorAngles)
		}
	}
	return p
}

// solve fills the kernels for edges that run at an angle.
func solve(into []kernel, factor int, stretch, angle float64) {
	sin, cos := math.Sincos(angle)
	// alike is how much two places have in common that lie so far apart, in
	// pixels of the result.
	across := likeLength * float64(factor) / math.Sqrt(stretch)
	along := across * stretch
	alike := func(dx, dy float64) float64 {
		u := (dx*cos + dy*sin) / along
		v := (dy*cos - dx*sin) / across
		return math.Exp(-math.Sqrt(u*u + v*v))
	}
	const n = priorSide * priorSide
	f := float64(factor)
	// between is what two source pixels have in common, by how far they lie apart.
	const span = 2*priorSide - 1
	var between [span * span]float64
	for i := range between {
		dx := float64(i%span-priorSide+1) * f
		dy := float64(i/span-priorSide+1) * f
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
			dx := j%priorSide - i%priorSide
			dy := j/priorSide - i/priorSide
			matrix[i*n+j] = between[(dy+priorSide-1)*span+dx+priorSide-1]
		}
		matrix[i*n+i] += likeNoise
	}
	cholesky(matrix, n)
	ones := make([]float64, n)
	for i := range ones {
		ones[i] = 1
	}
	substitute(matrix, n, ones)
	var whole float64
	for _, v := range ones {
		whole += v
	}
	for place := range into {
		px := float64(place%factor) - (f-1)/2
		py := float64(place/factor) - (f-1)/2
		w := make([]float64, n)
		for i := range w {
			cx := float64(i%priorSide-priorReach) * f
			cy := float64(i/priorSide-priorReach) * f
			for k := range factor * factor {
				w[i] += alike(cx+float64(k%factor)-(f-1)/2-px, cy+float64(k/factor)-(f-1)/2-py) / (f * f)
			}
		}
		substitute(matrix, n, w)
		// All together are 1, so that flat stays flat.
		var sum float64
		for _, v := range w {
			sum += v
		}
		for i := range w {
			into[place][i] = float32(w[i] + ones[i]*(1-sum)/whole)
		}
	}
}

// cholesky replaces a symmetric matrix by its lower root.
func cholesky(m []float64, n int) {
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

// substitute solves for one right side, in place.
func substitute(root []float64, n int, v []float64) {
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
