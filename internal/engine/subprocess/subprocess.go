// Package subprocess runs a program for one job: in a folder of its own, in a
// process group of its own, with little in its environment and limits on what
// it can take.
//
//	NewFolder ─▶ Put the inputs ─▶ Run ─▶ Open the results ─▶ Close
//
// There is never a shell. When the context ends the whole group is killed, and
// Run returns only when it is gone.
//
// A program that has this package in it starts others through itself: see
// launch. Limits hold before the other program's first instruction, and its
// own children inherit them. What they do not bound: memory and processes in
// all, and files that were removed while open. That is for the account that we
// run as, and the system.
//
// Where the kernel has Landlock (Linux 5.13), a program reaches only its folder,
// the system's programs and libraries, and what its engine names: not our data,
// keys and settings, nor other jobs' folders, nor other processes' environments
// and memory. Newer kernels also keep it from sending signals to others (6.12).
// Sockets of the file system are not covered: they have permissions of their
// own.
package subprocess

import (
	"errors"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Limits bound a program. Zero is no limit.
type Limits struct {
	Memory int64 // bytes of address space, of each process
	File   int64 // bytes of one file that it writes
	Folder int64 // bytes that its folder may hold
	// Network lets it have the machine's network. Without, it gets none where
	// the system allows to take it away.
	Network bool
}

// Program is what to run.
type Program struct {
	Path   string   // absolute
	Args   []string // without the program's own name
	Env    []string // all that it gets besides PATH, HOME, TMPDIR and LANG
	Folder *Folder  // where it runs
	// Read and Write are what it may reach besides its folder and the system's
	// programs and libraries, where the system has a sandbox. What does not
	// exist is left out.
	Read, Write []string
	Stdin       []byte
	// Line is called with each line of its standard output, without the end of
	// the line; nil drops them. Long lines are cut. It is called by the
	// goroutine that called Run, and the program waits for it.
	Line   func(line []byte)
	Limits Limits
}

// ErrLimit is what an Exit is where a limit ended the program.
var ErrLimit = errors.New("over a limit")

// Exit is a program that ended other than well.
type Exit struct {
	Code int    // -1 where a signal ended it
	Why  string // in words, for the log
	Tail string // the end of its standard error

	limit bool
}

func (e *Exit) Error() string {
	if e.Tail == "" {
		return "program: " + e.Why
	}
	return "program: " + e.Why + ": " + e.Tail
}

// Is tells ErrLimit.
func (e *Exit) Is(target error) bool { return target == ErrLimit && e.limit }

// Need is a program or file that an engine cannot work without.
type Need struct {
	Name    string // as people know it
	Package string // that brings it, on Debian
	Path    string // where it is, "" where it is missing
}

// places are where programs are looked for, by us and by those that we run. We
// do not take our own PATH: it is whatever somebody's shell had.
func places() []string {
	usual := []string{"/usr/local/bin", "/usr/bin", "/bin"}
	if runtime.GOOS == "darwin" {
		usual = append(usual, "/opt/homebrew/bin")
	}
	return usual
}

// Find gives the absolute path of a program in the usual places, "" for none.
func Find(name string) string {
	if name == "" || strings.ContainsRune(name, '/') {
		return ""
	}
	for _, dir := range places() {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	return ""
}

// environment is all that the program gets. Of two with one name it is the
// first that programs find.
func (p *Program) environment() []string {
	home := p.Folder.path
	env := slices.Clone(p.Env)
	for _, usual := range []string{"PATH=" + strings.Join(places(), ":"), "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8"} {
		name, _, _ := strings.Cut(usual, "=")
		if !slices.ContainsFunc(p.Env, func(own string) bool { return strings.HasPrefix(own, name+"=") }) {
			env = append(env, usual)
		}
	}
	return env
}
