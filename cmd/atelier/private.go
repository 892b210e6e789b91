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

// keepPrivate has all files of the installation readable and writable for the
// user of the service only: new ones whatever the umask was, and those that
// are there. What belongs to somebody else cannot be changed, and is named on
// standard error.
func (p *program) keepPrivate() error {
	syscall.Umask(0o077)
	folders := []string{p.cfg.Data}
	if blobs, ok := strings.CutPrefix(p.cfg.BlobsURL(), "file://"); ok {
		folders = append(folders, blobs)
	}
	for _, folder := range folders {
		refused, err := tightenFolder(folder)
		if err != nil {
			return fmt.Errorf("make %s private: %w", folder, err)
		}
		if refused != "" {
			fmt.Fprintf(p.stderr, "atelier: %s belongs to another user and may be open to others\n", refused)
		}
	}
	return nil
}

// tightenFolder takes the rights of others from a folder and all in it, and
// gives the first path where it may not. Files in the folder itself are always
// looked at. In folders below they are only where that folder is open to
// others: a service with a million files starts as quickly as one with few. A
// folder is tightened after its files, so that a start that was interrupted is
// made up for by the next.
func tightenFolder(top string) (refused string, err error) {
	info, err := os.Lstat(top)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if top, err = filepath.EvalSymlinks(top); err != nil {
			return "", err
		}
	}
	err = tighten(top, true, &refused)
	return refused, err
}

func tighten(folder string, always bool, refused *string) error {
	info, err := os.Lstat(folder)
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
			err = tighten(path, false, refused)
		case e.Type().IsRegular() && (open || always):
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
	info, err := os.Lstat(path)
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
