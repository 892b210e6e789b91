package kernel

// nativeKernels returns the NEON kernel. It needs no check, because every ARM64
// processor has NEON.
func nativeKernels() []Kernel { return []Kernel{neonKernel()} }

// Relax waits about as long as n reads from memory take, without slowing down
// the other hardware thread of the core.
func Relax(n int) {
	relaxNeon(n)
}

func neonKernel() Kernel {
	return Kernel{"neon", 6, 16, operations{
		tile: splitTiles([]tileFunc{nil, tile1xNeon, tile2xNeon, tile3xNeon, tile4xNeon, tile5xNeon, tile6xNeon}),
		widen: func(k int, dst []float32, w string, scale []float32) {
			widenNeon(k, &dst[0], weightBytes(w), &scale[0])
		},
		softmax:  func(x []float32) { softmaxNeon(len(x), &x[0]) },
		silu:     func(x []float32) { siluNeon(len(x), &x[0]) },
		gate:     func(dst, a, b []float32) { gateNeon(len(dst), &dst[0], &a[0], &b[0]) },
		add:      func(x, v []float32) { addNeon(len(x), &x[0], &v[0]) },
		addGated: func(x, g, v []float32) { addGatedNeon(len(x), &x[0], &g[0], &v[0]) },
		toward:   func(z, x []float32, share, limit float32) { towardNeon(len(z), &z[0], &x[0], share, limit) },
		guide:    func(x, u []float32, by float32) { guideNeon(len(x), &x[0], &u[0], by) },
		norm: func(dst, x, gain, shift []float32) {
			normNeon(len(dst), &dst[0], &x[0], &gain[0], &shift[0], float32(len(x)))
		},
		rope: func(dst, x, gain, cos, sin []float32) {
			ropeNeon(len(dst)/2, &dst[0], &x[0], &gain[0], &cos[0], &sin[0], float32(len(x)))
		},
		prelu:     func(x, slope []float32) { preluNeon(len(x)/len(slope), len(slope), &x[0], &slope[0]) },
		transpose: splitBlocks(4, transpose4xNeon),
		peak:      func(n int) int { peakNeon(n); return n * 24 * 4 * 2 },
	}}
}
