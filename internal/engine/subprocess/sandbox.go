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

// SandboxMode tells what becomes of programs where the system has no sandbox.
type SandboxMode string

// The modes, as the setting engines.sandbox has them.
const (
	SandboxAuto    SandboxMode = "auto"    // they run without
	SandboxRequire SandboxMode = "require" // they do not run
	SandboxOff     SandboxMode = "off"     // there is never one
)

// Sandbox is what holds for all programs of this process.
type Sandbox struct {
	Mode SandboxMode
	// Hidden are files and folders that no program may reach, also where they
	// lie in a folder that it may read.
	Hidden []string
	// Write are files and folders that every program may read and write.
	Write []string
}

var sandbox atomic.Pointer[Sandbox]

// SetSandbox sets what holds for all programs that start from now on. Before,
// the mode is SandboxAuto. It is one for the process, so that no engine can
// forget it.
func SetSandbox(s Sandbox) { sandbox.Store(&s) }

func currentSandbox() Sandbox {
	if s := sandbox.Load(); s != nil {
		return *s
	}
	return Sandbox{Mode: SandboxAuto}
}

// systemRead are what programs may read besides their own: what is installed,
// and the parts of /etc, /proc and /sys that libraries need. Landlock itself
// keeps other processes' environments and memory in /proc from them.
var systemRead = []string{
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/opt", "/nix/store", "/gnu/store",
	"/etc/alternatives", "/etc/ca-certificates", "/etc/fonts", "/etc/group", "/etc/gai.conf", "/etc/host.conf", "/etc/hosts",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/locale.alias", "/etc/localtime", "/etc/magic",
	"/etc/mime.types", "/etc/nsswitch.conf", "/etc/OpenCL", "/etc/os-release", "/etc/passwd", "/etc/pki", "/etc/protocols",
	"/etc/resolv.conf", "/etc/services", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/timezone", "/etc/vulkan",
	"/var/cache/fontconfig", "/run/opengl-driver",
	"/proc", "/sys/bus", "/sys/class", "/sys/dev", "/sys/devices", "/sys/fs/cgroup", "/sys/kernel/mm", "/sys/module",
}

// systemWrite are devices that programs may read and write. Graphics cards are
// among them: exec programs compute with them.
var systemWrite = []string{
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty",
	"/dev/dri", "/dev/kfd", "/dev/nvidia*",
}

// access is what the launcher lets the program reach.
type access struct {
	Mode  SandboxMode `json:"mode"`
	Read  []string    `json:"read"`
	Write []string    `json:"write"`
}

// access gives what the program may reach: the system's, its own folder, its
// files, and no hidden ones.
func (p *Program) access() access {
	s := currentSandbox()
	a := access{Mode: s.Mode}
	if s.Mode == SandboxOff {
		return a
	}
	hidden := append(resolveAll(s.Hidden), p.Folder.path) // which is allowed by itself
	read := append(slices.Concat(systemRead, p.Read), p.Path)
	a.Read = exclude(resolveAll(read), hidden)
	a.Write = exclude(resolveAll(slices.Concat(systemWrite, s.Write, p.Write)), hidden)
	a.Write = append(a.Write, p.Folder.path)
	return a
}

func (a access) String() string {
	b, err := json.Marshal(a)
	if err != nil { // strings only
		panic(err)
	}
	return string(b)
}

// resolveAll gives the files and folders that paths lead to, of those that
// exist. A star stands for any part of a name.
func resolveAll(paths []string) []string {
	var all []string
	for _, path := range paths {
		found := []string{path}
		if strings.Contains(path, "*") {
			found, _ = filepath.Glob(path) // a fixed pattern
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

// exclude gives paths without the hidden ones. A folder that holds a hidden one
// is replaced by the rest of what is in it.
func exclude(paths, hidden []string) []string {
	var all []string
	for _, path := range paths {
		switch {
		case slices.ContainsFunc(hidden, func(h string) bool { return within(path, h) }):
		case slices.ContainsFunc(hidden, func(h string) bool { return within(h, path) }):
			all = append(all, exclude(entries(path), hidden)...)
		default:
			all = append(all, path)
		}
	}
	return all
}

// within reports whether path is dir or lies below it.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// entries are the paths in a folder. Folders of jobs are left out, and links:
// where they lead is allowed by itself, or not at all.
func entries(dir string) []string {
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var all []string
	for _, e := range found {
		if e.Type()&fs.ModeSymlink == 0 && !strings.HasPrefix(e.Name(), prefix) {
			all = append(all, filepath.Join(dir, e.Name()))
		}
	}
	return all
}
