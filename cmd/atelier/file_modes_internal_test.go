package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"atelier/internal/base/config"
)

func TestTightenFiles(t *testing.T) {
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
	link := filepath.Join(top, "blobs/data/media/link")
	if err := errors.Join(os.WriteFile(outside, nil, 0o600), os.Chmod(outside, 0o644), os.Symlink(outside, link)); err != nil {
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

	p := &installation{cfg: &config.Config{Data: top}}
	if err := p.tightenFiles(); err != nil {
		t.Fatal(err)
	}
	wantPrivate(t, top)
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("a file that is linked to became %v, %v", info.Mode(), err)
	}

	// The data folder may hold what is not ours, such as a script.
	script := filepath.Join(top, "script")
	if err := errors.Join(os.WriteFile(script, nil, 0o600), os.Chmod(script, 0o755), os.Chmod(filepath.Join(top, "atelier.db"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := p.tightenFiles(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(script); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("a file of somebody else's became %v, %v", info.Mode(), err)
	}
	if err := os.Remove(script); err != nil {
		t.Fatal(err)
	}
	wantPrivate(t, top)

	none := &installation{cfg: &config.Config{Data: filepath.Join(top, "none")}}
	if err := none.tightenFiles(); err != nil {
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
