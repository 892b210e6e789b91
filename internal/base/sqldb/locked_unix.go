//go:build unix

package sqldb

import (
	"os"
	"syscall"
)

// isLocked reports whether another process has locked a byte of an open file.
func isLocked(f *os.File, offset int64) (bool, error) {
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Start: offset, Len: 1}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock); err != nil {
		return false, err
	}
	return lock.Type != syscall.F_UNLCK, nil
}
