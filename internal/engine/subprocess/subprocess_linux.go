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

// ownExecutable returns the running executable, also if its file was replaced since.
func ownExecutable() (string, error) { return "/proc/self/exe", nil }

// startAttrs returns the ways to start a program, strongest isolation first. Some systems,
// containers and accounts do not allow namespaces.
//
// There is no PID namespace: in one, the program would be process 1, which ignores most signals,
// its own included.
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
	// In a user namespace any account may create the other namespaces. The program
	// keeps its user there, and cannot inspect this process, whose environment may
	// contain secrets.
	user := plain(unix.CLONE_NEWUSER | net)
	user.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	user.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	return append(ways, user, plain(0))
}

// dropPrivileges removes privileges of the launcher before it executes the program. If memory runs
// out, the kernel should kill the program and not this service.
func dropPrivileges() error {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0) // best effort
	// Root could raise its limits again and rejoin the network. Its capabilities on
	// files stay, because they may be the reason for running as root. The call
	// fails if this process does not have the capabilities itself.
	for power := range uintptr(unix.CAP_LAST_CAP + 1) {
		if power > unix.CAP_FSETID {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, power, 0, 0, 0)
		}
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// execProgram executes the program, with a limit on its memory unless that is 0. It returns only
// on failure, with the failed step.
//
// The limit also applies to the launcher and is mostly below Go's reserved memory: after it is
// set, no memory can be allocated. So everything is prepared before, and only raw system calls
// follow.
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

// waitProcess waits for the process's end, and calls last while the process is a zombie, so that
// its id, which is also its group's, cannot be reused yet.
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

// killStrays kills processes that left the program's group. They are recognized by their working
// directory or their environment.
func killStrays(folder string) {
	const rounds = 10 // they may start others meanwhile
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
		process, err := os.FindProcess(pid) // from here on, the id cannot be reused
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
