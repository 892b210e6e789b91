package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// makePrivate has new files readable and writable for the user of the service
// only, whatever the umask was.
func makePrivate() { syscall.Umask(0o077) }

// tightenFiles takes the rights of others from what an installation has on
// disk. It touches what is ours and nothing beside it: the data folder may be
// one that holds other things. What belongs to another user cannot be changed,
// and is named on standard error.
func (p *program) tightenFiles() error {
	var refused string
	folders := []string{filepath.Dir(p.cfg.SecretFile())}
	if blobs, ok := strings.CutPrefix(p.cfg.BlobsURL(), "file://"); ok {
		folders = append(folders, filepath.Join(blobs, "data"), filepath.Join(blobs, "tmp"))
		if p.cfg.Blobs == "" {
			folders = append(folders, blobs) // after those in it
		}
	}
	for _, folder := range folders {
		if err := tighten(folder, &refused); err != nil {
			return fmt.Errorf("make %s private: %w", folder, err)
		}
	}
	path, embedded, err := p.databaseFile()
	if err != nil {
		return fmt.Errorf("make the database private: %w", err)
	}
	if embedded {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal", ".lock"} {
			if err := restrict(path+suffix, 0o600, &refused); err != nil {
				return fmt.Errorf("make the database private: %w", err)
			}
		}
	}
	if err := restrict(p.cfg.Data, 0o700, &refused); err != nil {
		return fmt.Errorf("make %s private: %w", p.cfg.Data, err)
	}
	if refused != "" {
		fmt.Fprintf(p.stderr, "atelier: %s belongs to another user and may be open to others\n", refused)
	}
	return nil
}

// tighten takes the rights of others from a folder and all in it. Files are
// only looked at in folders that are open to others: a service with a million
// files starts as quickly as one with few. A folder is tightened after its
// files, so that a start that was interrupted is made up for by the next.
func tighten(folder string, refused *string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return ignoreMissing(err)
	}
	open := info.Mode().Perm()&0o077 != 0
	entries, err := os.ReadDir(folder)
	if err != nil {
		return ignoreMissing(err)
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		switch {
		case e.IsDir():
			err = tighten(path, refused)
		case e.Type().IsRegular() && open:
			err = restrict(path, 0o600, refused)
		}
		if err != nil {
			return err
		}
	}
	return restrict(folder, 0o700, refused)
}

// restrict sets the mode of a file or folder that others have rights to.
func restrict(path string, mode fs.FileMode, refused *string) error {
	info, err := os.Stat(path)
	if err != nil {
		return ignoreMissing(err)
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	err = os.Chmod(path, mode)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		if *refused == "" {
			*refused = path
		}
		return nil
	}
	return ignoreMissing(err)
}

// ignoreMissing is for files that go while they are looked at.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
