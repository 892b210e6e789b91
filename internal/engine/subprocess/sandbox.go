package subprocess

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

// SandboxMode determines whether programs run in a sandbox.
type SandboxMode string

// The values of the setting engines.sandbox.
const (
	SandboxAuto    SandboxMode = "auto"    // use a sandbox if the system has one
	SandboxRequire SandboxMode = "require" // do not run programs without a sandbox
	SandboxOff     SandboxMode = "off"     // never use a sandbox
)

// Sandbox contains the sandbox rules for all programs that this process
// starts.
type Sandbox struct {
	Mode SandboxMode
	// Hidden are files and folders that no program may access, even inside a folder that it may read.
	Hidden []string
	// Write are files and folders that every program may read and write, in
	// addition to its own.
	Write []string
}

var sandbox atomic.Pointer[Sandbox]

// SetSandbox sets the rules for all programs that are started from now on.
// Before the first call the mode is SandboxAuto. The rules apply to the whole
// process, so that no engine can omit them.
func SetSandbox(s Sandbox) { sandbox.Store(&s) }

func currentSandbox() Sandbox {
	if s := sandbox.Load(); s != nil {
		return *s
	}
	return Sandbox{Mode: SandboxAuto}
}

// systemRead are paths that all programs may read: installed software, and the
// parts of /etc, /proc and /sys that libraries need. Landlock itself protects
// the environments and memory of other processes in /proc.
var systemRead = []string{
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/opt", "/nix/store", "/gnu/store",
	"/etc/alternatives", "/etc/ca-certificates", "/etc/fonts", "/etc/group", "/etc/gai.conf", "/etc/host.conf", "/etc/hosts",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/locale.alias", "/etc/localtime", "/etc/magic",
	"/etc/mime.types", "/etc/nsswitch.conf", "/etc/OpenCL", "/etc/os-release", "/etc/passwd", "/etc/pki", "/etc/protocols",
	"/etc/resolv.conf", "/etc/services", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/timezone", "/etc/vulkan",
	"/var/cache/fontconfig", "/run/opengl-driver",
	"/proc", "/sys/bus", "/sys/class", "/sys/dev", "/sys/devices", "/sys/fs/cgroup", "/sys/kernel/mm", "/sys/module",
}

// systemWrite are devices that programs may read and write, including graphics
// cards for programs that compute on them.
var systemWrite = []string{
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty",
	"/dev/dri", "/dev/kfd", "/dev/nvidia*",
}

// accessRules are the paths that the launcher allows a program to access.
type accessRules struct {
	Mode  SandboxMode `json:"mode"`
	Read  []string    `json:"read"`
	Write []string    `json:"write"`
}

// accessRules returns the paths that the program may access: the system's
// paths, its own folder and the paths of its engine, without hidden ones.
func (p *Program) accessRules() accessRules {
	s := currentSandbox()
	a := accessRules{Mode: s.Mode}
	if s.Mode == SandboxOff {
		return a
	}
	hidden := append(resolveAll(s.Hidden), p.Folder.path) // the folder gets its own rule below
	read := append(slices.Concat(systemRead, p.Read), p.Path)
	a.Read = excludePaths(resolveAll(read), hidden)
	a.Write = excludePaths(resolveAll(slices.Concat(systemWrite, s.Write, p.Write)), hidden)
	a.Write = append(a.Write, p.Folder.path)
	return a
}

func (a accessRules) String() string {
	b, err := json.Marshal(a)
	if err != nil { // marshalling strings cannot fail
		panic(err)
	}
	return string(b)
}

// resolveAll resolves symbolic links in paths and returns those that exist. A
// star in a path matches any part of a name.
func resolveAll(paths []string) []string {
	var all []string
	for _, path := range paths {
		found := []string{path}
		if strings.Contains(path, "*") {
			found, _ = filepath.Glob(path) // never fails, because the patterns are constants
		}
		for _, one := range found {
			if !filepath.IsAbs(one) {
				continue
			}
			if real, err := filepath.EvalSymlinks(one); err == nil {
				all = append(all, real)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// excludePaths returns paths without the hidden ones. A folder that contains a
// hidden path is replaced by its other entries.
func excludePaths(paths, hidden []string) []string {
	var all []string
	for _, path := range paths {
		switch {
		case slices.ContainsFunc(hidden, func(h string) bool { return isWithin(path, h) }):
		case slices.ContainsFunc(hidden, func(h string) bool { return isWithin(h, path) }):
			all = append(all, excludePaths(listPaths(path), hidden)...)
		default:
			all = append(all, path)
		}
	}
	return all
}

// isWithin reports whether path is equal to dir or below it.
func isWithin(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// listPaths returns the paths of a folder's entries, without jobs' folders and
// symbolic links. The target of a link needs a rule of its own.
func listPaths(dir string) []string {
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var all []string
	for _, e := range found {
		if e.Type()&fs.ModeSymlink == 0 && !strings.HasPrefix(e.Name(), folderPrefix) {
			all = append(all, filepath.Join(dir, e.Name()))
		}
	}
	return all
}
