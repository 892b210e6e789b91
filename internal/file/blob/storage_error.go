package blob

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"atelier/internal/base/fault"
	"atelier/internal/base/osfile"
)

// diskFailureErrors are the system errors for a disk or a mounted file system
// that is not usable now.
var diskFailureErrors = []syscall.Errno{
	syscall.EIO, syscall.EROFS, syscall.ENXIO, syscall.ENODEV, syscall.ESTALE, syscall.ETIMEDOUT, syscall.EACCES, syscall.EPERM,
	syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EFBIG, syscall.ENOTCONN,
}

// storageError wraps an error of a file operation; doing names the operation.
// If the disk is the cause, the result is a *fault.Error with code
// Unavailable.
func storageError(doing string, err error) error {
	wrapped := fmt.Errorf("%s: %w", doing, err)
	number, ok := errors.AsType[syscall.Errno](err)
	switch {
	case !ok:
		return wrapped
	case osfile.IsDiskFull(err):
		return fault.New(fault.Unavailable, "The file storage is full.").Because(wrapped)
	case slices.Contains(diskFailureErrors, number):
		return fault.New(fault.Unavailable, "The service can't use its file storage. Try again shortly.").Because(wrapped)
	}
	return wrapped
}
