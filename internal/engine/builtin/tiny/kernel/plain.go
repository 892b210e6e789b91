package kernel

import "math"

// plainKernel returns the kernel that is written in Go. It converts products to
// float32 explicitly before adding them, because some platforms would otherwise
// fuse the two operations.
func plainKernel() Kernel {
	return Kernel{"plain", 3, 16, operations{
		tile:      plainTile,
		widen:     plainWiden,
		softmax:   plainSoftmax,
		silu:      plainSiLU,
		gate:      plainGate,
		add:       plainAdd,
		addGated:  plainAddGated,
		toward:    plainToward,
		guide:     plainGuide,
		norm:      plainNorm,
		rope:      plainRope,
		prelu:     plainPReLU,
		transpose: plainTranspose,
		peak:      plainPeak,
	}}
}

func plainTile(m, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, from []float32, ldf int) {
	for i := 0; i < m; i += 3 {
		// If fewer than three rows are left, the last row is computed more than
		// once.
		i1 := min(i+1, m-1)
		i2 := min(i+2, m-1)
		for j := 0; j < 16; j += 2 {
			s := plain3x2(k, a[i*lda:], a[i1*lda:], a[i2*lda:], b[j:], ldb, [6]float32{
				from[i*ldf+j], from[i*ldf+j+1], from[i1*ldf+j], from[i1*ldf+j+1], from[i2*ldf+j], from[i2*ldf+j+1],
			})
			c[i2*ldc+j] = s[4]
			c[i2*ldc+j+1] = s[5]
			c[i1*ldc+j] = s[2]
			c[i1*ldc+j+1] = s[3]
			c[i*ldc+j] = s[0]
			c[i*ldc+j+1] = s[1]
		}
	}
}

// plain3x2 adds the products of three rows of a and two columns of b to the six
// sums s. Larger tiles would not fit into the scalar registers of a processor.
// The race detector ignores the function, as it ignores assembly, because its
// checks would make the function ten times slower.
//
//go:norace
func plain3x2(k int, a0, a1, a2, b []float32, ldb int, s [6]float32) [6]float32 {
	s00 := s[0]
	s01 := s[1]
	s10 := s[2]
	s11 := s[3]
	s20 := s[4]
	s21 := s[5]
	a0 = a0[:k]
	a1 = a1[:k]
	a2 = a2[:k]
	at := 0
	for p, x := range a0 {
		v := b[at]
		w := b[at+1]
		at += ldb
		s00 += float32(x * v)
		s01 += float32(x * w)
		x = a1[p]
		s10 += float32(x * v)
		s11 += float32(x * w)
		x = a2[p]
		s20 += float32(x * v)
		s21 += float32(x * w)
	}
	return [6]float32{s00, s01, s10, s11, s20, s21}
}

func plainWiden(k int, dst []float32, w string, scale []float32) {
	for i := range k {
		row := dst[i*16 : i*16+16]
		from := w[i*Lane : i*Lane+16]
		for j := range row {
			row[j] = float32(int8(from[j])) * scale[j]
		}
	}
}

// Constants for the exponential function. build/kernels contains the same
// numbers.
const (
	expLow, expHigh = -86.5, 88.0
	log2e           = 1.44269504088896341
	ln2High, ln2Low = 0.693359375, -2.12194440e-4
	roundingShift   = 3 << 22 // adding and then subtracting this rounds a number to an integer
)

var expPoly = [...]float32{1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1, 1, 1}

// expFloat returns e to the power of x. The result is never below the smallest
// normal number.
func expFloat(x float32) float32 {
	x = max(min(x, expHigh), expLow)
	t := float32(float32(x*log2e)+roundingShift) - roundingShift
	x -= float32(t * ln2High)
	x -= float32(t * ln2Low)
	r := expPoly[0]
	for _, c := range expPoly[1:] {
		r = float32(r*x) + c
	}
	return math.Float32frombits(math.Float32bits(r) + uint32(int32(t))<<23)
}

