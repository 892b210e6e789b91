// Package subprocess runs a program for one job: in its own folder and process
// group, with a minimal environment and with limits.
//
//	NewFolder ─▶ CopyInput ─▶ Run ─▶ OpenFile ─▶ Close
//
// No shell is involved. When the context is cancelled the whole process group
// is killed, and Run returns only when all of its processes have ended.
//
// A binary that contains this package starts other programs through a copy of
// itself (see launcher.go). Limits apply before the other program's first
// instruction, and its child processes inherit them. The limits do not cover
// the total memory and number of processes, or files that were deleted while
// open; the operating system's limits for the user must do that.
//
// If the kernel has Landlock (Linux 5.13), a program can access only its
// folder, the system's programs and libraries, and the paths that its engine
// allows. It cannot access this service's data, keys and settings, other jobs'
// folders, or other processes' environments and memory. Newer kernels (6.12)
// also keep it from sending signals to other processes. Unix sockets are not
// covered, because they have their own permissions.
package subprocess

import (
	"errors"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Limits are the resource limits of a program. Zero means no limit.
type Limits struct {
	Memory int64 // bytes of address space per process
	File   int64 // maximum size of one written file, in bytes
	Folder int64 // maximum size of the folder's content, in bytes
	// Network allows access to the machine's network. If it is false, the
	// program has no network, provided that the system can isolate it.
	Network bool
}

// Program is a program to run, with its arguments, environment and limits.
type Program struct {
	Path   string   // absolute path of the executable
	Args   []string // arguments, without the program's own name
	Env    []string // environment variables in addition to PATH, HOME, TMPDIR and LANG
	Folder *Folder  // working directory
	// Read and Write are paths that the program may access in a sandbox, in
	// addition to its folder and the system's programs and libraries. Paths
	// that do not exist are skipped.
	Read, Write []string
	Stdin       []byte
	// Line is called with each line of standard output, without the line
	// ending. Long lines are cut. If Line is nil, the output is discarded. Line
	// is called in the goroutine that called Run. While Line runs, the program
	// blocks if it writes more output than the pipe can buffer.
	Line   func(line []byte)
	Limits Limits
}

// ErrLimit matches, with errors.Is, an *Exit that was caused by a limit.
var ErrLimit = errors.New("the program exceeded a limit")

// Exit is the error of a program that ended with a failure or was killed.
type Exit struct {
	Code int    // exit code; -1 if a signal ended the program
	Why  string // reason for the log
	Tail string // end of the program's standard error

	limit bool
}

func (e *Exit) Error() string {
	if e.Tail == "" {
		return "program: " + e.Why
	}
	return "program: " + e.Why + ": " + e.Tail
}

// Is implements the interface of errors.Is: it reports whether target is
// ErrLimit and a limit caused the exit.
func (e *Exit) Is(target error) bool { return target == ErrLimit && e.limit }

// Requirement is a program or file that an engine requires.
type Requirement struct {
	Name    string // name to show to people
	Package string // Debian package that contains the program or file
	Path    string // absolute path; empty if not installed
}

// programFolders returns the folders that are searched for programs. They are
// also the PATH of the programs themselves. This process's own PATH is not
// used, because it depends on the shell that started it.
func programFolders() []string {
	usual := []string{"/usr/local/bin", "/usr/bin", "/bin"}
	if runtime.GOOS == "darwin" {
		usual = append(usual, "/opt/homebrew/bin")
	}
	return usual
}

// FindProgram returns the absolute path of a program in the usual folders. It
// returns "" if the program is not found.
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

// environmentOf returns the program's whole environment. Variables in Env
// replace the default ones.
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
