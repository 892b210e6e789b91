//go:build !linux

package dbtest

import "syscall"

// dieWithParent needs Linux; elsewhere a killed test binary leaves its server.
func dieWithParent(*syscall.SysProcAttr) {}
