//go:build !linux

package sqldb

import "syscall"

// setUserTimeout needs Linux.
func setUserTimeout(string, string, syscall.RawConn) error { return nil }
