//go:build !amd64 && !arm64

package kernel

func native() []Kernel { return nil }

// Relax waits for about n times what a read of memory takes.
func Relax(n int) {
	for range n {
		relax()
	}
}

//go:noinline
func relax() {}
