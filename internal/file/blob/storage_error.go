package blob

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"atelier/internal/base/fault"
)

// diskFullErrors mean that there is no room for more.
var diskFullErrors = []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT}

// diskFailureErrors mean that a disk, or what it is mounted over, cannot be used now.
var diskFailureErrors = []syscall.Errno{
	syscall.EIO, syscall.EROFS, syscall.ENXIO, syscall.ENODEV, syscall.ESTALE, syscall.ETIMEDOUT, syscall.EACCES, syscall.EPERM,
	syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EFBIG, syscall.ENOTCONN,
}

// storageError says what was being done when a file of ours could not be used.
// Where the disk is the reason it is an outage and no accident.
func storageError(doing string, err error) error {
	wrapped := fmt.Errorf("%s: %w", doing, err)
	number, ok := errors.AsType[syscall.Errno](err)
	switch {
	case !ok:
		return wrapped
	case slices.Contains(diskFullErrors, number):
		return fault.New(fault.Unavailable, "The file storage is full.").Because(wrapped)
	case slices.Contains(diskFailureErrors, number):
		return fault.New(fault.Unavailable, "The service can't use its file storage. Try again shortly.").Because(wrapped)
	}
	return wrapped
}
