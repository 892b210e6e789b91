package neural

import (
	"math"
	"math/rand/v2"
	"sync"
)

// fillNoise fills z with normally distributed random numbers that the seed
// determines.
func fillNoise(z []float32, seed uint64) {
	r := rand.New(rand.NewPCG(seed, seedStream))
	t := zigguratTables()
	for i := range z {
		z[i] = float32(t.drawNormal(r))
	}
}

// ziggurat has the tables of the ziggurat method for normally distributed
// numbers, which covers the distribution with strips of equal area (Marsaglia
// and Tsang, The Ziggurat Method for Generating Random Variables, 2000).
type ziggurat struct {
	inside [128]uint32  // integers below this are certainly inside the distribution
	width  [128]float32 // factor that converts integers to positions in the strip
	height [128]float32
}

// tailStart is the value at which the tail of the distribution begins.
const tailStart = 3.442619855899

var zigguratTables = sync.OnceValue(func() *ziggurat {
	const area, whole = 9.91256303526217e-3, 1 << 31
	density := func(x float64) float64 { return math.Exp(-.5 * x * x) }
	var z ziggurat
	x := tailStart
	foot := area / density(x)
	z.inside[0] = uint32(x / foot * whole)
	z.width[0] = float32(foot / whole)
	z.height[0] = 1
	z.width[127] = float32(x / whole)
	z.height[127] = float32(density(x))
	for i := 126; i > 0; i-- {
		above := math.Sqrt(-2 * math.Log(area/x+density(x)))
		z.inside[i+1] = uint32(above / x * whole)
		x = above
		z.width[i] = float32(x / whole)
		z.height[i] = float32(density(x))
	}
	return &z
})

// drawNormal returns a normally distributed random number. On AMD64 it returns
// the same numbers as rand.NormFloat64. On other processors rand.NormFloat64
// may fuse a multiplication with an addition. In about one of ten thousand
// pictures it would then consume one random number more or less, and all later
// numbers would differ. The explicit conversions in drawNormal prevent fusing.
func (z *ziggurat) drawNormal(r *rand.Rand) float64 {
	for {
		u := r.Uint64()
		j := int64(int32(u))
		i := u >> 32 & 127
		x := float64(j) * float64(z.width[i])
		if max(j, -j) < int64(z.inside[i]) {
			return x
		}
		if i == 0 {
			for {
				x = float64(-math.Log(r.Float64()) * (1 / tailStart))
				if y := -math.Log(r.Float64()); y+y >= float64(x*x) {
					break
				}
			}
			if j > 0 {
				return tailStart + x
			}
			return -tailStart - x
		}
		between := float32(float32(r.Float64()) * (z.height[i-1] - z.height[i]))
		if z.height[i]+between < float32(math.Exp(-.5*x*x)) {
			return x
		}
	}
}
