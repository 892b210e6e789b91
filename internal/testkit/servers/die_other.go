//go:build !linux

package servers

import "syscall"

// dieWithParent does nothing: the option exists only on Linux. On other systems
// the servers of a killed test binary keep running.
func dieWithParent(*syscall.SysProcAttr) {}
