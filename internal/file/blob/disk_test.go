package blob_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"atelier/internal/file/blob"
	"atelier/internal/file/blob/blobtest"
)

// files lists the plain files below a folder.
func files(t *testing.T, folder string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(folder, func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestDiskKeepsFilesPrivate(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "new", "folder")
	s := openDisk(t, folder)
	if _, err := s.Put(t.Context(), "a/b/c", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(folder, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("mode of %s = %v, want %v", name, got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDiskFailuresLeaveNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := openDisk(t, folder)
	for range 10 {
		s.Put(t.Context(), "a/b", blobtest.FailAfter(blobtest.Bytes(1, 100_000), errors.New("broken")))
	}
	if got := files(t, folder); len(got) != 0 {
		t.Errorf("aborted puts left %q", got)
	}
	if _, err := os.Stat(filepath.Join(folder, "data", "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("aborted puts left a folder: %v", err)
	}
}

func TestDiskDeleteLeavesNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := openDisk(t, folder)
	if _, err := s.Put(t.Context(), "a/b/c", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "a/b/c"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "data", "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("delete left an empty folder: %v", err)
	}
}

// Delete removes the folder that another Put is about to use.
func TestDiskPutsAndDeletesInOneFolder(t *testing.T) {
	t.Parallel()
	s := openDisk(t, t.TempDir())
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			key := fmt.Sprintf("deep/folder/%d", i)
			for range 20 {
				if _, err := s.Put(t.Context(), key, strings.NewReader("x")); err != nil {
					t.Errorf("put: %v", err)
				}
				if err := s.Delete(t.Context(), key); err != nil {
					t.Errorf("delete: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if got := blobtest.Keys(t, s, ""); len(got) != 0 {
		t.Errorf("keys = %q, want none", got)
	}
}

func TestDiskSweepsAtOpen(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		age       time.Duration
		leftovers time.Duration
		left      int
	}{
		{"a Put that may still run", 59 * time.Minute, 0, 1},
		{"what a killed process left", 61 * time.Minute, 0, 0},
		{"what is as old as the options say", 61 * time.Second, time.Minute, 0},
		{"what is younger than the options say", 59 * time.Second, time.Minute, 1},
	} {
		folder := t.TempDir()
		openDisk(t, folder)
		leftover := filepath.Join(folder, "tmp", "LEFTOVER")
		if err := os.WriteFile(leftover, []byte("half a"), 0o600); err != nil {
			t.Fatal(err)
		}
		later := func() time.Time { return time.Now().Add(tt.age) }
		openAddress(t, "file://"+folder, blob.Options{UnfinishedMaxAge: tt.leftovers, Now: later})
		if got := len(files(t, folder)); got != tt.left {
			t.Errorf("%s: %d files, want %d", tt.name, got, tt.left)
		}
	}
}

// TestDiskReadOnly opens folders as they are, and finds what is in them.
func TestDiskReadOnly(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if _, err := openDisk(t, folder).Put(t.Context(), "a", strings.NewReader("one")); err != nil {
		t.Fatal(err)
	}
	leftover := filepath.Join(folder, "tmp", "LEFTOVER")
	if err := os.WriteFile(leftover, []byte("half a"), 0o600); err != nil {
		t.Fatal(err)
	}
	later := func() time.Time { return time.Now().Add(24 * time.Hour) }
	s := openAddress(t, "file://"+folder, blob.Options{ReadOnly: true, Now: later})
	if info, err := s.Stat(t.Context(), "a"); err != nil || info.Size != 3 {
		t.Errorf("stat = %+v, %v", info, err)
	}
	if got := files(t, folder); len(got) != 2 {
		t.Errorf("files = %q, want both", got)
	}

	missing := filepath.Join(folder, "missing")
	none := openAddress(t, "file://"+missing, blob.Options{ReadOnly: true, Now: later})
	if _, err := none.Stat(t.Context(), "a"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("stat in a folder that is missing = %v", err)
	}
	if _, _, err := none.Open(t.Context(), "a", 0, -1); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("open in a folder that is missing = %v", err)
	}
	if got := blobtest.Keys(t, none, ""); len(got) != 0 {
		t.Errorf("keys of a folder that is missing = %q", got)
	}
	for name, change := range map[string]func(blob.Store) error{
		"put":    func(s blob.Store) error { _, err := s.Put(t.Context(), "b", strings.NewReader("x")); return err },
		"delete": func(s blob.Store) error { return s.Delete(t.Context(), "a") },
		"sweep":  func(s blob.Store) error { return s.SweepUnfinished(t.Context(), later()) },
		"ping":   func(s blob.Store) error { return s.Ping(t.Context()) },
	} {
		if change(s) == nil || change(none) == nil {
			t.Errorf("%s was not refused", name)
		}
	}
	if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the missing folder was made: %v", err)
	}
}

func TestDiskNeverLeavesItsFolder(t *testing.T) {
	t.Parallel()
	folder, outside := t.TempDir(), t.TempDir()
	victim := filepath.Join(outside, "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openDisk(t, folder)
	data := filepath.Join(folder, "data")
	for link, target := range map[string]string{
		"file":     victim,
		"dir":      outside,
		"relative": "../../" + filepath.Base(outside),
		"up":       "../..",
		"chain":    "dir",
	} {
		if err := os.Symlink(target, filepath.Join(data, link)); err != nil {
			t.Fatal(err)
		}
	}
	// T68: every name an attacker can think of, behind links as well.
	keys := []string{"dir/victim", "dir/new", "dir/deep/new", "relative/victim", "up/new", "chain/victim"}
	for _, bad := range blobtest.BadKeys {
		keys = append(keys, bad, "dir/"+bad, "up/"+bad)
	}
	for _, key := range append(keys, "file", "dir", "up") {
		if r, _, err := s.Open(t.Context(), key, 0, -1); err == nil {
			b, _ := io.ReadAll(r)
			t.Errorf("open %q = %q", key, b)
		}
		if _, err := s.Stat(t.Context(), key); err == nil {
			t.Errorf("stat %q worked", key)
		}
		// What replaces a link of that name is a file of ours.
		if _, err := s.Put(t.Context(), key, strings.NewReader("theirs")); err == nil && strings.Contains(key, "/") {
			t.Errorf("put %q worked", key)
		}
		if err := s.Delete(t.Context(), key); err == nil && strings.Contains(key, "/") {
			t.Errorf("delete %q worked", key)
		}
	}
	if b, err := os.ReadFile(victim); err != nil || string(b) != "mine" {
		t.Errorf("the file outside is now %q, %v", b, err)
	}
	if got := files(t, outside); len(got) != 1 {
		t.Errorf("files outside = %q, want the one that was there", got)
	}
	if got := files(t, filepath.Dir(folder)); len(got) != 1 {
		t.Errorf("files beside the folder = %q", got)
	}
}

func TestDiskListsOnlyKeys(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := openDisk(t, folder)
	if _, err := s.Put(t.Context(), "a", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(folder, "data")
	err := errors.Join(
		os.Symlink("a", filepath.Join(data, "link")),
		os.WriteFile(filepath.Join(data, "not a key"), nil, 0o600),
		os.WriteFile(filepath.Join(folder, "tmp", "UNFINISHED"), nil, 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	if got := blobtest.Keys(t, s, ""); !slices.Equal(got, []string{"a"}) {
		t.Errorf("keys = %q, want only a", got)
	}
}

func TestDiskDead(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := openDisk(t, folder)
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	blobtest.Dead(t, s)
}

// TestDiskFull runs itself again under a limit on the size of files, which
// makes writes fail as a full disk does.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	const env = "BLOB_TEST_LIMITED"
	if os.Getenv(env) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestDiskFull$", "-test.v")
		cmd.Env = append(os.Environ(), env+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS")) {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	folder := t.TempDir()
	s := openDisk(t, folder)
	if _, err := s.Put(t.Context(), "a", bytes.NewReader(blobtest.Bytes(1, 1000))); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	limit := syscall.Rlimit{Cur: 1 << 20, Max: 1 << 20}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b"} {
		if _, err := s.Put(t.Context(), key, bytes.NewReader(blobtest.Bytes(2, 2<<20))); !errors.Is(err, syscall.EFBIG) {
			t.Errorf("put = %v, want %v", err, syscall.EFBIG)
		}
	}
	if info, err := s.Stat(t.Context(), "a"); err != nil || info.Size != 1000 {
		t.Errorf("old value = %+v, %v", info, err)
	}
	if got := files(t, folder); len(got) != 1 {
		t.Errorf("files = %q, want the old value only", got)
	}
}
