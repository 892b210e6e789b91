package library

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"atelier/internal/base/failpoint"
	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/blob"
	"atelier/internal/file/ingest"
	"atelier/internal/file/quota"
)

// PreviewFolder is the folder in the blob store for the previews of pending
// runs.
const PreviewFolder = "preview"

const (
	sweepBatch       = 200
	defaultOrphanAge = time.Hour
)

// SweepFiles marks files that exceed their retention period as deleted, and
// deletes content that is no longer needed. It can run on several nodes at the
// same time and can be killed at any time; the next run continues. It does not
// stop if some content cannot be deleted.
func (l *Library) SweepFiles(ctx context.Context) error {
	if err := l.expireOlderThan(ctx, "upload", l.Retention.Uploads); err != nil {
		return fmt.Errorf("sweep uploads: %w", err)
	}
	if err := l.expireOlderThan(ctx, "result", l.Retention.Results); err != nil {
		return fmt.Errorf("sweep results: %w", err)
	}

	if err := endRestorations(ctx, l.DB); err != nil {
		return fmt.Errorf("sweep deleted results: %w", err)
	}

	d := blobDeletion{blobs: l.Blobs}
	if err := l.sweepDeleted(ctx, &d); err != nil {
		return fmt.Errorf("sweep files: %w", err)
	}
	if err := l.sweepInputs(ctx, &d); err != nil {
		return fmt.Errorf("sweep input files: %w", err)
	}
	if err := l.orphanWalk.do(l.DB.Now, func() error { return l.sweepOrphans(ctx, &d, ingest.Folder, unreferencedKeys) }); err != nil {
		return fmt.Errorf("sweep file contents: %w", err)
	}
	if err := l.sweepOrphans(ctx, &d, PreviewFolder, unusedPreviewKeys); err != nil {
		return fmt.Errorf("sweep previews: %w", err)
	}
	return d.err
}

// expireOlderThan marks rows of a table that are older than maxAge as deleted.
// If maxAge is 0, it does nothing.
func (l *Library) expireOlderThan(ctx context.Context, table string, maxAge time.Duration) error {
	if maxAge <= 0 {
		return nil
	}
	for {
		var files []string
		err := l.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
			files, err = expireRows(ctx, tx, table, tx.Now.Add(-maxAge))
			if err != nil {
				return err
			}
			return releaseFiles(ctx, tx, files)
		})
		if err != nil || len(files) == 0 {
			return err
		}
	}
}

// sweepDeleted deletes the content of deleted files that nothing refers to any
// more.
func (l *Library) sweepDeleted(ctx context.Context, d *blobDeletion) error {
	before := l.orphanTime()
	find := func(tx *sqldb.Tx, last string) ([]string, error) { return leavingAfter(ctx, tx, last, before) }
	return l.sweepBatches(ctx, d, find, func(tx *sqldb.Tx, fileIDs []string) ([]string, error) {
		return removeUnowned(ctx, tx, fileIDs, before)
	})
}

// sweepInputs deletes the content of files that were sent with a run, once the
// run has ended. Input files that are uploads or results stay until they are
// deleted, and files that another pending run uses until that run has ended.
// Each run is looked at once.
func (l *Library) sweepInputs(ctx context.Context, d *blobDeletion) error {
	before := l.orphanTime()
	find := func(tx *sqldb.Tx, last string) ([]string, error) { return unsweptAfter(ctx, tx, last, before) }
	return l.sweepBatches(ctx, d, find, func(tx *sqldb.Tx, runIDs []string) (keys []string, err error) {
		fileIDs, err := unsweptInputs(ctx, tx, runIDs)
		if err != nil {
			return nil, err
		}
		for batch := range slices.Chunk(fileIDs, sweepBatch) {
			some, err := removeUnowned(ctx, tx, batch, before)
			if err != nil {
				return nil, err
			}
			keys = append(keys, some...)
		}
		return keys, markSwept(ctx, tx, runIDs)
	})
}

// sweepBatches calls remove in a transaction with each batch of IDs that find
// returns, and then deletes the blobs whose keys remove returns. find gets the
// last ID of the previous batch. While a backup is running, nothing is deleted;
// a later call deletes the content.
func (l *Library) sweepBatches(ctx context.Context, d *blobDeletion,
	find func(tx *sqldb.Tx, last string) ([]string, error), remove func(tx *sqldb.Tx, ids []string) (keys []string, err error)) error {
	for last := ""; ; {
		var found []string
		err := l.DB.Read(sqldb.WithIndexOrder(ctx), func(tx *sqldb.Tx) (err error) {
			found, err = find(tx, last)
			return err
		})
		if err != nil || len(found) == 0 {
			return err
		}

		last = found[len(found)-1]
		var keys []string
		held := false
		err = l.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
			keys = nil
			held, err = hasSweepHold(ctx, tx)
			if err != nil || held {
				return err
			}

			keys, err = remove(tx, found)
			return err
		})
		if err != nil || held {
			return err
		}

		failpoint.Hit("sweep.after_gone")
		if err := d.deleteKeys(ctx, keys); err != nil {
			return err
		}
	}
}

