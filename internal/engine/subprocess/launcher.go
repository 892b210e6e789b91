package subprocess

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// launcher is the name under which we start ourselves.
const launcher = "atelier-launcher"

// statusFile is where the launcher tells what kept it from its work. It closes
// when the program runs.
const statusFile = 3

// A process cannot be given limits from outside before its first instruction:
// there is no such option to fork, tracing it is forbidden in many containers,
// and limits set a moment later miss what it started by then. So we start
// ourselves, the copy limits itself, and becomes the program.
//
// It happens here, while packages are set up, and not in a function that main
// has to call: where main did not, the copy would do main's work once more, and
// a test would start all tests again, and so on. It also comes before packages
// with more to do than this one, and takes a few milliseconds.
var _ = become(os.Args)

// become never returns in a launcher, and does nothing elsewhere. The arguments
// are the launcher's name, the limits of memory and of files, what the program
// may reach, the program and its arguments.
func become(args []string) struct{} {
	if len(args) < 5 || args[0] != launcher {
		return struct{}{}
	}
	closeOnExec()
	memory, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		fail("read the limits", err)
	}
	file, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		fail("read the limits", err)
	}
	if err := confine(); err != nil {
		fail("confine", err)
	}
	if err := limit(syscall.RLIMIT_CORE, 0); err != nil {
		fail("limit core files", err)
	}
	if file > 0 {
		if err := limit(syscall.RLIMIT_FSIZE, file); err != nil {
			fail("limit files", err)
		}
	}
	if err := limit(syscall.RLIMIT_NOFILE, 1024); err != nil {
		fail("limit open files", err)
	}
	runtime.LockOSThread() // the sandbox is this thread's until it becomes the program
	if err := enterSandbox(args[3]); err != nil {
		fail("enter the sandbox", err)
	}
	fail(execute(args[4], args[4:], os.Environ(), memory))
	return struct{}{}
}

// closeOnExec keeps files from the program that we have open ourselves: ours do
// not go on, but those that we were started with do.
func closeOnExec() {
	syscall.CloseOnExec(statusFile)
	entries, _ := os.ReadDir("/dev/fd") // what is not listed is not there
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

// limit sets a limit that the program cannot raise again, and that raises none
// which holds already.
func limit(what int, most int64) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(what, &now); err != nil {
		return err
	}
	now.Max = min(now.Max, uint64(most))
	now.Cur = min(now.Cur, now.Max)
	return syscall.Setrlimit(what, &now)
}

// fail ends the launcher.
func fail(doing string, err error) {
	errno, _ := errors.AsType[syscall.Errno](err)
	fmt.Fprintf(os.NewFile(statusFile, "status"), "%d %s\n", int(errno), doing)
	os.Exit(127)
}

// launched reads what a launcher had to tell: nothing where the program ran.
func launched(status []byte, path string) error {
	number, doing, ok := strings.Cut(strings.TrimSpace(string(status)), " ")
	if !ok {
		return nil
	}
	errno, _ := strconv.Atoi(number) // 0 is an error without a number
	return &fs.PathError{Op: doing, Path: path, Err: syscall.Errno(errno)}
}

// command is how the launcher is called for the program.
func (p *Program) command() []string {
	return append([]string{
		launcher,
		strconv.FormatInt(p.Limits.Memory, 10),
		strconv.FormatInt(p.Limits.File, 10),
		p.access().String(),
		p.Path,
	}, p.Args...)
}
