//go:build linux || darwin

package quota

import (
	"math"
	"syscall"
)

// smallestFile is the minimum disk space of a file, in bytes. It is used to
// convert free inodes to bytes, so that a disk without free inodes counts as
// full.
const smallestFile = 4 << 10

// FreeSpace returns how many bytes can still be written to the disk that
// contains a folder.
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

// saturatingMultiply returns n*size, or math.MaxInt64 if the product is
// larger.
func saturatingMultiply(n, size uint64) int64 {
	if n > math.MaxInt64/size {
		return math.MaxInt64
	}
	return int64(n * size)
}
