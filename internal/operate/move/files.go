package move

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"atelier/internal/base/sqldb"
	"atelier/internal/file/blob"
)

// markerKey is the key of the file that marks a store as the target of a move
// of files only. Its content is the identity of the source.
const markerKey = "atelier-move"

// filesAtOnce is the number of files that are copied at the same time.
const filesAtOnce = 8

var errFilesNotEmpty = errors.New("the file store of the target is not empty: move into a new folder or bucket")

// beginFiles prepares an empty store, or finds that the store has a part of the
// files of the same source.
func (m Move) beginFiles(ctx context.Context, identity string) (resumed bool, err error) {
	if m.Target != nil {
		begun, err := readState(ctx, m.Target, stateFiles)
		if err != nil || begun != "" {
			return begun != "", err
		}
		if err := m.requireNoFiles(ctx); err != nil {
			return false, err
		}
		return false, m.Target.Write(ctx, func(tx *sqldb.Tx) error { return changeState(ctx, tx, stateFiles, "", "begun") })
	}

	f, _, err := m.TargetFiles.Open(ctx, markerKey, 0, -1)
	if errors.Is(err, blob.ErrNotFound) {
		if err := m.requireNoFiles(ctx); err != nil {
			return false, err
		}
		_, err = m.TargetFiles.Put(ctx, markerKey, strings.NewReader(identity))
		return false, err
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	began, err := io.ReadAll(io.LimitReader(f, int64(len(identity))+1))
	if err == nil && string(began) != identity {
		err = errNotSame
	}
	return true, err
}

// requireNoFiles returns an error if the target has any file.
func (m Move) requireNoFiles(ctx context.Context) error {
	for _, err := range m.TargetFiles.List(ctx, "") {
		if err != nil {
			return err
		}
		return errFilesNotEmpty
	}
	return nil
}

// copyFiles copies all files that the target does not have yet, and compares
// every file with its copy.
func (m Move) copyFiles(ctx context.Context, r *Report) error {
	var mu sync.Mutex
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(filesAtOnce)
	var listed error
	for item, err := range m.SourceFiles.List(groupCtx, "") {
		if err != nil {
			listed = err
			break
		}
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error {
			n, err := m.copyFile(groupCtx, item)
			if err != nil {
				return fmt.Errorf("copy the file %s: %w", item.Key, err)
			}
			mu.Lock()
			defer mu.Unlock()
			r.Files++
			r.Bytes += n
			m.report(Progress{Step: "files", Files: r.Files})
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if listed != nil {
		return listed
	}
	return m.findExtraFiles(ctx)
}

// copyFile copies one file and reads the copy back. A copy of an earlier move
// is compared with the source, and replaced if it differs.
func (m Move) copyFile(ctx context.Context, item blob.Item) (size int64, err error) {
	info, err := m.TargetFiles.Stat(ctx, item.Key)
	if err == nil && info.Size == item.Size {
		from, _, err := digestFile(ctx, m.SourceFiles, item.Key)
		if err != nil {
			return 0, err
		}
		to, n, err := digestFile(ctx, m.TargetFiles, item.Key)
		if err == nil && from == to {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	} else if err != nil && !errors.Is(err, blob.ErrNotFound) {
		return 0, err
	}

	f, _, err := m.SourceFiles.Open(ctx, item.Key, 0, -1)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	hash := sha256.New()
	if size, err = m.TargetFiles.Put(ctx, item.Key, io.TeeReader(f, hash)); err != nil {
		return 0, err
	}
	to, _, err := digestFile(ctx, m.TargetFiles, item.Key)
	if err == nil && to != hex.EncodeToString(hash.Sum(nil)) {
		err = errors.New("the copy differs from the source")
	}
	if err == nil && size != item.Size {
		err = errors.New("the file changed while it was copied")
	}
	return size, err
}

// digestFile returns the SHA-256 and the size of a file.
func digestFile(ctx context.Context, from blob.Store, key string) (sum string, size int64, err error) {
	f, _, err := from.Open(ctx, key, 0, -1)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	hash := sha256.New()
	if size, err = io.Copy(hash, f); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(hash.Sum(nil)), size, nil
}

// findExtraFiles returns an error if the target has a file that the source does
// not have.
func (m Move) findExtraFiles(ctx context.Context) error {
	var extra []string
	for item, err := range m.TargetFiles.List(ctx, "") {
		if err != nil {
			return err
		}
		if item.Key == markerKey {
			continue
		}
		_, err := m.SourceFiles.Stat(ctx, item.Key)
		if errors.Is(err, blob.ErrNotFound) {
			extra = append(extra, item.Key)
		} else if err != nil {
			return err
		}
	}
	if len(extra) > 0 {
		return fmt.Errorf("the target has files that the source does not have: %s; remove the files of the target and move again", describeKeys(extra))
	}
	return nil
}
