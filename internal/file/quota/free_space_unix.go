//go:build linux || darwin

package quota

import (
	"math"
	"syscall"
)

// smallestFile is what a file takes at least: a disk that can hold no more
// files is as full as one without bytes.
const smallestFile = 4 << 10

// FreeSpace is how many bytes can still be written to a folder's disk.
func FreeSpace(folder string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(folder, &s); err != nil {
		return 0, err
	}
	free := saturatingMultiply(s.Bavail, uint64(s.Bsize))
	if s.Files > 0 {
		free = min(free, saturatingMultiply(s.Ffree, smallestFile))
	}
	return free, nil
}

// saturatingMultiply multiplies without overflow.
func saturatingMultiply(n, size uint64) int64 {
	if n > math.MaxInt64/size {
		return math.MaxInt64
	}
	return int64(n * size)
}
