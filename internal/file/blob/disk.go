package blob

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"atelier/internal/base/failpoint"
	"atelier/internal/base/osfile"
)

// The two sub-folders of a store: dataDir contains the values and tmpDir
// unfinished files. They are separate so that no key can refer to an
// unfinished file.
const (
	dataDir = "data"
	tmpDir  = "tmp"
)

// disk is a store in a folder. All access uses os.Root, which rejects symbolic
// links that lead out of the folder.
type disk struct {
	root     *os.Root
	unsynced bool
}

func openDisk(folder string, unsynced bool) (*disk, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}

	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}

	d := &disk{root: root, unsynced: unsynced}
	for _, dir := range []string{dataDir, tmpDir} {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return nil, errors.Join(err, root.Close())
		}
	}
	if err := d.syncFolder("."); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return d, nil
}

func (d *disk) Put(ctx context.Context, key string, r io.Reader) (int64, error) {
	if err := checkKey(key); err != nil {
		return 0, err
	}

	tmp := path.Join(tmpDir, rand.Text())
	source := &sourceReader{from: ReaderWithContext(ctx, r)}
	n, err := d.writeFile(tmp, source)
	if err == nil {
		failpoint.Hit("upload.after_tmp")
		err = d.moveIntoStore(tmp, path.Join(dataDir, key))
	}
	if err != nil {
		_ = d.root.Remove(tmp)
	}
	if source.err != nil {
		return 0, fmt.Errorf("put %s: %w", key, source.err)
	}
	if err != nil {
		return 0, storageError("put "+key, err)
	}

	failpoint.Hit("upload.after_rename")
	return n, nil
}

func (d *disk) writeFile(name string, r io.Reader) (int64, error) {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}

	n, err := io.Copy(f, r)
	if err == nil && !d.unsynced {
		err = f.Sync()
	}
	return n, errors.Join(err, f.Close())
}

// sourceReader remembers a read error of the source, so that a broken
// connection of the client that sends the data is not reported as a broken
// disk.
type sourceReader struct {
	from io.Reader
	err  error
}

func (s *sourceReader) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// moveIntoStore renames a finished file to its key and makes the new name
// durable. Delete removes empty folders, so the target folder can vanish
// between its creation and the rename; os.Root then reports "file exists" or
// "not found", and the move is retried.
func (d *disk) moveIntoStore(tmp, name string) error {
	var err error
	for range 100 {
		err = d.root.MkdirAll(path.Dir(name), 0o700)
		if err == nil {
			err = d.root.Rename(tmp, name)
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return err
	}

	// All parent folders are synced, because another Put may have created one
	// and not have synced it yet.
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if err := d.syncFolder(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// syncFolder makes the file names in a folder durable by fsync.
func (d *disk) syncFolder(dir string) error {
	if d.unsynced {
		return nil
	}

	f, err := d.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(osfile.SyncFolder(f), f.Close())
}

func (d *disk) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, Info, error) {
	if err := errors.Join(checkKey(key), checkRange(offset), ctx.Err()); err != nil {
		return nil, Info{}, err
	}

	f, err := d.root.Open(path.Join(dataDir, key))
	if err != nil {
		return nil, Info{}, notFound(key, err)
	}

	info, err := requireRegular(f.Stat())
	if err == nil && offset > 0 {
		_, err = f.Seek(offset, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, Info{}, notFound(key, err)
	}
	if length < 0 {
		length = max(0, info.Size()-offset)
	}
	return &section{key: key, part: io.LimitedReader{R: f, N: length}, Closer: f}, infoOf(key, info), nil
}

// section is a reader of a range of a value's file.
type section struct {
	key  string
	part io.LimitedReader
	io.Closer
}

func (s *section) Read(p []byte) (int, error) {
	n, err := s.part.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = storageError("read "+s.key, err)
	}
	return n, err
}

func (d *disk) Stat(ctx context.Context, key string) (Info, error) {
	if err := errors.Join(checkKey(key), ctx.Err()); err != nil {
		return Info{}, err
	}

	info, err := requireRegular(d.root.Stat(path.Join(dataDir, key)))
	if err != nil {
		return Info{}, notFound(key, err)
	}
	return infoOf(key, info), nil
}

// Delete implements Store. It also removes folders that become empty.
func (d *disk) Delete(ctx context.Context, key string) error {
	if err := errors.Join(checkKey(key), ctx.Err()); err != nil {
		return err
	}

	name := path.Join(dataDir, key)
	if info, err := d.root.Lstat(name); isMissing(err) || err == nil && info.IsDir() {
		return nil
	}
	if err := d.root.Remove(name); err != nil && !isMissing(err) {
		return storageError("delete "+key, err)
	}

	dir := path.Dir(name)
	for dir != dataDir && d.root.Remove(dir) == nil {
		dir = path.Dir(dir)
	}
	if err := d.syncFolder(dir); err != nil && !isMissing(err) {
		return storageError("delete "+key, err)
	}
	return nil
}

func (d *disk) List(ctx context.Context, folder string) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		if folder != "" {
			if err := checkKey(folder); err != nil {
				yield(Item{}, err)
				return
			}
		}

		start := path.Join(dataDir, folder)
		err := fs.WalkDir(d.root.FS(), start, func(name string, e fs.DirEntry, err error) error {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil || name == start || !e.Type().IsRegular() {
				return skipMissing(err)
			}

			info, err := e.Info()
			if err != nil {
				return skipMissing(err)
			}

			key := strings.TrimPrefix(name, dataDir+"/")
			if checkKey(key) == nil && !yield(Item{key, infoOf(key, info)}, nil) {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			yield(Item{}, storageError("list blobs", err))
		}
	}
}

func (d *disk) SweepUnfinished(ctx context.Context, before time.Time) error {
	entries, err := fs.ReadDir(d.root.FS(), tmpDir)
	if err != nil {
		return storageError("sweep", err)
	}

	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}

		info, err := e.Info()
		if err == nil && info.ModTime().Before(before) {
			err = d.root.Remove(path.Join(tmpDir, e.Name()))
		}
		if err != nil && !isMissing(err) {
			return storageError("sweep", err)
		}
	}
	return nil
}

// Ping implements Store. It writes and removes a small file.
func (d *disk) Ping(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}

	tmp := path.Join(tmpDir, rand.Text())
	_, err := d.writeFile(tmp, strings.NewReader("ping"))
	if err = errors.Join(err, d.root.Remove(tmp)); err != nil {
		return storageError("ping", err)
	}
	return nil
}

func (d *disk) Close() error { return d.root.Close() }

// requireRegular returns fs.ErrNotExist for anything but a regular file.
func requireRegular(info fs.FileInfo, err error) (fs.FileInfo, error) {
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	return info, err
}

func infoOf(key string, info fs.FileInfo) Info {
	return Info{Size: info.Size(), ContentType: contentTypeOf(key), Modified: info.ModTime().UTC()}
}

// isMissing reports whether err means that a file does not exist. That
// includes paths in which a parent folder is a file.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func skipMissing(err error) error {
	if isMissing(err) {
		return nil
	}
	return err
}

func notFound(key string, err error) error {
	if isMissing(err) {
		return fmt.Errorf("%w: %s", ErrNotFound, key)
	}
	return storageError("read "+key, err)
}
