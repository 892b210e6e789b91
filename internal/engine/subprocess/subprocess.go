// Package subprocess runs a program for one job: in its own folder and process
// group, with a minimal environment and with limits.
//
//	NewFolder ─▶ CopyInput ─▶ Run ─▶ OpenFile ─▶ Close
//
// No shell is involved. When the context ends the whole group is killed, and Run
// returns only when all of its processes have ended.
//
// A binary with this package starts other programs through itself (see launcher.go). Limits apply
// before the other program's first instruction, and its children inherit them. They do not limit
// the total memory and number of processes, or files that were deleted while open; the operating
// system's limits for the account must do that.
//
// If the kernel has Landlock (Linux 5.13), a program can access only its folder,
// the system's programs and libraries, and the paths that its engine names: not
// this service's data, keys and settings, other jobs' folders, or other processes'
// environments and memory. Newer kernels (6.12) also keep it from sending signals
// to other processes. Unix sockets are not covered: they have permissions of
// their own.
package subprocess

import (
	"errors"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Limits are the limits of a program. Zero is no limit.
type Limits struct {
	Memory int64 // bytes of address space per process
	File   int64 // bytes of one written file
	Folder int64 // bytes of the folder's content
	// Network allows the machine's network. Without it the program has no network, if the system
	// supports that.
	Network bool
}

// Program is a program to run.
type Program struct {
	Path   string   // absolute
	Args   []string // without the program's own name
	Env    []string // besides PATH, HOME, TMPDIR and LANG
	Folder *Folder  // its working directory
	// Read and Write are paths that the program may access in a sandbox, besides its folder and the
	// system's programs and libraries. Missing paths are skipped.
	Read, Write []string
	Stdin       []byte
	// Line is called with each line of standard output, without the line ending; nil drops them. Long
	// lines are cut. It is called by the goroutine that called Run, and the program waits for it.
	Line   func(line []byte)
	Limits Limits
}

// ErrLimit matches an Exit that was caused by a limit.
var ErrLimit = errors.New("limit exceeded")

// Exit is the error of a program that did not succeed.
type Exit struct {
	Code int    // -1 if a signal ended it
	Why  string // reason, for the log
	Tail string // end of its standard error

	limit bool
}

func (e *Exit) Error() string {
	if e.Tail == "" {
		return "program: " + e.Why
	}
	return "program: " + e.Why + ": " + e.Tail
}

// Is reports whether target is ErrLimit and a limit caused the exit.
func (e *Exit) Is(target error) bool { return target == ErrLimit && e.limit }

// Requirement is a program or file that an engine requires.
type Requirement struct {
	Name    string // for people
	Package string // Debian package that contains it
	Path    string // "": missing
}

// programFolders are the folders in which programs are searched, also by the programs themselves.
// This process's own PATH is not used, because it depends on the shell that started it.
func programFolders() []string {
	usual := []string{"/usr/local/bin", "/usr/bin", "/bin"}
	if runtime.GOOS == "darwin" {
		usual = append(usual, "/opt/homebrew/bin")
	}
	return usual
}

// FindProgram returns the absolute path of a program in the usual folders. "": not found.
func FindProgram(name string) string {
	if name == "" || strings.ContainsRune(name, '/') {
		return ""
	}
	for _, dir := range programFolders() {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	return ""
}

// environmentOf returns the program's whole environment. If a name occurs twice, programs use the
// first.
func (p *Program) environmentOf() []string {
	home := p.Folder.path
	env := slices.Clone(p.Env)
	for _, usual := range []string{"PATH=" + strings.Join(programFolders(), ":"), "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8"} {
		name, _, _ := strings.Cut(usual, "=")
		if !slices.ContainsFunc(p.Env, func(own string) bool { return strings.HasPrefix(own, name+"=") }) {
			env = append(env, usual)
		}
	}
	return env
}
