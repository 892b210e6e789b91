package subprocess

import (
	"errors"
	"os"
	"syscall"
)

// errWindows is the error of Run on Windows: a program there could be given
// neither limits nor a process group before its first instruction.
var errWindows = errors.New("programs cannot be run on Windows")

func checkSystem() error { return errWindows }

// SandboxName returns "", because Windows has no sandbox.
func SandboxName() string { return "" }

// The functions below are never called, because checkSystem fails.

func ownExecutable() (string, error) { return "", errWindows }

func startAttrs(bool) []*syscall.SysProcAttr { return nil }

func killGroup(int) {}

func endedByFileLimit(*os.ProcessState) bool { return false }

func waitProcess(process *os.Process, last func()) (*os.ProcessState, error) {
	state, err := process.Wait()
	last()
	return state, err
}

func killStrays(string) {}
