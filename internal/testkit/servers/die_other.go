//go:build !linux

package servers

import "syscall"

// dieWithParent needs Linux; elsewhere a killed test binary leaves its servers.
func dieWithParent(*syscall.SysProcAttr) {}
