package subprocess

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// self is the program that we are, also where its file was replaced since.
func self() (string, error) { return "/proc/self/exe", nil }

// isolation gives the ways to start a program, best first. Not every system,
// container or account may make namespaces.
//
// There is none for processes: in one of its own the program would be the first
// process, which ignores most signals, its own included.
func isolation(network bool) []*syscall.SysProcAttr {
	net := uintptr(unix.CLONE_NEWNET)
	if network {
		net = 0
	}
	plain := func(flags uintptr) *syscall.SysProcAttr {
		return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: flags}
	}
	if os.Geteuid() == 0 && network {
		return []*syscall.SysProcAttr{plain(0)}
	}
	var ways []*syscall.SysProcAttr
	if os.Geteuid() == 0 {
		ways = append(ways, plain(net))
	}
	// In a user namespace everybody may make the others. The program stays who
	// it is there, and cannot look into us: our environment may hold secrets.
	user := plain(unix.CLONE_NEWUSER | net)
	user.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	user.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	return append(ways, user, plain(0))
}

// confine takes from the launcher what the program is not to have. Where memory
// runs out, the kernel shall end the program and not us.
func confine() error {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0) // a wish
	// Root could raise its limits again and go back to the network. It keeps
	// its power over files, which may be why we run as root. It fails where we
	// do not have such powers ourselves.
	for power := range uintptr(unix.CAP_LAST_CAP + 1) {
		if power > unix.CAP_FSETID {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, power, 0, 0, 0)
		}
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// execute becomes the program, with a limit on its memory where that is not 0. It
// returns only where that fails, with what did.
//
// The limit holds for us, too, and is mostly below what Go has reserved: from the
// moment it is set there is no memory to be had any more. So all that is needed
// is made before, and what comes after are bare calls of the kernel.
func execute(path string, args, env []string, memory int64) (doing string, err error) {
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return "exec", err
	}
	argv, err := syscall.SlicePtrFromStrings(args)
	if err != nil {
		return "exec", err
	}
	envv, err := syscall.SlicePtrFromStrings(env)
	if err != nil {
		return "exec", err
	}
	if memory > 0 {
		var most syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_AS, &most); err != nil {
			return "limit memory", err
		}
		most.Max = min(most.Max, uint64(memory))
		most.Cur = min(most.Cur, most.Max)
		if _, _, errno := syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, syscall.RLIMIT_AS, uintptr(unsafe.Pointer(&most)), 0, 0, 0); errno != 0 { //nolint:gosec // as the kernel wants it
			return "limit memory", errno
		}
	}
	_, _, errno := syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envv[0]))) //nolint:gosec // as the kernel wants it
	return "exec", errno
}

// reap waits for the process's end, and calls last while it is a zombie: its
// number, which is also its group's, is nobody else's then.
func reap(process *os.Process, last func()) (*os.ProcessState, error) {
	for {
		err := unix.Waitid(unix.P_PID, process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	last()
	return process.Wait()
}

// killStrays ends processes that left the program's group: they are known by
// the folder that they work in, or have in their environment.
func killStrays(folder string) {
	const rounds = 10 // they may start others while we look
	for range rounds {
		if !killSome(folder) {
			return
		}
	}
}

func killSome(folder string) (some bool) {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		process, err := os.FindProcess(pid) // from here on, the number can be nobody else's
		if err != nil {
			continue
		}
		if works(pid, folder) && process.Signal(syscall.SIGKILL) == nil {
			some = true
		}
		process.Release()
	}
	return some
}

func works(pid int, folder string) bool {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	if at, err := os.Readlink(filepath.Join(dir, "cwd")); err == nil && (at == folder || strings.HasPrefix(at, folder+"/")) {
		return true
	}
	env, err := os.ReadFile(filepath.Join(dir, "environ"))
	return err == nil && bytes.Contains(append(env, 0), []byte("="+folder+"\x00"))
}
