//go:build !linux

package child

import (
	"os"
	"syscall"
)

func self() (string, error) { return os.Executable() }

// isolation has one way here: the network cannot be taken away.
func isolation(bool) []*syscall.SysProcAttr {
	return []*syscall.SysProcAttr{{Setpgid: true}}
}

func confine() error { return nil }

// limitMemory does what it can: macOS takes this limit and does not hold it.
func limitMemory(most int64) error {
	_ = limit(syscall.RLIMIT_AS, most)
	return nil
}

// reap calls last when the process is gone, and its number might be somebody
// else's. Numbers go round slowly.
func reap(process *os.Process, last func()) (*os.ProcessState, error) {
	state, err := process.Wait()
	last()
	return state, err
}

func killStrays(string) {}
