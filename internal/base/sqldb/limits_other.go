//go:build !linux

package sqldb

import "syscall"

// setUserTimeout does nothing, because the socket option exists only on Linux.
func setUserTimeout(string, string, syscall.RawConn) error { return nil }
