// Package kernel implements the arithmetic of the small picture model: matrix
// products and the element-wise operations between them, on one thread.
//
// There are four kernels. "avx512", "avx2" and "neon" are assembly code that
// build/kernels generates from one description; they do the same operations in
// the same order and return the same bits. "plain" is written in Go and runs
// everywhere. It does not fuse multiplication and addition, so its results
// differ in the last digits. The results of "neon" were tested under emulation;
// its speed has not been measured.
//
// Every sum has a fixed order. An element of a product is summed in the order
// of k, however the work is divided into tiles and blocks. A sum over a row
// consists of sixteen partial sums, which are added in a fixed order. So a
// result depends on the kernel, but not on the distribution of work.
package kernel

//go:generate go run ../../../../../build/kernels

// Kernel is one implementation of the arithmetic. Its methods check the lengths
// of their arguments, because the assembly code does not.
type Kernel struct {
	name       string
	rows, cols int // rows and columns of a product that are computed at a time
	ops        operations
}

// operations are the functions of a kernel. They expect checked arguments.
type operations struct {
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

// Best returns the fastest kernel that this machine can run.
func Best() Kernel { return All()[0] }

// All returns the kernels that this machine can run, fastest first. The plain
// kernel is the last.
func All() []Kernel { return append(nativeKernels(), plainKernel()) }

func (k Kernel) String() string { return k.name }

// TileRows returns the number of rows of a product that are computed together.
// Work should be divided into multiples of this number.
func (k Kernel) TileRows() int { return k.rows }

// TileCols returns the number of columns of a product that are computed
// together, which is the width of a panel.
func (k Kernel) TileCols() int { return k.cols }

// MultiplyTile computes m rows of a product with one panel: c = from + a·b,
// where a is m×depth, b is depth×TileCols, and c and from are m×TileCols. lda,
// ldb, ldc and ldf are the distances between rows in floats. from may be c
// itself. If ldf is 0, from is a single row that is used for all m rows.
func (k Kernel) MultiplyTile(m, depth int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, from []float32, ldf int) {
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

// ApplySoftmax replaces a row by its softmax.
func (k Kernel) ApplySoftmax(x []float32) {
	if len(x) > 0 {
		k.ops.softmax(x)
	}
}

// ApplySiLU replaces each element x by x/(1+e^-x).
func (k Kernel) ApplySiLU(x []float32) {
	if len(x) > 0 {
		k.ops.silu(x)
	}
}

// ApplyGate sets dst to SiLU(a)·b, element by element. dst may be a.
func (k Kernel) ApplyGate(dst, a, b []float32) {
	if n := len(dst); n > 0 {
		k.ops.gate(dst, a[:n], b[:n])
	}
}

// AddRow adds v to x, element by element.
func (k Kernel) AddRow(x, v []float32) {
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

// MoveToward moves z towards x by a fraction (share) of their distance, element
// by element. Elements of x are first clamped to ±limit.
func (k Kernel) MoveToward(z, x []float32, share, limit float32) {
	if n := len(z); n > 0 {
		k.ops.toward(z, x[:n], share, limit)
	}
}

// ApplyGuidance replaces x by u + by·(x-u), which moves x away from u if by is
// greater than 1.
func (k Kernel) ApplyGuidance(x, u []float32, by float32) {
	if n := len(x); n > 0 {
		k.ops.guide(x, u[:n], by)
	}
}

// NormalizeRow divides a row by its root mean square, multiplies it by gain and
// adds shift. dst may be x.
func (k Kernel) NormalizeRow(dst, x, gain, shift []float32) {
	if n := len(dst); n > 0 {
		k.ops.norm(dst, x[:n], gain[:n], shift[:n])
	}
}

// RotatePairs divides a vector by its root mean square, multiplies it by gain,
// and rotates each pair of an element of the first half and the corresponding
// element of the second half (rotary position embedding). dst may be x.
func (k Kernel) RotatePairs(dst, x, gain, cos, sin []float32) {
	if n := len(dst); n > 1 {
		n &^= 1
		k.ops.rope(dst[:n], x[:n], gain[:n], cos[:n/2], sin[:n/2])
	}
}

// ApplyPReLU multiplies negative elements by the slope of their channel. A row
// has len(slope) channels.
func (k Kernel) ApplyPReLU(x, slope []float32) {
	if len(slope) > 0 && len(x) >= len(slope) {
		k.ops.prelu(x[:len(x)/len(slope)*len(slope)], slope)
	}
}

// TransposeTo writes the rows of src as columns to dst. ldd and lds are the
// distances between rows in floats.
func (k Kernel) TransposeTo(rows, cols int, dst []float32, ldd int, src []float32, lds int) {
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

// Peak runs n rounds of the kernel's fastest operations on registers and
// returns the number of floating-point operations. It is used to measure the
// speed of the machine.
func Peak(k Kernel, n int) (operations int) { return k.ops.peak(max(n, 1)) }
