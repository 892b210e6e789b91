//go:build !amd64 && !arm64

package kernel

func nativeKernels() []Kernel { return nil }

// Relax waits about as long as n reads from memory take.
func Relax(n int) {
	for range n {
		relax()
	}
}

//go:noinline
func relax() {}
