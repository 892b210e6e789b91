package main

import (
	"context"
	"fmt"
	"image"
	"math/rand/v2"
	"syscall"
	"time"

	"atelier/internal/engine/builtin/tiny/kernel"
	"atelier/internal/engine/builtin/tiny/neural"
)

// The least share of the peak for products, and the most seconds that two cores
// may take for a picture of 512 pixels, with the fastest kernel of the machine.
const (
	leastOfPeak = 0.6
	mostSeconds = 1.5
)

// kernels measures the picture model without the service: its products against
// what the registers alone can do, and whole pictures on one core and on two.
func (b *bench) kernels(ctx context.Context) error {
	for _, k := range kernel.All() {
		b.products(k)
	}
	for i, k := range kernel.All() {
		for _, workers := range []int{1, 2} {
			most := 0.
			if i == 0 && workers == 2 {
				most = mostSeconds
			}
			if err := b.pictures(ctx, k, workers, most); err != nil {
				return err
			}
		}
	}
	return nil
}

// products compares the products of the transformer's layers with the peak. Both
// are the fastest of many: what else the machine does is no property of the
// kernel.
func (b *bench) products(k kernel.Kernel) {
	rng := rand.New(rand.NewPCG(1, 1))
	least, bound := 1., ""
	fmt.Printf("%9v products on one core, of the peak of a loop in registers\n", k)
	for _, s := range [][3]int{{280, 384, 1152}, {280, 384, 2048}, {280, 1024, 384}, {512, 512, 512}} {
		m, depth, n := s[0], s[1], s[2]
		w := weights(rng, depth, n)
		a, c, from, room := numbers(rng, m*depth), make([]float32, m*n), make([]float32, n), make([]float32, k.ScratchSize())
		var speed, peak float64
		for began := time.Now(); time.Since(began) < time.Second; {
			speed = max(speed, perSecond(func() int {
				for p := range k.PanelCount(w) {
					k.MultiplyPanel(w, p, m, a, depth, c[p*k.TileCols():], n, from[p*k.TileCols():], 0, room)
				}
				return 2 * m * depth * n
			}))
			peak = max(peak, perSecond(func() int { return kernel.Peak(k, 10_000) }))
		}
		fmt.Printf("%9.1f of %.1f GFLOP/s: %.2f  %d×%d×%d\n", speed/1e9, peak/1e9, speed/peak, m, depth, n)
		least = min(least, speed/peak)
	}
	if k.String() != "plain" {
		bound = fmt.Sprintf(", at least %.2f: %s", leastOfPeak, b.verdict("products of "+k.String(), least >= leastOfPeak, "BELOW"))
	}
	fmt.Printf("%9.2f least ratio%s\n\n", least, bound)
}

// perSecond is how many operations a second do does.
func perSecond(do func() int) float64 {
	began := time.Now()
	n := do()
	return float64(n) / time.Since(began).Seconds()
}

// weights are random numbers in the form that weights have in the program.
func weights(rng *rand.Rand, depth, n int) kernel.Matrix {
	scales, values := make([]float32, n), make([]byte, n*depth)
	for i := range scales {
		scales[i] = rng.Float32() / 127
	}
	for i := range values {
		values[i] = byte(rng.Uint32())
	}
	return kernel.Matrix{K: depth, N: n, Q: string(values), Scales: scales}
}

func numbers(rng *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

// pictures draws and enlarges, and gives the fastest and the median.
func (b *bench) pictures(ctx context.Context, k kernel.Kernel, workers int, most float64) error {
	m, err := neural.Open(k, workers)
	if err != nil {
		return err
	}
	defer m.Close()
	var drawn, enlarged, whole, cpu []float64
	rounds := 8
	if k.String() == "plain" {
		rounds = 1 // some fifteen seconds
	}
	for i := range rounds {
		spent, began := processor(), time.Now()
		o := neural.Order{Prompt: "penguin in the snow", Seed: uint64(i), Steps: m.DefaultSteps(), Guidance: 1}
		p, err := m.DrawPicture(ctx, o, func(int, int, *image.NRGBA) error { return nil })
		if err != nil {
			return err
		}
		drew := time.Since(began).Seconds()
		if _, err := m.EnlargePicture(ctx, p, func(float64) {}); err != nil {
			return err
		}
		all := time.Since(began).Seconds()
		drawn, enlarged, whole = append(drawn, drew), append(enlarged, all-drew), append(whole, all)
		cpu = append(cpu, (processor() - spent).Seconds())
	}
	bound := ""
	if most > 0 {
		bound = fmt.Sprintf(", at most %.1f s: %s", most, b.verdict("a picture with "+k.String(), median(whole) <= most, "ABOVE"))
	}
	fmt.Printf("%9v %d thread(s): %.3f s drawn and %.3f s enlarged, %.3f s for a picture of 512 pixels (median of %d), %.3f s of CPU%s\n",
		k, workers, median(drawn), median(enlarged), median(whole), rounds, median(cpu), bound)
	if workers == 2 {
		fmt.Printf("%9.1f MiB of memory besides the weights, which are part of the program\n\n", float64(m.MemoryBytes())/(1<<20))
	}
	return nil
}

// processor is the CPU time of this process so far.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
