package neural

import "unsafe"

// arena lays parts into one block of memory, each at the start of a cache
// line. Parts are asked for first and pointed at it when its size is known.
type arena struct {
	size  int
	parts []part
}

type part struct {
	at, n int
	to    *[]float32
}

const lineNumbers = 16 // of four bytes in a cache line

func (a *arena) lay(to *[]float32, n int) {
	a.parts = append(a.parts, part{a.size, n, to})
	a.size += (n + lineNumbers - 1) / lineNumbers * lineNumbers
}

func (a *arena) use(memory []float32) {
	for _, p := range a.parts {
		*p.to = memory[p.at : p.at+p.n : p.at+p.n]
	}
}

// aligned gives n numbers of a slice that has a line to spare.
func aligned(v []float32, n int) []float32 {
	off := int(-uintptr(unsafe.Pointer(unsafe.SliceData(v))) % 64 / 4) //nolint:gosec // only to see where it lies
	return v[off : off+n : off+n]
}
