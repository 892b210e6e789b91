//go:build !failpoint

// Package failpoint kills the process at named points, so that tests can check
// the state after a crash at each point.
//
// It kills only in binaries built with the tag "failpoint": there,
// ATELIER_CRASH=name:nth ends the process with SIGKILL when the point is reached
// for the nth time. In every other build Hit does nothing.
package failpoint

// Hit marks a point where a crash must be harmless.
func Hit(string) {}
