//go:build linux || darwin

package quota

import (
	"math"
	"syscall"
)

// smallestFile is the minimum space of a file. A disk without free inodes
// counts as full.
const smallestFile = 4 << 10

// FreeSpace returns how many bytes can still be written to the disk of a
// folder.
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

// saturatingMultiply multiplies and returns math.MaxInt64 on overflow.
func saturatingMultiply(n, size uint64) int64 {
	if n > math.MaxInt64/size {
		return math.MaxInt64
	}
	return int64(n * size)
}
