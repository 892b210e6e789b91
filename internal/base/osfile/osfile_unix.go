//go:build unix

package osfile

import (
	"errors"
	"os"
	"syscall"
)

// Flags for os.OpenFile that Windows does not have.
const (
	NoFollow    = syscall.O_NOFOLLOW  // fails if the last part of the path is a symbolic link
	NonBlocking = syscall.O_NONBLOCK  // returns at once if the file is a pipe
	Directory   = syscall.O_DIRECTORY // fails unless the file is a folder
)

// Lock locks an open file or folder, and waits while another process has it
// locked. The lock is released when the file is closed or the process ends.
func Lock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// TryLock locks an open file or folder like Lock. It does not wait: if another
// process has the file locked, the error is ErrLocked.
func TryLock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// CreateUnnamed creates a temporary file that the system deletes when it is
// closed, even if the process is killed. folder and pattern are those of
// os.CreateTemp.
func CreateUnnamed(folder, pattern string) (*os.File, error) {
	f, err := os.CreateTemp(folder, pattern)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// IsDiskFull reports whether err means that a disk or a disk quota has no free
// space.
func IsDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// SyncFolder makes the names of the files in an open folder durable.
func SyncFolder(f *os.File) error { return f.Sync() }
