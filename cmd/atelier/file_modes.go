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

// tightenFiles removes other users' permissions from the files of an
// installation. It changes only files of Atelier, because the data folder may
// contain other files. It cannot change files that another user owns; a
// message on standard error lists them.
func (in *installation) tightenFiles() error {
	if !hasFileModes {
		return nil
	}
	var refused string
	folders := []string{filepath.Dir(in.cfg.SecretFile())}
	if blobs, ok := strings.CutPrefix(in.cfg.BlobsURL(), "file://"); ok {
		folders = append(folders, filepath.Join(blobs, "data"), filepath.Join(blobs, "tmp"))
		if in.cfg.Blobs == "" {
			folders = append(folders, blobs) // changed after its subfolders
		}
	}
	for _, folder := range folders {
		if err := tightenModes(folder, &refused); err != nil {
			return fmt.Errorf("restrict the permissions of %s: %w", folder, err)
		}
	}
	path, embedded, err := in.databaseFile()
	if err != nil {
		return fmt.Errorf("restrict the permissions of the database: %w", err)
	}
	if embedded {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal", ".lock"} {
			if err := restrictMode(path+suffix, 0o600, &refused); err != nil {
				return fmt.Errorf("restrict the permissions of the database: %w", err)
			}
		}
	}
	if err := restrictMode(in.cfg.Data, 0o700, &refused); err != nil {
		return fmt.Errorf("restrict the permissions of %s: %w", in.cfg.Data, err)
	}
	if refused != "" {
		fmt.Fprintf(in.stderr, "atelier: warning: %s belongs to another user, and other users may be able to read it\n", refused)
	}
	return nil
}

// tightenModes removes other users' permissions from a folder and everything in
// it. It examines files only in folders that other users can access, so that a
// service with a million files starts quickly. It restricts a folder after its
// files, so that after an interruption the next start continues with the files
// that are left.
func tightenModes(folder string, refused *string) error {
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
			err = tightenModes(path, refused)
		case e.Type().IsRegular() && open:
			err = restrictMode(path, 0o600, refused)
		}
		if err != nil {
			return err
		}
	}
	return restrictMode(folder, 0o700, refused)
}

// restrictMode sets the mode of a file or folder if other users can access it.
func restrictMode(path string, mode fs.FileMode, refused *string) error {
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

// ignoreMissing returns nil if err means that a file no longer exists, and err
// otherwise.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
