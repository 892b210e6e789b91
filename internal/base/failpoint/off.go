//go:build !failpoint

// Package failpoint kills the process at named points in the code, so that
// tests can check the state after a crash at each point.
//
// It does so only in binaries built with the tag "failpoint". In such a binary,
// ATELIER_CRASH=name:nth ends the process with SIGKILL when the point with that
// name is reached for the nth time. In all other builds Hit does nothing.
package failpoint

// Hit marks a named point in the code where a crash must be harmless.
func Hit(string) {}