// foldLanes returns the sum of sixteen partial sums. It adds the upper half to
// the lower half until one sum remains.
func foldLanes(l *[16]float32) float32 {
	for h := 8; h > 0; h /= 2 {
		for i := range h {
			l[i] += l[i+h]
		}
	}
	return l[0]
}

func plainSoftmax(x []float32) {
	top := float32(-math.MaxFloat32)
	for _, v := range x {
		top = max(top, v)
	}
	var lanes [16]float32
	for i, v := range x {
		x[i] = expFloat(v - top)
		lanes[i&15] += x[i]
	}
	inverse := 1 / foldLanes(&lanes)
	for i := range x {
		x[i] *= inverse
	}
}

func plainSiLU(x []float32) {
	for i, v := range x {
		x[i] = v / (1 + expFloat(-v))
	}
}

func plainGate(dst, a, b []float32) {
	for i, v := range a {
		dst[i] = v / (1 + expFloat(-v)) * b[i]
	}
}

func plainAdd(x, v []float32) {
	for i := range x {
		x[i] += v[i]
	}
}

func plainAddGated(x, g, v []float32) {
	for i := range x {
		x[i] += float32(g[i] * v[i])
	}
}

func plainToward(z, x []float32, share, limit float32) {
	for i, v := range x {
		z[i] += float32((max(min(v, limit), -limit) - z[i]) * share)
	}
}

func plainGuide(x, u []float32, by float32) {
	for i, v := range x {
		x[i] = u[i] + float32((v-u[i])*by)
	}
}

// inverseRMS returns one divided by the root mean square of n numbers. sum is
// the sum of their squares.
func inverseRMS(sum float32, n int) float32 {
	return 1 / float32(math.Sqrt(float64(sum/float32(n)+1e-6)))
}

func plainNorm(dst, x, gain, shift []float32) {
	var lanes [16]float32
	for i, v := range x {
		lanes[i&15] += float32(v * v)
	}
	inv := inverseRMS(foldLanes(&lanes), len(x))
	for i, v := range x {
		dst[i] = float32(float32(v*inv)*gain[i]) + shift[i]
	}
}

func plainRope(dst, x, gain, cos, sin []float32) {
	var lanes [16]float32
	half := len(x) / 2
	for _, part := range [][]float32{x[:half], x[half:]} {
		for i, v := range part {
			lanes[i&15] += float32(v * v)
		}
	}
	inv := inverseRMS(foldLanes(&lanes), len(x))
	for i := range half {
		a := x[i] * inv * gain[i]
		b := x[half+i] * inv * gain[half+i]
		dst[i] = float32(a*cos[i]) - float32(b*sin[i])
		dst[half+i] = float32(b*cos[i]) + float32(a*sin[i])
	}
}

func plainPReLU(x, slope []float32) {
	for len(x) > 0 {
		for i, s := range slope {
			if x[i] < 0 {
				x[i] *= s
			}
		}
		x = x[len(slope):]
	}
}

func plainTranspose(rows, cols int, dst []float32, ldd int, src []float32, lds int) {
	for r := range rows {
		for c := range cols {
			dst[c*ldd+r] = src[r*lds+c]
		}
	}
}

func plainPeak(n int) int {
	x := float32(.5)
	y := float32(.25)
	var s0, s1, s2, s3, s4, s5, s6, s7, s8, s9 float32
	for range n {
		s0 = float32(s0*x) + y
		s1 = float32(s1*x) + y
		s2 = float32(s2*x) + y
		s3 = float32(s3*x) + y
		s4 = float32(s4*x) + y
		s5 = float32(s5*x) + y
		s6 = float32(s6*x) + y
		s7 = float32(s7*x) + y
		s8 = float32(s8*x) + y
		s9 = float32(s9*x) + y
	}
	if s0+s1+s2+s3+s4+s5+s6+s7+s8+s9 < 0 {
		return 0 // never happens, but keeps the compiler from removing the loop
	}
	return n * 20
}
