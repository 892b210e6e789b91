package sqldb

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// isLocked reports whether another process has locked a byte of an open file.
// Windows cannot ask for that, so isLocked takes the lock and releases it.
func isLocked(f *os.File, offset int64) (bool, error) {
	at := &windows.Overlapped{Offset: uint32(offset), OffsetHigh: uint32(offset >> 32)}
	handle := windows.Handle(f.Fd())
	err := windows.LockFileEx(handle, windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, windows.UnlockFileEx(handle, 0, 1, 0, at)
}
