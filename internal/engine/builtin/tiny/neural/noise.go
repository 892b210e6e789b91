package neural

import (
	"math"
	"math/rand/v2"
	"sync"
)

// noise fills z with what a seed gives.
func noise(z []float32, seed uint64) {
	r := rand.New(rand.NewPCG(seed, stream))
	t := strips()
	for i := range z {
		z[i] = float32(t.normal(r))
	}
}

// A ziggurat covers the normal distribution with strips of one size (Marsaglia
// and Tsang, The Ziggurat Method for Generating Random Variables, 2000).
type ziggurat struct {
	inside [128]uint32  // what lies below it is in the distribution for sure
	width  [128]float32 // from whole numbers to the strip
	height [128]float32
}

// base is where the lowest strip begins its tail.
const base = 3.442619855899

var strips = sync.OnceValue(func() *ziggurat {
	const area, whole = 9.91256303526217e-3, 1 << 31
	density := func(x float64) float64 { return math.Exp(-.5 * x * x) }
	var z ziggurat
	x := base
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

// normal draws as rand.NormFloat64 does, and gives the same numbers on AMD64.
// Elsewhere that one may fuse a multiplication with an addition: once in some
// ten thousand pictures it then takes one number more or less, and all that
// come after it are others. The conversions here forbid it.
func (z *ziggurat) normal(r *rand.Rand) float64 {
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
				x = float64(-math.Log(r.Float64()) * (1 / base))
				if y := -math.Log(r.Float64()); y+y >= float64(x*x) {
					break
				}
			}
			if j > 0 {
				return base + x
			}
			return -base - x
		}
		between := float32(float32(r.Float64()) * (z.height[i-1] - z.height[i]))
		if z.height[i]+between < float32(math.Exp(-.5*x*x)) {
			return x
		}
	}
}
