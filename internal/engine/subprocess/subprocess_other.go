//go:build !linux

package subprocess

import (
	"encoding/json"
	"os"
	"syscall"
)

func self() (string, error) { return os.Executable() }

// isolation has one way here: the network cannot be taken away.
func isolation(bool) []*syscall.SysProcAttr {
	return []*syscall.SysProcAttr{{Setpgid: true}}
}

func confine() error { return nil }

// SandboxName is "": there is no sandbox here.
func SandboxName() string { return "" }

func enterSandbox(text string) error {
	var a access
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return err
	}
	if a.Mode == SandboxRequire {
		return syscall.ENOTSUP
	}
	return nil
}

// execute becomes the program. Memory is not limited: macOS takes that limit and
// does not hold it.
func execute(path string, args, env []string, _ int64) (doing string, err error) {
	return "exec", syscall.Exec(path, args, env) //nolint:gosec // to run what Run was given is all we are for
}

// reap calls last when the process is gone, and its number might be somebody
// else's. Numbers go round slowly.
func reap(process *os.Process, last func()) (*os.ProcessState, error) {
	state, err := process.Wait()
	last()
	return state, err
}

func killStrays(string) {}
