package sqldb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"atelier/internal/base/fault"
)

const (
	// replicaInterval is the time between two checks of the replica.
	replicaInterval = time.Second
	// replicaTimeout is the time limit of one check.
	replicaTimeout = 2 * time.Second
	// defaultReplicaLag is the default of ReplicaOptions.MaxLag.
	defaultReplicaLag = 5 * time.Second
)

// ReplicaOptions are the parameters of UseReplica in addition to the URL.
type ReplicaOptions struct {
	// MaxConns is the maximum number of connections to the replica.
	MaxConns int
	// MaxLag is the longest time by which the replica may be behind the primary
	// while it is used. The default is defaultReplicaLag.
	MaxLag time.Duration
}

// ReplicaStats describes the use of the replica.
type ReplicaStats struct {
	Usable    bool  // the replica answers, and is not too far behind
	Reads     int64 // transactions that the replica answered
	Fallbacks int64 // transactions that the primary answered instead
}

// replica is a streaming replica of a PostgreSQL server.
type replica struct {
	primary *pgxpool.Pool
	pool    *pgxpool.Pool // of the replica
	now     func() time.Time
	maxLag  time.Duration
	stop    context.CancelFunc
	ended   sync.WaitGroup

	usable           atomic.Bool
	reads, fallbacks atomic.Int64
	// samples are positions of the primary in its write-ahead log, oldest
	// first. Only the goroutine that checks the replica uses them.
	samples []logPosition
}

// logPosition is the position of the primary in its write-ahead log at one
// time.
type logPosition struct {
	at    time.Time
	bytes int64
}

// UseReplica lets ReadStale use the streaming replica at a postgres:// URL. The
// replica is checked in the background until Close, and need not be available
// now. UseReplica must be called before ReadStale.
func UseReplica(ctx context.Context, db *DB, address string, o ReplicaOptions) error {
	if db.pool == nil {
		return errors.New("a replica requires a PostgreSQL database")
	}
	if !strings.HasPrefix(address, "postgres://") && !strings.HasPrefix(address, "postgresql://") {
		return errors.New("the address of the replica must have the form postgres://…")
	}
	conf, err := pgxpool.ParseConfig(address)
	if err != nil {
		// The parser's error contains the URL with the password.
		return errors.New("the address of the replica is not a valid postgres:// URL")
	}
	conf.MaxConns = int32(max(o.MaxConns, 2)) // one for the checks
	limitPool(conf)
	pool, err := pgxpool.NewWithConfig(ctx, conf)
	if err != nil {
		return fmt.Errorf("open the replica: %w", err)
	}

	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	r := &replica{
		primary: db.pool,
		pool:    pool,
		now:     db.now,
		maxLag:  cmp.Or(o.MaxLag, defaultReplicaLag),
		stop:    stop,
	}
	db.replica = r
	r.ended.Go(func() { r.checkRepeatedly(watching) })
	return nil
}

// closeReplica ends the checks and closes the connections.
func (r *replica) closeReplica() {
	r.stop()
	r.ended.Wait()
	r.pool.Close()
}

// checkRepeatedly checks the replica until ctx ends.
func (r *replica) checkRepeatedly(ctx context.Context) {
	tick := time.NewTicker(replicaInterval)
	defer tick.Stop()
	for {
		r.usable.Store(r.checkOnce(ctx) == nil)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// checkOnce returns an error if the replica does not answer, is no replica,
// or is too far behind the primary. The replica has everything up to a moment
// if it has replayed the position that the primary had then. The age of the
// last replayed transaction would not do: it grows while nobody writes.
func (r *replica) checkOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, replicaTimeout)
	defer cancel()
	now := r.now()
	var primary int64
	if err := r.primary.QueryRow(ctx, `SELECT CAST(pg_current_wal_lsn() - '0/0' AS BIGINT)`).Scan(&primary); err != nil {
		return fmt.Errorf("read the position of the primary: %w", err)
	}
	r.samples = append(r.samples, logPosition{at: now, bytes: primary})

	var replayed *int64 // NULL on a server that is no replica, for example one that was promoted
	if err := r.pool.QueryRow(ctx, `SELECT CAST(pg_last_wal_replay_lsn() - '0/0' AS BIGINT) WHERE pg_is_in_recovery()`).Scan(&replayed); err != nil {
		return fmt.Errorf("read the position of the replica: %w", err)
	}
	if replayed == nil {
		return errors.New("the replica has replayed nothing")
	}
	return r.checkLag(now, *replayed)
}

