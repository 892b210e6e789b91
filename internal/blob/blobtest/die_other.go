//go:build !linux

package blobtest

import "syscall"

// dieWithParent needs Linux; elsewhere a killed test binary leaves its server.
func dieWithParent(*syscall.SysProcAttr) {}

// hasAttributes would need one more package; the sidecar works everywhere.
func hasAttributes(string) bool { return false }
