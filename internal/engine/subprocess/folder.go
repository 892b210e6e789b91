package subprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"atelier/internal/engine"
)

// prefix begins the names of folders, so that Sweep knows them.
const prefix = "atelier-job-"

// Folder is a temporary folder. Names in it are plain file names, or paths
// below it.
type Folder struct {
	path string
	root *os.Root
	lock *os.File // held for as long as somebody works in it
}

// NewFolder makes one under parent, "" for the system's place.
func NewFolder(parent string) (*Folder, error) {
	for tries := 3; ; tries-- {
		f, err := newFolder(parent)
		if err == nil || tries == 0 {
			return f, err
		}
		// Somebody may have swept it before it was locked.
	}
}

func newFolder(parent string) (*Folder, error) {
	dir, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, err
	}
	f := &Folder{path: dir}
	if f.path, err = filepath.Abs(dir); err == nil {
		f.path, err = filepath.EvalSymlinks(f.path) // as the kernel will name it
	}
	if err == nil {
		f.root, err = os.OpenRoot(f.path)
	}
	if err == nil {
		f.lock, err = hold(f.path)
	}
	if err == nil {
		_, err = os.Lstat(f.path) // still there, now that it is ours
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	return f, nil
}

// hold locks a folder, or fails where somebody else holds it. The lock goes with
// the process, however that ends.
func hold(dir string) (*os.File, error) {
	lock, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// Path gives the absolute path of a name in the folder.
func (f *Folder) Path(name ...string) string {
	return filepath.Join(append([]string{f.path}, name...)...)
}

// Make makes a sub-folder, with those above it.
func (f *Folder) Make(name string) error { return f.root.MkdirAll(name, 0o700) }

// Put copies a media input into the folder, under a name.
func (f *Folder) Put(ctx context.Context, name string, in engine.File) error {
	r, err := in.Open(ctx)
	if err != nil {
		return fmt.Errorf("open input: %w", err)
	}
	defer r.Close()
	w, err := f.create(name)
	if err != nil {
		return err
	}
	n, err := io.Copy(w, heeding(ctx, r))
	if err == nil && n < in.Size {
		err = io.ErrUnexpectedEOF
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("copy input: %w", err)
	}
	return nil
}

// reader is a function that reads.
type reader func(b []byte) (int, error)

func (r reader) Read(b []byte) (int, error) { return r(b) }

// heeding gives a reader that ends with the context.
func heeding(ctx context.Context, r io.Reader) io.Reader {
	return reader(func(b []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(b)
	})
}

// Write puts bytes into the folder, under a name.
func (f *Folder) Write(name string, data []byte) error {
	w, err := f.create(name)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return errors.Join(err, w.Close())
}

// create makes a file in place of whatever had the name: a program that ran
// before may have left a link or a pipe there.
func (f *Folder) create(name string) (*os.File, error) {
	if err := f.Make(path.Dir(filepath.ToSlash(name))); err != nil {
		return nil, err
	}
	if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// ErrIrregular is a name in the folder that is no regular file.
var ErrIrregular = errors.New("not a regular file")

// Open reads a file that the program left. It follows no link out of the
// folder, and opens regular files only.
func (f *Folder) Open(name string) (io.ReadCloser, error) {
	return f.open(name)
}

func (f *Folder) open(name string) (*os.File, error) {
	// Both looks are needed: to open a device may do something, and by the time
	// it is open the name may be another's.
	info, err := f.root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrIrregular}
	}
	file, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not block us
	if err != nil {
		return nil, err
	}
	if info, err = file.Stat(); err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrIrregular}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// List gives the names of the regular files in a sub-folder, in order.
func (f *Folder) List(sub string) ([]string, error) {
	entries, err := f.Entries(sub)
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// Entries gives all that is in a sub-folder, in the order of the names.
func (f *Folder) Entries(sub string) ([]fs.DirEntry, error) {
	dir, err := f.root.OpenFile(sub, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// holding is what a folder holds.
type holding struct {
	total   int64
	largest int64 // of its files
}

// held adds up what is in the folder, and stops where that is more than most, 0
// for never. Each entry counts as a little at least: a million empty files fill
// a disk, too.
func (f *Folder) held(most int64) (h holding) {
	const least = 1 << 10
	_ = f.walk(func(name string, d fs.DirEntry) error {
		if name == "." {
			return nil
		}
		var size int64
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
		h.total += max(size, least)
		h.largest = max(h.largest, size)
		if most > 0 && h.total > most {
			return fs.SkipAll
		}
		return nil
	})
	return h
}

// walk visits all that is in the folder, also below folders that the program
// has closed to itself and us. What is gone meanwhile is passed over.
func (f *Folder) walk(visit func(name string, d fs.DirEntry) error) error {
	return fs.WalkDir(f.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d == nil {
			return nil
		}
		if d.IsDir() {
			if info, err := d.Info(); err == nil && info.Mode().Perm()&0o700 != 0o700 {
				_ = f.root.Chmod(name, 0o700)
			}
		}
		return visit(name, d)
	})
}

// Close removes the folder with all that is in it.
func (f *Folder) Close() error {
	defer f.lock.Close()
	defer f.root.Close()
	err := os.RemoveAll(f.path)
	if err == nil {
		return nil
	}
	// Folders that nobody may write keep what is in them.
	_ = os.Chmod(f.path, 0o700) //nolint:gosec // a folder
	_ = f.walk(func(string, fs.DirEntry) error { return nil })
	return os.RemoveAll(f.path)
}

// Sweep removes folders under parent, "" for the system's place, that nobody
// works in any more: those of processes that were killed. What still runs in
// them is ended.
func Sweep(parent string) error {
	if parent == "" {
		parent = os.TempDir()
	}
	entries, err := os.ReadDir(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), prefix) {
			errs = append(errs, sweep(filepath.Join(parent, e.Name())))
		}
	}
	return errors.Join(errs...)
}

func sweep(dir string) error {
	lock, err := hold(dir)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission): // somebody's
		return nil
	case err != nil:
		return err
	}
	killStrays(dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return errors.Join(err, lock.Close())
	}
	return (&Folder{path: dir, root: root, lock: lock}).Close()
}
