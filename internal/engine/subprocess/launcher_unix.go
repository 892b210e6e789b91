//go:build unix

package subprocess

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// A process cannot be given limits from outside before its first instruction:
// fork has no such option, tracing is forbidden in many containers, and limits
// that are set later miss child processes that it has already started. So this
// program starts a copy of itself, the launcher, which limits itself and then
// executes the other program.
//
// This happens during package initialization and not in a function that main
// has to call: if main did not call it, the copy would do main's work again,
// and a test would start all tests again without end. It also runs before most
// other packages are initialized, and takes a few milliseconds.
var _ = runAsLauncher(os.Args)

// runAsLauncher limits this process and executes the program if this process is
// a launcher; in this case it never returns. In other processes it does
// nothing. The arguments are the launcher's name, the memory limit and the file
// size limit in bytes, the access rules, the program and its arguments.
func runAsLauncher(args []string) struct{} {
	if len(args) < 5 || args[0] != launcher {
		return struct{}{}
	}
	closeOnExec()
	memory, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		exitLauncher("read the limits", err)
	}
	file, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		exitLauncher("read the limits", err)
	}
	if err := dropPrivileges(); err != nil {
		exitLauncher("drop privileges", err)
	}
	if err := setLimit(syscall.RLIMIT_CORE, 0); err != nil {
		exitLauncher("limit the size of core files", err)
	}
	if file > 0 {
		if err := setLimit(syscall.RLIMIT_FSIZE, file); err != nil {
			exitLauncher("limit the size of files", err)
		}
	}
	if err := setLimit(syscall.RLIMIT_NOFILE, 1024); err != nil {
		exitLauncher("limit the number of open files", err)
	}
	runtime.LockOSThread() // the sandbox applies to this thread, which must also execute the program
	if err := enterSandbox(args[3]); err != nil {
		exitLauncher("enter the sandbox", err)
	}
	exitLauncher(execProgram(args[4], args[4:], os.Environ(), memory))
	return struct{}{}
}

// closeOnExec marks all open file descriptors above 2 to be closed when the
// program is executed. Otherwise the program would inherit files that this
// process was started with.
func closeOnExec() {
	syscall.CloseOnExec(statusFile)
	entries, _ := os.ReadDir("/dev/fd") // a descriptor that is not listed is not open
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

// setLimit sets a resource limit of this process, which the program cannot
// raise again. It never raises an existing limit.
func setLimit(what int, maxValue int64) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(what, &now); err != nil {
		return err
	}
	now.Max = min(now.Max, uint64(maxValue))
	now.Cur = min(now.Cur, now.Max)
	return syscall.Setrlimit(what, &now)
}

// exitLauncher reports an error to the parent process and ends the launcher.
// doing is the step that failed.
func exitLauncher(doing string, err error) {
	errno, _ := errors.AsType[syscall.Errno](err)
	fmt.Fprintf(os.NewFile(statusFile, "status"), "%d %s\n", int(errno), doing)
	os.Exit(127)
}
