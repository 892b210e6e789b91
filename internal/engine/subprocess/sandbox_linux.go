package subprocess

import (
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	readAccess  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeAccess = readAccess | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	// fileAccess are the Landlock access rights that apply to files.
	fileAccess = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	devices = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK // no program may create device files
)

// landlockVersion returns the kernel's version of Landlock. It returns 0 if
// the kernel has no Landlock.
func landlockVersion() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// SandboxName returns the name and version of the system's sandbox. It returns
// "" if the system has none.
func SandboxName() string {
	version := landlockVersion()
	if version == 0 {
		return ""
	}
	return "Landlock " + strconv.Itoa(version)
}

// enterSandbox restricts this thread, and the program that it executes, to the
// paths in the access rules, which text contains as JSON. The restriction
// cannot be undone.
func enterSandbox(text string) error {
	var a accessRules
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return err
	}
	if a.Mode == SandboxOff {
		return nil
	}
	version := landlockVersion()
	if version == 0 {
		if a.Mode == SandboxRequire {
			return unix.EOPNOTSUPP
		}
		return nil
	}

	handled := uint64(writeAccess | devices)
	attr := unix.LandlockRulesetAttr{}
	switch {
	case version < 2:
		handled &^= unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	case version < 3:
		handled &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	case version < 5:
		handled &^= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	case version >= 6:
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	attr.Handled_access_fs = handled

	// Only the first fields of the struct are passed, because older kernels
	// accept no others.
	size := unsafe.Offsetof(attr.Quiet_access_fs)
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0) //nolint:gosec // as the kernel wants it
	if errno != 0 {
		return errno
	}
	defer func() { _ = unix.Close(int(ruleset)) }()
	for _, path := range a.Read {
		if err := addRule(int(ruleset), path, readAccess&handled); err != nil {
			return err
		}
	}
	for _, path := range a.Write {
		if err := addRule(int(ruleset), path, writeAccess&handled); err != nil {
			return err
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// addRule adds a path and its access rights to a Landlock ruleset. It skips
// paths that do not exist or cannot be accessed.
func addRule(ruleset int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileAccess
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0) //nolint:gosec // as the kernel wants it
	if errno != 0 {
		return errno
	}
	return nil
}
