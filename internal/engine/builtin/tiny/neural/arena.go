package neural

import "unsafe"

// arena allocates several slices in one block of memory, each at the start of a
// cache line. All slices are reserved first. They are assigned when the total
// size is known.
type arena struct {
	size  int
	parts []part
}

type part struct {
	at, n int
	to    *[]float32
}

const lineNumbers = 16 // float32 numbers per cache line

func (a *arena) reserveSlice(to *[]float32, n int) {
	a.parts = append(a.parts, part{a.size, n, to})
	a.size += (n + lineNumbers - 1) / lineNumbers * lineNumbers
}

func (a *arena) assignMemory(memory []float32) {
	for _, p := range a.parts {
		*p.to = memory[p.at : p.at+p.n : p.at+p.n]
	}
}

// alignSlice returns n numbers of v, beginning at the start of a cache line. v
// must be longer than n by one cache line.
func alignSlice(v []float32, n int) []float32 {
	off := int(-uintptr(unsafe.Pointer(unsafe.SliceData(v))) % 64 / 4) //nolint:gosec // only reads the address
	return v[off : off+n : off+n]
}