// walk limits how often a store with many files is listed. A list of all files
// costs as much as there are files, while orphans are rare: only a crash leaves
// them behind.
type walk struct {
	next atomic.Int64 // time before which the store is not listed again, in nanoseconds since 1970
}

const (
	longWalk  = time.Minute // a shorter walk may be repeated at once
	walkPause = 20          // after a long walk, the next one may begin when this multiple of its duration has passed
)

// do calls list, unless the pause after a long call has not ended.
func (w *walk) do(now func() time.Time, list func() error) error {
	started := now()
	if started.UnixNano() < w.next.Load() {
		return nil
	}
	err := list()
	if took := now().Sub(started); took > longWalk {
		w.next.Store(started.Add(walkPause * took).UnixNano())
	}
	return err
}

// removeUnowned marks the files among ids that are still unowned as gone,
// subtracts them from the quota, and returns their blob keys. It also marks
// them as released, because no request does that for input files that were sent
// with a run.
func removeUnowned(ctx context.Context, tx *sqldb.Tx, ids []string, before time.Time) ([]string, error) {
	ids, err := stillUnowned(ctx, tx, ids, before)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	if err := releaseFiles(ctx, tx, ids); err != nil {
		return nil, err
	}

	keys, removed, err := markGone(ctx, tx, ids, before)
	if err != nil {
		return nil, err
	}
	return keys, quota.Remove(ctx, tx, removed)
}

// sweepOrphans deletes those old blobs of a folder that no row refers to.
// findOrphans gets a batch of keys and returns the keys without a row.
func (l *Library) sweepOrphans(ctx context.Context, d *blobDeletion, folder string, findOrphans func(context.Context, *sqldb.Tx, []string) ([]string, error)) error {
	before := l.orphanTime()
	var old []string
	sweep := func() error {
		if len(old) == 0 {
			return nil
		}

		var orphans []string
		err := l.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
			orphans, err = findOrphans(ctx, tx, old)
			return err
		})
		if err != nil {
			return err
		}

		old = old[:0]
		return d.deleteKeys(ctx, orphans)
	}

	for item, err := range l.Blobs.List(ctx, folder) {
		if err != nil {
			return err
		}
		if !item.Modified.Before(before) {
			continue
		}
		if old = append(old, item.Key); len(old) == sweepBatch {
			if err := sweep(); err != nil {
				return err
			}
		}
	}
	return sweep()
}

func (l *Library) orphanTime() time.Time {
	age := l.OrphanAge
	if age == 0 {
		age = defaultOrphanAge
	}
	return l.DB.Now().Add(-age)
}

// unreferencedKeys returns the keys that no file refers to. Keys contain the
// file's ID, so most files are found by the primary key.
func unreferencedKeys(ctx context.Context, tx *sqldb.Tx, keys []string) ([]string, error) {
	var fileIDs []string
	for _, key := range keys {
		name := path.Base(key)
		if end := strings.IndexAny(name, "-."); end > 0 && ids.Valid(name[:end]) {
			fileIDs = append(fileIDs, name[:end])
		}
	}

	left := keys
	if len(fileIDs) > 0 {
		named, err := blobKeysOf(ctx, tx, fileIDs)
		if err != nil {
			return nil, err
		}
		left = subtractKeys(keys, named)
	}
	if len(left) == 0 {
		return nil, nil
	}

	named, err := referencedKeys(ctx, tx, left)
	return subtractKeys(left, named), err
}

// unusedPreviewKeys returns the keys that are not the preview of a pending run.
func unusedPreviewKeys(ctx context.Context, tx *sqldb.Tx, keys []string) ([]string, error) {
	shown, err := usedPreviewKeys(ctx, tx, keys)
	return subtractKeys(keys, shown), err
}

// subtractKeys returns the keys that are not in others, as a new slice.
func subtractKeys(keys, others []string) []string {
	skip := make(map[string]bool, len(others))
	for _, key := range others {
		skip[key] = true
	}
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return skip[key] })
}

// blobDeletion deletes blobs and remembers the first error, so that the other
// blobs are still deleted.
type blobDeletion struct {
	blobs blob.Store
	err   error
}

// deleteKeys deletes blobs. It stops only if ctx is cancelled or the store is
// unavailable.
func (d *blobDeletion) deleteKeys(ctx context.Context, keys []string) error {
	for _, key := range keys {
		err := d.blobs.Delete(ctx, key)
		if err != nil && (ctx.Err() != nil || fault.Is(err, fault.Unavailable)) {
			return err
		}
		if d.err == nil && err != nil {
			d.err = fmt.Errorf("delete file contents: %w", err)
		}
	}
	return nil
}
