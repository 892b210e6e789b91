//go:build !linux

package netguardtest

import (
	"net/netip"
	"testing"
)

// Network records the connections that a test attempts.
type Network struct{}

// Run skips the test: network namespaces are a feature of Linux.
func Run(t *testing.T, _ func(t *testing.T, n *Network)) {
	t.Helper()
	t.Skip("network namespaces are a feature of Linux")
}

// Attempts returns nothing, because Run never calls a test on this system.
func (*Network) Attempts(testing.TB) []netip.AddrPort { return nil }
