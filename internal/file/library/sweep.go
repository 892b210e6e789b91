package library

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"atelier/internal/base/failpoint"
	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/blob"
	"atelier/internal/file/ingest"
	"atelier/internal/file/quota"
)

// PreviewFolder holds what pending runs show of what they work on.
const PreviewFolder = "preview"

const (
	batch            = 200
	defaultOrphanAge = time.Hour
)

// Sweep ends what has lived long enough and removes bytes that nobody needs.
// It may run on several nodes at once, and may be killed at any point: the next
// one goes on. Bytes that can't be removed do not keep it from the others.
func (l *Library) Sweep(ctx context.Context) error {
	if err := l.expire(ctx, "upload", l.Retention.Uploads); err != nil {
		return fmt.Errorf("sweep uploads: %w", err)
	}
	if err := l.expire(ctx, "result", l.Retention.Results); err != nil {
		return fmt.Errorf("sweep results: %w", err)
	}
	d := deletion{blobs: l.Blobs}
	if err := l.sweepUnowned(ctx, &d); err != nil {
		return fmt.Errorf("sweep files: %w", err)
	}
	if err := l.sweepOrphans(ctx, &d, ingest.Folder, unnamed); err != nil {
		return fmt.Errorf("sweep bytes: %w", err)
	}
	if err := l.sweepOrphans(ctx, &d, PreviewFolder, unshown); err != nil {
		return fmt.Errorf("sweep previews: %w", err)
	}
	return d.err
}

// expire marks what is older than the span as deleted.
func (l *Library) expire(ctx context.Context, table string, span time.Duration) error {
	if span <= 0 {
		return nil
	}
	for {
		var files []string
		err := l.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
			files, err = expire(ctx, tx, table, tx.Now.Add(-span))
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

// sweepUnowned removes the bytes of files that nobody has any more.
func (l *Library) sweepUnowned(ctx context.Context, d *deletion) error {
	before := l.orphanTime()
	for last := ""; ; {
		var ids []string
		err := l.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
			ids, err = unownedAfter(ctx, tx, last, before)
			return err
		})
		if err != nil || len(ids) == 0 {
			return err
		}
		last = ids[len(ids)-1]
		var keys []string
		held := false
		err = l.DB.Write(ctx, func(tx *sqldb.Tx) (err error) {
			held, err = holdsFiles(ctx, tx)
			if err != nil || held {
				return err
			}
			keys, err = endFiles(ctx, tx, ids, before)
			return err
		})
		if err != nil || held { // a later sweep comes back to them
			return err
		}
		failpoint.Hit("sweep.after_gone")
		if err := d.delete(ctx, keys); err != nil {
			return err
		}
	}
}

// endFiles marks those files as gone that still have no owner, stops counting
// them, and gives the keys of their bytes. Files that came with a run are
// released here: nobody deletes them.
func endFiles(ctx context.Context, tx *sqldb.Tx, ids []string, before time.Time) ([]string, error) {
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

// sweepOrphans removes bytes in a folder that are old enough and that needless
// finds nobody to need.
func (l *Library) sweepOrphans(ctx context.Context, d *deletion, folder string, needless func(context.Context, *sqldb.Tx, []string) ([]string, error)) error {
	before := l.orphanTime()
	var old []string
	sweep := func() error {
		if len(old) == 0 {
			return nil
		}
		var orphans []string
		err := l.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
			orphans, err = needless(ctx, tx, old)
			return err
		})
		if err != nil {
			return err
		}
		old = old[:0]
		return d.delete(ctx, orphans)
	}
	for item, err := range l.Blobs.List(ctx, folder) {
		if err != nil {
			return err
		}
		if !item.Modified.Before(before) {
			continue
		}
		if old = append(old, item.Key); len(old) == batch {
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

// unnamed gives the keys that no file names. A key tells whose it is, so most
// are found by the file's id.
func unnamed(ctx context.Context, tx *sqldb.Tx, keys []string) ([]string, error) {
	var fileIDs []string
	for _, key := range keys {
		name := path.Base(key)
		if end := strings.IndexAny(name, "-."); end > 0 && ids.Valid(name[:end]) {
			fileIDs = append(fileIDs, name[:end])
		}
	}
	left := keys
	if len(fileIDs) > 0 {
		named, err := keysOf(ctx, tx, fileIDs)
		if err != nil {
			return nil, err
		}
		left = without(keys, named)
	}
	if len(left) == 0 {
		return nil, nil
	}
	named, err := namedKeys(ctx, tx, left)
	return without(left, named), err
}

// unshown gives the keys that no pending run shows.
func unshown(ctx context.Context, tx *sqldb.Tx, keys []string) ([]string, error) {
	shown, err := shownKeys(ctx, tx, keys)
	return without(keys, shown), err
}

// without gives the keys that are not among others, in a slice of its own.
func without(keys, others []string) []string {
	skip := make(map[string]bool, len(others))
	for _, key := range others {
		skip[key] = true
	}
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return skip[key] })
}

// deletion removes bytes and remembers the first failure.
type deletion struct {
	blobs blob.Store
	err   error
}

// delete removes keys. It gives up only when there is no use in going on.
func (d *deletion) delete(ctx context.Context, keys []string) error {
	for _, key := range keys {
		err := d.blobs.Delete(ctx, key)
		if err != nil && (ctx.Err() != nil || fault.Is(err, fault.Unavailable)) {
			return err
		}
		if d.err == nil && err != nil {
			d.err = fmt.Errorf("remove bytes: %w", err)
		}
	}
	return nil
}
