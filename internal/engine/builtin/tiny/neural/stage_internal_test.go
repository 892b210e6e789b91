package neural

import (
	"fmt"
	"math"
	"testing"
	"time"

	"atelier/internal/engine/builtin/tiny/kernel"
)

// BenchmarkStages tells where the time of a picture goes: each stage as often
// as a picture needs it, in milliseconds, and the speed of those that are
// products. The fastest round counts.
func BenchmarkStages(b *testing.B) {
	for _, k := range kernel.All() {
		for _, workers := range []int{1, 2} {
			m := openModel(b, k, workers)
			w, n := &m.transformer.work, &m.transformer
			c, d := n.config, n.config.D
			steps := float64(m.DefaultSteps())
			blocks := steps * float64(c.Depth)
			bl := &n.blocks[0]
			formula(w.z)
			if err := m.pool.runTask(func() {
				m.transformer.clearEdges()
				m.encodePrompt(referencePrompt, &w.prompt)
				m.predictPicture(w.z, .37, &w.prompt, w.x)
			}); err != nil {
				b.Fatal(err)
			}
			rows, patches := float64(n.tokens), float64(n.grid*n.grid)
			product := func(rows float64, l linearLayer) float64 { return 2 * rows * float64(l.w.K) * float64(l.w.N) }
			size := float64(d / c.Heads)
			pixels := float64(c.Res * c.Res)
			for _, s := range []struct {
				name       string
				times      float64
				operations float64
				work       func()
			}{
				{"noise", 1, 0, func() { fillNoise(w.z, 1) }},
				{"text", 1, 0, func() { m.encodePrompt(referencePrompt, &w.prompt) }},
				{"condition", steps, 0, func() { m.computeCondition(.37, &w.prompt) }},
				{"patches", steps, product(patches, n.patch1) + product(patches, n.patch2), func() {
					embedPatches(m, w.z)
					m.applyLinear(&n.patch1, n.grid*n.grid, w.patches, w.narrow, c.Bott)
					m.applyLinear(&n.patch2, n.grid*n.grid, w.narrow, w.rows[n.length*d:], d)
				}},
				{"norm", 2 * blocks, 0, func() { m.normalizeRows(n.tokens, d, w.rows, w.block, w.block[d:], w.y) }},
				{"qkv", blocks, product(rows, bl.attention.in), func() { m.applyLinear(&bl.attention.in, n.tokens, w.y, w.qkv, rowDistance(3*d)) }},
				{"attention", blocks, 4 * rows * rows * size * float64(c.Heads), func() { m.applyAttention(&bl.attention, n.tokens, d, w.qkv, n.turn, w.keys, w.y) }},
				{"out", blocks, product(rows, bl.attention.out), func() { m.addLinear(&bl.attention.out, n.tokens, w.y, d, w.block, w.rows) }},
				{"up", blocks, product(rows, bl.up), func() { m.applyGated(&bl.up, n.tokens, w.y, w.gated) }},
				{"down", blocks, product(rows, bl.down), func() { m.addLinear(&bl.down, n.tokens, w.gated, rowDistance(c.Hid), w.block, w.rows) }},
				{"pixels", steps, product(patches, n.pixels), func() { m.applyLinear(&n.pixels, n.grid*n.grid, w.y, w.out, n.pixels.w.N) }},
				{"smooth", steps, 2 * pixels * float64(taps*(c.Ch+3)*c.Cw+taps*c.Cw*c.Cw+taps*3*c.Cw), func() { smoothPatches(m, w.z, w.x) }},
				{"step", steps, 0, func() { m.k.MoveToward(w.z, w.x, .3, limit) }},
			} {
				b.Run(fmt.Sprintf("%v/%d/%s", k, workers, s.name), func(b *testing.B) {
					fastest := time.Duration(math.MaxInt64)
					if err := m.pool.runTask(func() {
						for b.Loop() {
							began := time.Now()
							s.work()
							fastest = min(fastest, time.Since(began))
						}
					}); err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(0, "ns/op")
					b.ReportMetric(fastest.Seconds()*1000*s.times, "ms/picture")
					if s.operations > 0 {
						b.ReportMetric(s.operations/fastest.Seconds()/1e9, "GFLOP/s")
					}
				})
			}
		}
	}
}
