package osfile

import (
	"crypto/rand"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

// Flags for os.OpenFile that Windows does not have.
const (
	NoFollow    = 0
	NonBlocking = 0
	Directory   = 0
)

// Lock locks an open file, and waits while another process has it locked. The
// lock is released when the file is closed or the process ends. Windows cannot
// lock folders.
func Lock(f *os.File) error { return lockFile(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// TryLock locks an open file like Lock. It does not wait: if another process
// has the file locked, the error is ErrLocked.
func TryLock(f *os.File) error {
	err := lockFile(f, windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}

// lockFile locks the last byte that a file can have. Locks on Windows are
// mandatory, so a lock on the file's content would keep others from reading it.
func lockFile(f *os.File, flags uint32) error {
	last := &windows.Overlapped{Offset: math.MaxUint32, OffsetHigh: math.MaxInt32}
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, last)
}

// CreateUnnamed creates a temporary file that the system deletes when it is
// closed, even if the process is killed. folder and pattern are those of
// os.CreateTemp. The file has a name until then, because Windows has no files
// without one.
func CreateUnnamed(folder, pattern string) (*os.File, error) {
	if folder == "" {
		folder = os.TempDir()
	}
	before, after, found := strings.Cut(pattern, "*")
	if !found {
		after = ""
	}
	path := filepath.Join(folder, before+rand.Text()+after)

	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, &os.PathError{Op: "create", Path: path, Err: err}
	}
	handle, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE, windows.FILE_SHARE_DELETE, nil,
		windows.CREATE_NEW, windows.FILE_ATTRIBUTE_TEMPORARY|windows.FILE_FLAG_DELETE_ON_CLOSE, 0)
	if err != nil {
		return nil, &os.PathError{Op: "create", Path: path, Err: err}
	}
	return os.NewFile(uintptr(handle), path), nil
}

// IsDiskFull reports whether err means that a disk or a disk quota has no free
// space.
func IsDiskFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) || errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}

// SyncFolder does nothing: Windows cannot flush a folder, and NTFS keeps its
// names in a journal.
func SyncFolder(*os.File) error { return nil }
