// Package kernel is the arithmetic of the small picture model: products of
// matrices, and what lies between them, on one thread.
//
// There are four kernels. "avx512", "avx2" and "neon" are assembly made by
// build/kernels from one description; they do the same operations in the same
// order and give the same bits. "plain" is Go, runs everywhere, does not fuse
// multiplication and addition, and so differs from them in the last places.
// The results of "neon" were tested under emulation; its speed has not been
// measured.
//
// Every sum has one order. An element of a product is one chain in the order
// of k, whatever the tiles and blocks. Sums over a row have sixteen lanes,
// which are folded halves onto halves. So a result depends on the kernel, never
// on how work was shared out.
package kernel

import "fmt"

//go:generate go run ../../../../../build/kernels

// Kernel is one way to compute. Its functions check their bounds, then go to
// code that does not.
type Kernel struct {
	name       string
	rows, cols int // of a tile of the product
	ops        ops
}

// ops are the functions of a kernel, for arguments that were checked.
type ops struct {
	tile      func(m, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, from []float32, ldf int)
	widen     func(k int, dst []float32, w string, scale []float32)
	softmax   func(x []float32)
	silu      func(x []float32)
	gate      func(dst, a, b []float32)
	add       func(x, v []float32)
	addGated  func(x, g, v []float32)
	toward    func(z, x []float32, share, limit float32)
	guide     func(x, u []float32, by float32)
	norm      func(dst, x, gain, shift []float32)
	rope      func(dst, x, gain, cos, sin []float32)
	prelu     func(x, slope []float32)
	transpose func(rows, cols int, dst []float32, ldd int, src []float32, lds int)
	peak      func(n int) (operations int)
}

// Best is the fastest kernel that this machine can run.
func Best() Kernel { return All()[0] }

// All gives the kernels that this machine can run, the plain one last.
func All() []Kernel { return append(native(), plain()) }

// Named gives a kernel by its name.
func Named(name string) (Kernel, error) {
	for _, k := range All() {
		if k.name == name {
			return k, nil
		}
	}
	return Kernel{}, fmt.Errorf("this machine has no kernel %q", name)
}

func (k Kernel) String() string { return k.name }

// Rows is how many rows of a product are computed together: work is best
// shared out in multiples of it.
func (k Kernel) Rows() int { return k.rows }

// Cols is how many columns of a product are computed together: the width of
// a panel.
func (k Kernel) Cols() int { return k.cols }

// Tile computes m rows of a product with one panel: c = from + a·b, where a is
// m×depth, b is depth×Cols, c and from are m×Cols, each with its own distance
// between rows. from may be c itself, or one row for all with ldf 0.
func (k Kernel) Tile(m, depth int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, from []float32, ldf int) {
	if m <= 0 {
		return
	}
	if min(depth, lda, ldb, ldc, ldf) < 0 {
		panic("kernel: negative size")
	}
	_ = c[(m-1)*ldc+k.cols-1]
	_ = from[(m-1)*ldf+k.cols-1]
	if depth == 0 {
		for i := range m {
			copy(c[i*ldc:][:k.cols], from[i*ldf:])
		}
		return
	}
	_ = a[(m-1)*lda+depth-1]
	_ = b[(depth-1)*ldb+k.cols-1]
	k.ops.tile(m, depth, a, lda, b, ldb, c, ldc, from, ldf)
}

// Softmax makes shares of one out of a row.
func (k Kernel) Softmax(x []float32) {
	if len(x) > 0 {
		k.ops.softmax(x)
	}
}

// SiLU replaces each x by x/(1+e^-x).
func (k Kernel) SiLU(x []float32) {
	if len(x) > 0 {
		k.ops.silu(x)
	}
}

// Gate sets dst to SiLU(a)·b, element by element. dst may be a.
func (k Kernel) Gate(dst, a, b []float32) {
	if n := len(dst); n > 0 {
		k.ops.gate(dst, a[:n], b[:n])
	}
}

// Add adds v to x.
func (k Kernel) Add(x, v []float32) {
	if n := len(x); n > 0 {
		k.ops.add(x, v[:n])
	}
}

// AddGated adds g·v to x, element by element.
func (k Kernel) AddGated(x, g, v []float32) {
	if n := len(x); n > 0 {
		k.ops.addGated(x, g[:n], v[:n])
	}
}

// Toward moves z by a share of the way to x, of which no element counts as
// further from zero than limit.
func (k Kernel) Toward(z, x []float32, share, limit float32) {
	if n := len(z); n > 0 {
		k.ops.toward(z, x[:n], share, limit)
	}
}

// Guide moves x away from u: u + by·(x-u).
func (k Kernel) Guide(x, u []float32, by float32) {
	if n := len(x); n > 0 {
		k.ops.guide(x, u[:n], by)
	}
}

// Norm divides a row by its root mean square, then gives it gain and shift.
// dst may be x.
func (k Kernel) Norm(dst, x, gain, shift []float32) {
	if n := len(dst); n > 0 {
		k.ops.norm(dst, x[:n], gain[:n], shift[:n])
	}
}

// Rope divides a vector by its root mean square, gives it gain, and turns each
// pair of an element of the first half and its fellow in the second. dst may
// be x.
func (k Kernel) Rope(dst, x, gain, cos, sin []float32) {
	if n := len(dst); n > 1 {
		n &^= 1
		k.ops.rope(dst[:n], x[:n], gain[:n], cos[:n/2], sin[:n/2])
	}
}

// PReLU scales what is below zero in rows of len(slope) channels.
func (k Kernel) PReLU(x, slope []float32) {
	if len(slope) > 0 && len(x) >= len(slope) {
		k.ops.prelu(x[:len(x)/len(slope)*len(slope)], slope)
	}
}

// Transpose writes the rows of src as columns of dst.
func (k Kernel) Transpose(rows, cols int, dst []float32, ldd int, src []float32, lds int) {
	if rows <= 0 || cols <= 0 {
		return
	}
	if min(ldd, lds) < 0 {
		panic("kernel: negative size")
	}
	_ = dst[(cols-1)*ldd+rows-1]
	_ = src[(rows-1)*lds+cols-1]
	k.ops.transpose(rows, cols, dst, ldd, src, lds)
}

// Peak does n rounds of what this kernel can do fastest, on registers only,
// and tells how many operations they were. It measures the machine.
func Peak(k Kernel, n int) (operations int) { return k.ops.peak(max(n, 1)) }
