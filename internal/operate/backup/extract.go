package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"atelier/internal/base/osfile"
	"atelier/internal/file/blob"
)

// Layout contains the paths to which the parts of an installation are
// extracted. All of them are inside Folder.
type Layout struct {
	Folder   string
	Database string     // path of the database file
	Secret   string     // path of the file with the secret
	Blobs    blob.Store // need not sync its writes to disk, because Stage.Commit does that
}

// Extract writes the content of an archive to the folder of the layout and
// verifies it. Only the user that runs the service gets permissions on the
// files. If Extract returns an error, the content of the folder must not be
// used. begin is called with the header before anything is written.
func Extract(ctx context.Context, archive io.Reader, to Layout, begin func(Header) error) (h Header, files int, err error) {
	spool, err := newSpool(to.Folder)
	if err != nil {
		return h, 0, err
	}
	defer spool.Close()
	start := func(found Header) error {
		h = found
		return begin(found)
	}
	take := func(name string, size int64, r io.Reader) error {
		switch name {
		case databaseName:
			return writeFile(to.Database, r)
		case secretName:
			return writeFile(to.Secret, r)
		}
		key := strings.TrimPrefix(name, filesPrefix)
		n, err := to.Blobs.Put(ctx, key, r)
		if errors.Is(err, blob.ErrBadKey) { // for example, a key that would lead out of the folder
			return damagedArchive("%q is not a valid file name", name)
		}
		if err == nil && n != size {
			err = io.ErrUnexpectedEOF
		}
		files++
		return err
	}
	return h, files, walkArchive(ctx, archive, spool, start, take)
}

// writeFile creates a file with the content of r. The file must not exist.
func writeFile(path string, r io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

// Stage is a temporary folder that is renamed to its final path when it is
// complete.
type Stage struct {
	target string
	folder *os.File // the temporary folder, opened and locked
}

// NewStage creates an empty temporary folder next to target, which must be
// empty or missing. It deletes the content that a killed process left in the
// temporary folder.
func NewStage(target string) (*Stage, error) {
	if err := checkSystem(); err != nil {
		return nil, err
	}
	if err := checkVacant(target); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return nil, err
	}
	name := target + ".restore"
	if err := os.Mkdir(name, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_RDONLY|osfile.Directory|osfile.NoFollow, 0)
	if err != nil {
		return nil, err
	}
	if err := osfile.TryLock(f); err != nil {
		return nil, errors.Join(fmt.Errorf("another restore into %s is running", target), f.Close())
	}
	entries, err := f.ReadDir(-1)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(name, e.Name())))
	}
	if err = errors.Join(err, f.Chmod(0o700)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Stage{target, f}, nil
}

// FolderPath returns the path of the temporary folder.
func (s *Stage) FolderPath() string { return s.folder.Name() }

// Commit syncs the content of the folder to disk and renames the folder to the
// target.
func (s *Stage) Commit() error {
	if err := errors.Join(syncAll(s.folder), checkVacant(s.target)); err != nil {
		return err
	}
	err := renameFolder(s.FolderPath(), s.target)
	if errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.EXDEV) {
		return fmt.Errorf("%s is a mount point and cannot be replaced; restore into a folder inside it", s.target)
	}
	if err != nil {
		return fmt.Errorf("rename the restored folder to %s: %w", s.target, err)
	}
	return syncFolder(filepath.Dir(s.target))
}

// Close deletes the temporary folder, unless Commit has renamed it.
func (s *Stage) Close() error {
	var err error
	if here, statErr := os.Stat(s.FolderPath()); statErr == nil {
		if held, heldErr := s.folder.Stat(); heldErr == nil && os.SameFile(here, held) {
			err = os.RemoveAll(s.FolderPath())
		}
	}
	return errors.Join(err, s.folder.Close())
}

// checkVacant returns an error unless the folder is missing or empty.
func checkVacant(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	names, err := f.Readdirnames(1)
	if len(names) > 0 {
		return fmt.Errorf("%s is not empty; restore into a new folder", path)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
