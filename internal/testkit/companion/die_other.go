//go:build !linux

package companion

import "syscall"

// dieWithParent needs Linux; elsewhere a killed test binary leaves its servers.
func dieWithParent(*syscall.SysProcAttr) {}
