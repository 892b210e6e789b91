// Package replicate copies the changes of a SQLite database to a file store
// while the service runs, and restores the database as of an earlier moment.
//
//	service ──commits──▶ write-ahead log ──every second──▶ ltx/0/… ──merged──▶ ltx/1/…, ltx/2/…, ltx/3/…
//	                     whole database  ──every day─────────────────────────▶ ltx/9/…
//
// Litestream's library does the copying. It runs in a process of its own beside
// the service, and keeps its position in a folder next to the database. It
// delays the truncation of the write-ahead log until the log has been copied,
// so no commit is left out as long as both processes run. Each start of the
// copying begins with a copy of the whole database.
//
// A copied change has the time at which it was copied. A restore as of a moment
// has all changes that were copied until then and none that were committed
// later. Changes of the last FineFor can be told apart by about a second, older
// ones by CoarseStep, for as long as Replication.Keep.
package replicate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/benbjohnson/litestream"

	"atelier/internal/base/sqldb"
	"atelier/internal/file/blob"
)

const (
	// FineFor is how long every copied change is kept by itself.
	FineFor = time.Hour
	// CoarseStep is the time between two moments that older changes can be
	// restored to.
	CoarseStep = 30 * time.Second

	syncEvery     = time.Second
	snapshotEvery = 24 * time.Hour

	// restartWait is the time after which the copying begins anew after a failure.
	restartWait = 10 * time.Second

	// emptyLimit is the longest wait for the transactions of others at the start.
	emptyLimit = time.Minute

	// stopLimit is the maximum time to copy the last changes when the
	// replication ends.
	stopLimit = 30 * time.Second
)

// ownerKey is the key of the file that names the installation whose changes a
// store has.
const ownerKey = "installation"

// ErrEmpty is returned if a store has no copy that is old enough.
var ErrEmpty = errors.New("there is no backup of this moment")

// Replication copies the changes of one database.
type Replication struct {
	Path  string // of the SQLite database
	Store blob.Store
	// Owner identifies the installation. A store with the changes of another
	// installation is refused.
	Owner string
	// Keep is how long changes are kept.
	Keep time.Duration
	Log  *slog.Logger
}

// Run copies changes until ctx ends, and then copies the last ones. After a
// failure it begins anew.
func (r Replication) Run(ctx context.Context) error {
	if err := r.claimStore(ctx); err != nil {
		return err
	}
	for {
		err := r.runOnce(ctx)
		if ctx.Err() != nil {
			return err
		}
		r.Log.Error("changes could not be copied; the copying begins anew", "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(restartWait):
		}
	}
}

// runOnce copies changes until ctx ends or the database cannot be read.
//
// Litestream holds a read transaction, so that nobody else starts the
// write-ahead log again from its beginning before all of it was copied. Commits
// that were made and moved into the database file while it held none are lost
// to the copy, and Litestream does not always notice (its issue 1164): the copy
// is damaged then. So this function keeps two rules. An empty log at the start
// makes Litestream begin with a copy of the whole database. And a Sync is never
// cancelled, which could leave it without its read transaction.
func (r Replication) runOnce(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, emptyLimit)
	err := sqldb.EmptyWriteAheadLog(limited, r.Path)
	cancel()
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}

	db := litestream.NewDB(r.Path)
	db.MonitorInterval = 0 // this function calls Sync
	db.Replica = litestream.NewReplicaWithClient(db, &client{store: r.Store})
	db.Replica.MonitorEnabled = false
	all := litestream.NewStore([]*litestream.DB{db}, litestream.DefaultCompactionLevels)
	all.Logger = r.Log
	db.SetLogger(r.Log)
	all.SnapshotInterval = snapshotEvery
	all.SnapshotRetention = r.Keep
	all.SetL0Retention(FineFor)
	all.SetShutdownSyncTimeout(stopLimit)

	if err := all.Open(ctx); err != nil {
		return fmt.Errorf("begin to copy changes: %w", err)
	}
	err = r.copyChanges(ctx, db)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*stopLimit)
	defer cancel()
	if closed := all.Close(closing); err == nil && closed != nil {
		err = fmt.Errorf("copy the last changes: %w", closed)
	}
	return err
}

// copyChanges copies the changes of each second until ctx ends. It returns an
// error if the database could not be read. If the store cannot be reached, it
// tries again: the changes wait in the folder next to the database.
func (r Replication) copyChanges(ctx context.Context, db *litestream.DB) error {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	failing := false
	for {
		if err := db.Sync(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("read the changes: %w", err)
		}
		err := db.Replica.Sync(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !failing:
			r.Log.Error("changes could not be stored; they are kept and tried again", "error", err)
		case err == nil && failing:
			r.Log.Info("changes are stored again")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// claimStore marks an empty store as that of the installation. It returns an
// error if the store has other files.
func (r Replication) claimStore(ctx context.Context) error {
	f, _, err := r.Store.Open(ctx, ownerKey, 0, -1)
	if err == nil {
		defer f.Close()
		owner, err := io.ReadAll(io.LimitReader(f, int64(len(r.Owner))+1))
		if err == nil && string(owner) != r.Owner {
			err = errors.New("the place has the backup of another installation: choose an empty folder or bucket")
		}
		return err
	}
	if !errors.Is(err, blob.ErrNotFound) {
		return err
	}
	for _, err := range r.Store.List(ctx, "") {
		if err == nil {
			err = errors.New("the place for the backup is not empty, and was not made by atelier backup --continuous: choose an empty folder or bucket")
		}
		return err
	}
	_, err = r.Store.Put(ctx, ownerKey, strings.NewReader(r.Owner))
	return err
}

// Restore writes the database as of a moment, or the newest copy if at is zero,
// to a new file at path, and checks the file. It returns the time of the newest
// change in it. It returns ErrEmpty if the store has no copy that is old
// enough.
func Restore(ctx context.Context, from blob.Store, path string, at time.Time, log *slog.Logger) (newest time.Time, err error) {
	c := &client{store: from}
	replica := litestream.NewReplicaWithClient(nil, c)
	plan, err := litestream.CalcRestorePlan(ctx, c, 0, at, log)
	if errors.Is(err, litestream.ErrTxNotAvailable) {
		return newest, ErrEmpty
	}
	if err != nil {
		return newest, fmt.Errorf("choose the changes to restore: %w", err)
	}
	last := plan[len(plan)-1]
	header, err := litestream.FetchLTXHeader(ctx, c, last)
	if err != nil {
		return newest, err
	}

	o := litestream.NewRestoreOptions()
	o.OutputPath = path
	o.TXID = last.MaxTXID
	o.IntegrityCheck = litestream.IntegrityCheckFull
	if err := replica.Restore(ctx, o); err != nil {
		return newest, fmt.Errorf("restore the database: %w", err)
	}
	return time.UnixMilli(header.Timestamp).UTC(), os.Chmod(path, 0o600)
}
