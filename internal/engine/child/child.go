// Package child runs a program for one job: in a folder of its own, in a
// process group of its own, with little in its environment and limits on what
// it can take.
//
//	NewFolder ─▶ Put the inputs ─▶ Run ─▶ Open the results ─▶ Close
//
// There is never a shell. When the context ends the whole group is killed, and
// Run returns only when it is gone.
package child

import (
	"context"
	"io"
	"os"

	"atelier/internal/engine"
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
	Stdin  []byte
	// Line is called with each line of its standard output, without the end of
	// the line; nil drops them. Long lines are cut.
	Line   func(line []byte)
	Limits Limits
}

// Exit is a program that ended other than well.
type Exit struct {
	Code int    // -1 where a signal ended it
	Why  string // in words, for the log
	Tail string // the end of its standard error
}

func (e *Exit) Error() string { return "program: " + e.Why + ": " + e.Tail }

// Run runs the program to its end. What ends it early is the context, or a
// limit; other failures of the program itself are an *Exit.
func Run(ctx context.Context, p Program) error { panic("to be written") }

// Find gives the absolute path of a program in the usual places, "" for none.
func Find(name string) string { panic("to be written") }

// Folder is a temporary folder. Names in it are plain file names, or paths
// below it.
type Folder struct {
	path string
	root *os.Root
}

// NewFolder makes one under parent, "" for the system's place.
func NewFolder(parent string) (*Folder, error) { panic("to be written") }

// Path gives the absolute path of a name in the folder.
func (f *Folder) Path(name ...string) string { panic("to be written") }

// Put copies a media input into the folder, under a name.
func (f *Folder) Put(ctx context.Context, name string, in engine.File) error { panic("to be written") }

// Write puts bytes into the folder, under a name.
func (f *Folder) Write(name string, data []byte) error { panic("to be written") }

// Open reads a file that the program left. It follows no link out of the
// folder, and opens regular files only.
func (f *Folder) Open(name string) (io.ReadCloser, error) { panic("to be written") }

// List gives the names of the regular files in a sub-folder, in order.
func (f *Folder) List(sub string) ([]string, error) { panic("to be written") }

// Close removes the folder with all that is in it.
func (f *Folder) Close() error { panic("to be written") }

// Need is a program or file that an engine cannot work without.
type Need struct {
	Name    string // as people know it
	Package string // that brings it, on Debian
	Path    string // where it is, "" where it is missing
}