// checkLag returns an error if the replica, which has replayed the log up to a
// position, is too far behind. It forgets the samples that no later check
// needs.
func (r *replica) checkLag(now time.Time, replayed int64) error {
	newest := -1
	for i, s := range r.samples {
		if s.bytes <= replayed {
			newest = i
		}
	}
	if newest < 0 {
		if cut := len(r.samples) - int(r.maxLag/replicaInterval) - 1; cut > 0 {
			r.samples = r.samples[cut:]
		}
		return errors.New("the replica is behind the first position that is known")
	}
	r.samples = r.samples[newest:]
	if lag := now.Sub(r.samples[0].at); lag > r.maxLag {
		return fmt.Errorf("the replica is %v behind", lag)
	}
	return nil
}

// ReadStale is like Read, but may run fn on the replica, where it sees the
// database as it was up to a few seconds ago. It is for reports and long lists.
// It is not for credentials, permissions, balances, keys and whatever a change
// depends on.
//
// If the replica is not available or fails, fn runs on the primary, perhaps for
// the second time: it must set all its results in every call. A transaction
// with a guard always runs on the primary.
func (db *DB) ReadStale(ctx context.Context, fn func(*Tx) error) error {
	r := db.replica
	if r == nil {
		return db.Read(ctx, fn)
	}
	if _, guarded := ctx.Value(guardKey{}).(Guard); !guarded && r.usable.Load() {
		err := r.runView(ctx, db, fn)
		if !isReplicaFailure(err) || ctx.Err() != nil {
			r.reads.Add(1)
			return classifyError(err)
		}
		if isAway(err) {
			r.usable.Store(false) // until the next check
		}
	}
	r.fallbacks.Add(1)
	return db.Read(ctx, fn)
}

// ReadList is DB.Read for the first page of a list and DB.ReadStale for the
// others: what a person has just changed is usually on the first page.
func ReadList(ctx context.Context, db *DB, isFirst bool, fn func(*Tx) error) error {
	if isFirst {
		return db.Read(ctx, fn)
	}
	return db.ReadStale(ctx, fn)
}

// runView runs fn on the replica. It takes at most half of the time that
// the operation has, so that the primary can be asked afterwards.
func (r *replica) runView(ctx context.Context, db *DB, fn func(*Tx) error) error {
	defer db.spendBudget(ctx, db.now())
	limited, cancel := context.WithTimeout(ctx, db.limitOf(ctx)/2)
	defer cancel()
	return runTransactionOn(ctx, limited, r.pool, readOptions(ctx), func(ptx pgx.Tx) error {
		tx := db.readTx()
		tx.pgx = ptx
		if err := fn(tx); err != nil {
			return err
		}
		return tx.Flush(ctx)
	})
}

// isReplicaFailure reports whether the primary may succeed where the replica
// failed: the replica did not answer, ended the transaction because of a
// conflict with what it replays, or does not have the newest schema yet.
func isReplicaFailure(err error) bool {
	if err == nil {
		return false
	}
	_, isServer := errors.AsType[*pgconn.PgError](err)
	return isServer || isAway(err)
}

// isAway reports whether a server did not answer, also if the error was
// classified before.
func isAway(err error) bool { return isUnreachable(err) || fault.Is(err, fault.Unavailable) }

// readStats returns the use of the replica. All is zero if there is none.
func (r *replica) readStats() ReplicaStats {
	if r == nil {
		return ReplicaStats{}
	}
	return ReplicaStats{Usable: r.usable.Load(), Reads: r.reads.Load(), Fallbacks: r.fallbacks.Load()}
}
