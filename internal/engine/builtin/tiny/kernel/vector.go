//go:build amd64 || arm64

package kernel

import "unsafe"

// weightBytes returns a pointer to the weights in a string. Assembly code must
// not write to them.
func weightBytes(w string) *byte { return unsafe.StringData(w) } //nolint:gosec // their length was checked

type tileFunc = func(k int, a *float32, lda int, b *float32, ldb int, c *float32, ldc int, from *float32, ldf int)

// splitTiles returns a function that multiplies any number of rows. It uses the
// tile function with the most rows as often as possible, and another tile
// function for the remaining rows. part[r] is the function for r rows.
func splitTiles(part []tileFunc) func(m, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, from []float32, ldf int) {
	high := len(part) - 1
	return func(m, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, from []float32, ldf int) {
		pa := &a[0]
		pb := &b[0]
		for i := 0; i < m; i += high {
			r := min(high, m-i)
			part[r](k, pa, lda, pb, ldb, &c[i*ldc], ldc, &from[i*ldf], ldf)
			if i+r < m {
				pa = &a[(i+r)*lda]
			}
		}
	}
}

type transposeFunc = func(blocks int, dst *float32, ldd int, src *float32, lds int)

// splitBlocks returns a function that transposes a matrix. It calls turn for
// blocks of side×side elements, and copies the elements at the edges one by
// one.
func splitBlocks(side int, turn transposeFunc) func(rows, cols int, dst []float32, ldd int, src []float32, lds int) {
	return func(rows, cols int, dst []float32, ldd int, src []float32, lds int) {
		whole := rows / side * side
		across := cols / side * side
		if across > 0 {
			for r := 0; r < whole; r += side {
				turn(across/side, &dst[r], ldd, &src[r*lds], lds)
			}
		}
		if across < cols && whole > 0 {
			plainTranspose(whole, cols-across, dst[across*ldd:], ldd, src[across:], lds)
		}
		if whole < rows {
			plainTranspose(rows-whole, cols, dst[whole:], ldd, src[whole*lds:], lds)
		}
	}
}
