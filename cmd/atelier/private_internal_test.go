package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestTightenFolder(t *testing.T) {
	t.Parallel()
	top := filepath.Join(t.TempDir(), "data")
	files := []string{"atelier.db", "atelier.db-wal", "keys/secret", "blobs/data/media/ab/x.png", "blobs/tmp/y"}
	for _, name := range files {
		path := filepath.Join(top, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := errors.Join(os.WriteFile(outside, nil, 0o600), os.Chmod(outside, 0o644), os.Symlink(outside, filepath.Join(top, "link"))); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Type()&fs.ModeSymlink != 0 {
			return err
		}
		mode := fs.FileMode(0o666)
		if e.IsDir() {
			mode = 0o777
		}
		return os.Chmod(path, mode)
	})
	if err != nil {
		t.Fatal(err)
	}

	refused, err := tightenFolder(top)
	if err != nil || refused != "" {
		t.Fatalf("tighten = %q, %v", refused, err)
	}
	wantPrivate(t, top)
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("a file that is linked to became %v, %v", info.Mode(), err)
	}

	// A file in a folder that is closed cannot be reached; one at the top can
	// be named by the service itself, and is looked at every time.
	loose := filepath.Join(top, "atelier.db")
	if err := os.Chmod(loose, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := tightenFolder(top); err != nil {
		t.Fatal(err)
	}
	wantPrivate(t, top)
	if _, err := tightenFolder(filepath.Join(top, "none")); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func wantPrivate(t *testing.T, top string) {
	t.Helper()
	err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Type()&fs.ModeSymlink != 0 {
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
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", path, info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
