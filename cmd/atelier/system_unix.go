//go:build unix

package main

import (
	"io/fs"
	"math"
	"syscall"

	"golang.org/x/sys/unix"
)

// hasFileModes reports whether the system has file modes that keep other users
// out.
const hasFileModes = true

// makePrivate sets the umask so that only the service's user can read and
// write new files.
func makePrivate() { syscall.Umask(0o077) }

// fileLimit returns the number of files that this process may open. Package os
// raises the soft limit to the hard limit when the process starts.
func fileLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return lowFiles
	}
	return int(min(limit.Cur, math.MaxInt32))
}

// checkAccess returns an error unless this process may write to an existing
// file or folder.
func checkAccess(path string, info fs.FileInfo) error {
	mode := uint32(unix.W_OK)
	if info.IsDir() {
		mode |= unix.X_OK
	}
	return unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS)
}
