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

	"atelier/internal/base/osfile"
	"atelier/internal/engine"
)

// folderPrefix is the prefix of the names of jobs' folders, by which Sweep
// recognizes them.
const folderPrefix = "atelier-job-"

// Folder is the temporary folder of a job's program. Names of its files are
// relative paths.
type Folder struct {
	path string
	root *os.Root
	lock *os.File // locked while the folder is in use
}

// NewFolder creates a folder in parent. If parent is empty, it uses the
// system's temporary folder.
func NewFolder(parent string) (*Folder, error) {
	for tries := 3; ; tries-- {
		f, err := newFolder(parent)
		if err == nil || tries == 0 {
			return f, err
		}
		// Retry, because another process may have deleted the folder before it
		// was locked.
	}
}

func newFolder(parent string) (*Folder, error) {
	dir, err := os.MkdirTemp(parent, folderPrefix)
	if err != nil {
		return nil, err
	}
	f := &Folder{path: dir}
	if f.path, err = filepath.Abs(dir); err == nil {
		f.path, err = filepath.EvalSymlinks(f.path) // the path without symbolic links, as the kernel reports it
	}
	if err == nil {
		f.root, err = os.OpenRoot(f.path)
	}
	if err == nil {
		f.lock, err = lockFolder(f.path)
	}
	if err == nil {
		_, err = os.Lstat(f.path) // checks that the folder still exists now that it is locked
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	return f, nil
}

// lockFolder locks a folder. It fails if another process has locked it. The
// lock is released when the process ends, even if the process is killed.
func lockFolder(dir string) (*os.File, error) {
	lock, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := osfile.TryLock(lock); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// FilePath returns the absolute path of a file in the folder.
func (f *Folder) FilePath(name ...string) string {
	return filepath.Join(append([]string{f.path}, name...)...)
}

// MakeFolder creates a sub-folder and its parents.
func (f *Folder) MakeFolder(name string) error { return f.root.MkdirAll(name, 0o700) }

// CopyInput copies an input file of a job into the folder, as the file called
// name.
func (f *Folder) CopyInput(ctx context.Context, name string, in engine.File) error {
	r, err := in.Open(ctx)
	if err != nil {
		return fmt.Errorf("open input: %w", err)
	}
	defer r.Close()
	w, err := f.createFile(name)
	if err != nil {
		return err
	}
	n, err := io.Copy(w, cancelReader(ctx, r))
	if err == nil && n < in.Size {
		err = io.ErrUnexpectedEOF
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("copy input: %w", err)
	}
	return nil
}

// readerFunc is a function that implements io.Reader.
type readerFunc func(b []byte) (int, error)

func (r readerFunc) Read(b []byte) (int, error) { return r(b) }

// cancelReader returns a reader that fails when ctx is cancelled.
func cancelReader(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(b []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(b)
	})
}

// Write writes data to a file in the folder, and replaces an existing file.
func (f *Folder) Write(name string, data []byte) error {
	w, err := f.createFile(name)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return errors.Join(err, w.Close())
}

// createFile creates a file and replaces any entry of that name, because an
// earlier program may have left a symbolic link or a pipe there.
func (f *Folder) createFile(name string) (*os.File, error) {
	if err := f.MakeFolder(path.Dir(filepath.ToSlash(name))); err != nil {
		return nil, err
	}
	if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// ErrIrregular is the error for an entry of the folder that is not a regular
// file.
var ErrIrregular = errors.New("not a regular file")

// OpenFile opens a file that the program wrote. It follows no symbolic link
// out of the folder, and opens only regular files.
func (f *Folder) OpenFile(name string) (io.ReadCloser, error) {
	return f.openRegular(name)
}

func (f *Folder) openRegular(name string) (*os.File, error) {
	// The file is checked before and after it is opened: opening a device may
	// have side effects, and the entry may be replaced between the first check
	// and the opening.
	info, err := f.root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrIrregular}
	}
	file, err := f.root.OpenFile(name, os.O_RDONLY|osfile.NonBlocking, 0) // O_NONBLOCK, because opening a pipe must not block
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

// ListEntries returns all entries of a sub-folder, sorted by name.
func (f *Folder) ListEntries(sub string) ([]fs.DirEntry, error) {
	dir, err := f.root.OpenFile(sub, os.O_RDONLY|osfile.NonBlocking|osfile.Directory, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// folderUsage is the size of a folder's content, in bytes.
type folderUsage struct {
	total   int64
	largest int64 // size of the largest file
}

// measureUsage adds up the sizes of the folder's files. It stops when the
// total exceeds maxBytes; 0 means no limit. Each entry counts as at least 1
// KiB, because a million empty files also fill a disk.
func (f *Folder) measureUsage(maxBytes int64) (h folderUsage) {
	const least = 1 << 10
	_ = f.walkEntries(func(name string, d fs.DirEntry) error {
		if name == "." {
			return nil
		}
		var size int64
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
		h.total += max(size, least)
		h.largest = max(h.largest, size)
		if maxBytes > 0 && h.total > maxBytes {
			return fs.SkipAll
		}
		return nil
	})
	return h
}

// walkEntries visits all entries of the folder, including those in sub-folders
// whose permissions the program has removed. It skips entries that disappear
// meanwhile.
func (f *Folder) walkEntries(visit func(name string, d fs.DirEntry) error) error {
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

// Close deletes the folder and its content.
func (f *Folder) Close() error {
	defer f.lock.Close()
	defer func() { _ = f.root.Close() }()
	err := os.RemoveAll(f.path)
	if err == nil {
		return nil
	}
	// Permissions are restored first, because the content of a folder without
	// write permission cannot be deleted.
	_ = os.Chmod(f.path, 0o700) //nolint:gosec // a folder
	_ = f.walkEntries(func(string, fs.DirEntry) error { return nil })
	return os.RemoveAll(f.path)
}

// Sweep deletes the folders in parent that killed processes left behind, and
// kills programs that still run in them. If parent is empty, it uses the
// system's temporary folder.
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
		if e.IsDir() && strings.HasPrefix(e.Name(), folderPrefix) {
			errs = append(errs, removeUnlocked(filepath.Join(parent, e.Name())))
		}
	}
	return errors.Join(errs...)
}

func removeUnlocked(dir string) error {
	lock, err := lockFolder(dir)
	switch {
	case errors.Is(err, osfile.ErrLocked), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission): // the folder is in use, no longer exists, or belongs to another user
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
