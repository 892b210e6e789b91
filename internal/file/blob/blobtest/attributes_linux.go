package blobtest

import (
	"errors"
	"syscall"
)

// hasAttributes reports whether files in the folder dir can have extended
// attributes.
func hasAttributes(dir string) bool {
	err := syscall.Setxattr(dir, "user.atelier", []byte("x"), 0)
	return !errors.Is(err, syscall.ENOTSUP)
}
