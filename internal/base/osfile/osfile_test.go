package osfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"atelier/internal/base/osfile"
)

func TestLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first := openFile(t, path)
	if err := osfile.TryLock(first); err != nil {
		t.Fatal(err)
	}
	second := openFile(t, path)
	if err := osfile.TryLock(second); !errors.Is(err, osfile.ErrLocked) {
		t.Errorf("lock of a locked file = %v, want ErrLocked", err)
	}

	acquired := make(chan error, 1)
	go func() { acquired <- osfile.Lock(second) }()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-acquired; err != nil {
		t.Errorf("lock after the first was released: %v", err)
	}
}

func openFile(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestCreateUnnamed(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	f, err := osfile.CreateUnnamed(folder, "unnamed-")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("content"); err != nil {
		t.Error(err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Error(err)
	}
	if read, err := io.ReadAll(f); err != nil || string(read) != "content" {
		t.Errorf("read %q, %v", read, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 0 {
		t.Errorf("after closing, the folder has %v, %v", entries, err)
	}
}

func TestSyncFolder(t *testing.T) {
	t.Parallel()
	f, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := osfile.SyncFolder(f); err != nil {
		t.Error(err)
	}
}
