//go:build unix

package subprocess

import (
	"os"
	"syscall"
)

// checkSystem returns nil, because every Unix can run programs.
func checkSystem() error { return nil }

// killGroup kills all processes of a process group. leader is the id of its
// first process.
func killGroup(leader int) { _ = syscall.Kill(-leader, syscall.SIGKILL) } // fails if no process is left

// endedByFileLimit reports whether the system ended a program because it wrote
// a file above the size limit.
func endedByFileLimit(state *os.ProcessState) bool {
	s, ok := state.Sys().(syscall.WaitStatus)
	return ok && s.Signaled() && s.Signal() == syscall.SIGXFSZ
}
