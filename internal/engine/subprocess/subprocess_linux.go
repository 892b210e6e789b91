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

// ownExecutable returns a path of the running executable that works even if
// its file has been replaced since the start.
func ownExecutable() (string, error) { return "/proc/self/exe", nil }

// startAttrs returns the ways to start a program, strongest isolation first.
// Several are needed because some systems, containers and users are not
// allowed to create namespaces.
//
// None of them uses a PID namespace. The program would be process 1 of the
// namespace, and process 1 ignores most signals, even those that it sends to
// itself.
func startAttrs(network bool) []*syscall.SysProcAttr {
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
	// In a user namespace any user may create the other namespaces. The
	// program keeps its user id there, and cannot inspect this process, whose
	// environment may contain passwords.
	user := plain(unix.CLONE_NEWUSER | net)
	user.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	user.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	return append(ways, user, plain(0))
}

// dropPrivileges removes privileges of the launcher before it executes the
// program. It also makes the kernel kill the program rather than this service
// when memory runs out.
func dropPrivileges() error {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0) // an error is ignored, because the program runs without this adjustment too
	// As root, the program could raise its limits again and rejoin the
	// network, so these capabilities are dropped. The capabilities for files
	// stay, because they may be the reason for running as root. Prctl fails if
	// this process does not have the capabilities itself.
	for power := range uintptr(unix.CAP_LAST_CAP + 1) {
		if power > unix.CAP_FSETID {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, power, 0, 0, 0)
		}
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// execProgram executes the program. memory is its memory limit in bytes; 0
// means no limit. execProgram returns only if it fails, with the step that
// failed.
//
// The limit also applies to the launcher and is usually below the memory that
// Go has reserved, so no memory can be allocated after it is set. Therefore
// everything is prepared before, and only raw system calls follow.
func execProgram(path string, args, env []string, memory int64) (doing string, err error) {
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

// waitProcess waits until the process has ended. It calls last while the
// process is a zombie, because then its id, which is also the id of its
// process group, cannot have been reused yet.
func waitProcess(process *os.Process, last func()) (*os.ProcessState, error) {
	for {
		err := unix.Waitid(unix.P_PID, process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	last()
	return process.Wait()
}

// killStrays kills the program's processes that have left its process group. It
// recognizes them by their working directory or their environment.
func killStrays(folder string) {
	const rounds = 10 // several, because the processes may start others meanwhile
	for range rounds {
		if !killRound(folder) {
			return
		}
	}
}

func killRound(folder string) (some bool) {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		process, err := os.FindProcess(pid) // from here on, the process id cannot be reused
		if err != nil {
			continue
		}
		if belongsToFolder(pid, folder) && process.Signal(syscall.SIGKILL) == nil {
			some = true
		}
		_ = process.Release()
	}
	return some
}

func belongsToFolder(pid int, folder string) bool {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	if at, err := os.Readlink(filepath.Join(dir, "cwd")); err == nil && (at == folder || strings.HasPrefix(at, folder+"/")) {
		return true
	}
	env, err := os.ReadFile(filepath.Join(dir, "environ"))
	return err == nil && bytes.Contains(append(env, 0), []byte("="+folder+"\x00"))
}
