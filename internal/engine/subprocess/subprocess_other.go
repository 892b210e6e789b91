//go:build unix && !linux

package subprocess

import (
	"encoding/json"
	"os"
	"syscall"
)

func ownExecutable() (string, error) { return os.Executable() }

// startAttrs returns one way to start a program, because systems other than
// Linux cannot isolate the network.
func startAttrs(bool) []*syscall.SysProcAttr {
	return []*syscall.SysProcAttr{{Setpgid: true}}
}

func dropPrivileges() error { return nil }

// SandboxName returns "", because systems other than Linux have no sandbox.
func SandboxName() string { return "" }

func enterSandbox(text string) error {
	var a accessRules
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return err
	}
	if a.Mode == SandboxRequire {
		return syscall.ENOTSUP
	}
	return nil
}

// execProgram executes the program. Memory is not limited, because macOS
// accepts the limit but does not enforce it.
func execProgram(path string, args, env []string, _ int64) (doing string, err error) {
	return "exec", syscall.Exec(path, args, env) //nolint:gosec // running the given program is the purpose
}

// waitProcess calls last after the process has ended, when its id could
// already have been reused. That is unlikely, because ids are assigned in
// ascending order.
func waitProcess(process *os.Process, last func()) (*os.ProcessState, error) {
	state, err := process.Wait()
	last()
	return state, err
}

func killStrays(string) {}
