package blobtest

import (
	"errors"
	"syscall"
)

// hasAttributes tells whether files in the folder can carry attributes.
func hasAttributes(dir string) bool {
	err := syscall.Setxattr(dir, "user.atelier", []byte("x"), 0)
	return !errors.Is(err, syscall.ENOTSUP)
}
