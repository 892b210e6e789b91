package kernel

import "golang.org/x/sys/cpu"

func nativeKernels() []Kernel {
	var all []Kernel
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		all = append(all, avx512Kernel())
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		all = append(all, avx2Kernel())
	}
	return all
}

// Relax waits about as long as n reads from memory take, without slowing down
// the other hardware thread of the core.
func Relax(n int) {
	relax256(n)
}

func avx512Kernel() Kernel {
	return Kernel{"avx512", 14, 32, operations{
		tile: splitTiles([]tileFunc{nil, tile1x512, tile2x512, tile3x512, tile4x512, tile5x512, tile6x512, tile7x512, tile8x512,
			tile9x512, tile10x512, tile11x512, tile12x512, tile13x512, tile14x512}),
		widen: func(k int, dst []float32, w string, scale []float32) {
			widen512(k, &dst[0], weightBytes(w), &scale[0])
		},
		softmax:  func(x []float32) { softmax512(len(x), &x[0]) },
		silu:     func(x []float32) { silu512(len(x), &x[0]) },
		gate:     func(dst, a, b []float32) { gate512(len(dst), &dst[0], &a[0], &b[0]) },
		add:      func(x, v []float32) { add512(len(x), &x[0], &v[0]) },
		addGated: func(x, g, v []float32) { addGated512(len(x), &x[0], &g[0], &v[0]) },
		toward:   func(z, x []float32, share, limit float32) { toward512(len(z), &z[0], &x[0], share, limit) },
		guide:    func(x, u []float32, by float32) { guide512(len(x), &x[0], &u[0], by) },
		norm: func(dst, x, gain, shift []float32) {
			norm512(len(dst), &dst[0], &x[0], &gain[0], &shift[0], float32(len(x)))
		},
		rope: func(dst, x, gain, cos, sin []float32) {
			rope512(len(dst)/2, &dst[0], &x[0], &gain[0], &cos[0], &sin[0], float32(len(x)))
		},
		prelu:     func(x, slope []float32) { prelu512(len(x)/len(slope), len(slope), &x[0], &slope[0]) },
		transpose: splitBlocks(8, transpose8x256),
		peak:      func(n int) int { peak512(n); return n * 24 * 16 * 2 },
	}}
}

func avx2Kernel() Kernel {
	return Kernel{"avx2", 6, 16, operations{
		tile: splitTiles([]tileFunc{nil, tile1x256, tile2x256, tile3x256, tile4x256, tile5x256, tile6x256}),
		widen: func(k int, dst []float32, w string, scale []float32) {
			widen256(k, &dst[0], weightBytes(w), &scale[0])
		},
		softmax:  func(x []float32) { softmax256(len(x), &x[0]) },
		silu:     func(x []float32) { silu256(len(x), &x[0]) },
		gate:     func(dst, a, b []float32) { gate256(len(dst), &dst[0], &a[0], &b[0]) },
		add:      func(x, v []float32) { add256(len(x), &x[0], &v[0]) },
		addGated: func(x, g, v []float32) { addGated256(len(x), &x[0], &g[0], &v[0]) },
		toward:   func(z, x []float32, share, limit float32) { toward256(len(z), &z[0], &x[0], share, limit) },
		guide:    func(x, u []float32, by float32) { guide256(len(x), &x[0], &u[0], by) },
		norm: func(dst, x, gain, shift []float32) {
			norm256(len(dst), &dst[0], &x[0], &gain[0], &shift[0], float32(len(x)))
		},
		rope: func(dst, x, gain, cos, sin []float32) {
			rope256(len(dst)/2, &dst[0], &x[0], &gain[0], &cos[0], &sin[0], float32(len(x)))
		},
		prelu:     func(x, slope []float32) { prelu256(len(x)/len(slope), len(slope), &x[0], &slope[0]) },
		transpose: splitBlocks(8, transpose8x256),
		peak:      func(n int) int { peak256(n); return n * 12 * 8 * 2 },
	}}
}
