package subprocess_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/subprocess"
)

func TestPutAndOpen(t *testing.T) {
	t.Parallel()
	f := folder(t)
	if err := f.CopyInput(t.Context(), "in/a.png", enginetest.FileFromBytes("image/png", []byte("picture"))); err != nil {
		t.Fatal(err)
	}
	if got := read(t, f, "in/a.png"); got != "picture" {
		t.Errorf("in/a.png = %q", got)
	}
	if b, err := os.ReadFile(f.FilePath("in", "a.png")); err != nil || string(b) != "picture" {
		t.Errorf("file = %q, %v", b, err)
	}
	info, err := os.Stat(f.FilePath())
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder = %v, %v; want 0700", info.Mode(), err)
	}
}

func TestPutFails(t *testing.T) {
	t.Parallel()
	f := folder(t)
	short := enginetest.FileFromBytes("image/png", []byte("picture"))
	short.Size++
	if err := f.CopyInput(t.Context(), "short", short); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("put = %v, want that it is too short", err)
	}
	missing := errors.New("missing")
	if err := f.CopyInput(t.Context(), "missing", engine.File{Open: func(context.Context) (io.ReadCloser, error) { return nil, missing }}); !errors.Is(err, missing) {
		t.Errorf("put = %v, want the file's error", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	endless := engine.File{Open: func(context.Context) (io.ReadCloser, error) {
		cancel()
		return os.Open("/dev/zero")
	}}
	if err := f.CopyInput(ctx, "endless", endless); !errors.Is(err, context.Canceled) {
		t.Errorf("put = %v, want the context's end", err)
	}
}

func TestNothingOutsideIsOpened(t *testing.T) {
	t.Parallel()
	f := folder(t)
	outside := filepath.Join(filepath.Dir(f.FilePath()), "outside")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Write("inside", []byte("fine")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(
		os.Symlink(outside, f.FilePath("absolute")),
		os.Symlink("../outside", f.FilePath("relative")),
		os.Symlink("..", f.FilePath("parent")),
		os.Symlink("inside", f.FilePath("link")),
		os.Symlink("loop", f.FilePath("loop")),
		os.Mkdir(f.FilePath("folder"), 0o700),
		syscall.Mkfifo(f.FilePath("pipe"), 0o600),
		os.Symlink("pipe", f.FilePath("to-pipe")),
		os.Symlink("/dev/zero", f.FilePath("zero")),
	); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ".", "..", "../outside", outside, "absolute", "relative", "parent/outside", "loop", "folder", "folder/../../outside", "pipe", "to-pipe", "zero", "missing", "a\x00b"} {
		if r, err := f.OpenFile(name); err == nil {
			b, _ := io.ReadAll(io.LimitReader(r, 100))
			r.Close()
			t.Errorf("open %q = %q, want an error", name, b)
		}
	}
	if got := read(t, f, "link"); got != "fine" {
		t.Errorf("link = %q", got)
	}
	for _, name := range []string{"..", "parent", "/", "inside", "pipe", "missing"} {
		if names, err := listFiles(f, name); err == nil {
			t.Errorf("list %q = %q, want an error", name, names)
		}
	}
	names, err := listFiles(f, ".")
	if want := []string{"inside"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("list = %q, %v; want %q", names, err, want)
	}
	for _, name := range []string{"../outside", outside, "parent/outside"} {
		if err := f.Write(name, []byte("changed")); err == nil {
			t.Errorf("write %q = nil, want an error", name)
		}
	}
	for _, name := range []string{"absolute", "relative", "pipe"} { // the name is a new file
		if err := f.Write(name, []byte("own")); err != nil || read(t, f, name) != "own" {
			t.Errorf("write %q = %v", name, err)
		}
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "secret" {
		t.Errorf("outside = %q, %v", b, err)
	}
}

// listFiles returns the names of the regular files in a sub-folder.
func listFiles(f *subprocess.Folder, sub string) (names []string, err error) {
	entries, err := f.ListEntries(sub)
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

func TestList(t *testing.T) {
	t.Parallel()
	f := folder(t)
	for _, name := range []string{"out/b", "out/a", "out/sub/d", "out/.hidden"} {
		if err := f.Write(name, nil); err != nil {
			t.Fatal(err)
		}
	}
	names, err := listFiles(f, "out")
	if want := []string{".hidden", "a", "b"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("list = %q, %v; want %q", names, err, want)
	}
	if _, err := listFiles(f, "missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("list of nothing = %v", err)
	}
}

// TestCloseRemovesAll also runs as somebody to whom modes mean something.
func TestCloseRemovesAll(t *testing.T) {
	t.Parallel()
	p := shell(t, "mkdir -p a/b/c; : > a/b/c/d; ln -s / root; mkfifo pipe; chmod 0 a/b/c a/b a; chmod 0 .")
	if _, err := run(t, p); err != nil {
		t.Fatal(err)
	}
	if err := p.Folder.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(p.Folder.FilePath()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := subprocess.NewFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Write("a/b", []byte("in use")); err != nil {
		t.Fatal(err)
	}
	old, other := filepath.Join(dir, "atelier-job-old"), filepath.Join(dir, "somebody-elses")
	if err := errors.Join(os.MkdirAll(filepath.Join(old, "a", "b"), 0o700), os.Chmod(filepath.Join(old, "a"), 0),
		os.Mkdir(other, 0o700), os.Symlink(other, filepath.Join(dir, "atelier-job-link"))); err != nil {
		t.Fatal(err)
	}
	stray := exec.CommandContext(t.Context(), "sleep", "100")
	stray.Dir = old
	if err := stray.Start(); err != nil {
		t.Fatal(err)
	}
	if err := subprocess.Sweep(dir); err != nil {
		t.Error(err)
	}
	if runtime.GOOS == "linux" {
		_ = stray.Wait() // returns as it was killed
	}
	for path, want := range map[string]bool{old: false, f.FilePath(): true, other: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: there = %v, want %v", strings.TrimPrefix(path, dir), err == nil, want)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := subprocess.Sweep(filepath.Join(dir, "nowhere")); err != nil {
		t.Errorf("sweep where nothing is = %v", err)
	}
}
