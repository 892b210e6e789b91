package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // registers the driver "sqlite"
)

// sqlite is a SQLite database with one connection for writing and several for
// reading.
type sqlite struct {
	rows    *readers // connections for queries of one row outside a transaction
	readers *sql.DB  // connections for read transactions

	files *stillFiles // set if no other process had the files open, so they are read without locks

	writers *sql.DB // nil if the database is read-only; then writer is nil too
	turns   turns   // guards writer, writing and group
	writer  *sql.Conn
	writing map[string]*sql.Stmt
	group   *commitGroup // the open transaction; nil if there is none

	waits, waited atomic.Int64 // number of waits for a turn, and their total time in nanoseconds
}

// busyLimit is the maximum time that SQLite waits for another process to
// release a lock.
const busyLimit = 5 * time.Second

// sqliteDSN returns the data source name of the file at path, with the pragmas
// that every connection needs and the pragmas in extra. Write transactions use
// BEGIN IMMEDIATE, because a deferred transaction that first reads and then
// writes fails with SQLITE_BUSY under load.
func sqliteDSN(path string, extra ...string) string {
	return fileDSN(path, append([]string{
		"busy_timeout(" + inMilliseconds(busyLimit) + ")", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
		"recursive_triggers(1)", // so that a REPLACE runs delete triggers, which reject it in append-only tables
	}, extra...)...)
}

// fileDSN returns the data source name of the file at path, with pragmas that
// each new connection runs.
func fileDSN(path string, pragmas ...string) string {
	v := url.Values{"_pragma": pragmas}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: v.Encode()}).String()
}

// createPrivate creates the file of a new database with permissions for the
// service's user only. SQLite itself would create a file that other users can
// read unless the umask prevents it. The write-ahead log and its index get the
// same permissions as the database file.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil // the file exists, or SQLite will report why it cannot be created
	}
	return errors.Join(f.Chmod(0o600), f.Close())
}

func openSQLite(ctx context.Context, path string, readers int) (*sqlite, error) {
	if err := createPrivate(path); err != nil {
		return nil, err
	}
	w, err := sql.Open("sqlite", sqliteDSN(path))
	if err != nil {
		return nil, err
	}
	w.SetMaxOpenConns(1)
	r, err := sql.Open("sqlite", sqliteDSN(path, "query_only(1)"))
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	readers = max(readers, 2)
	r.SetMaxOpenConns(readers)
	r.SetMaxIdleConns(readers)
	l := &sqlite{readers: r, writers: w}
	// The first connection switches the database to write-ahead logging, which
	// read-only connections cannot do.
	if l.writer, err = w.Conn(ctx); err != nil {
		l.closeAll()
		return nil, err
	}
	l.writing = map[string]*sql.Stmt{}
	if l.rows, err = openReaders(sqliteDSN(path, "query_only(1)"), 2*runtime.GOMAXPROCS(0)); err != nil {
		l.closeAll()
		return nil, err
	}
	return l, nil
}

func (l *sqlite) closeAll() {
	if l.rows != nil {
		l.rows.closeAll()
	}
	l.readers.Close()
	for _, s := range l.writing {
		s.Close()
	}
	if l.writer != nil {
		l.writer.Close() // closing the last connection empties the write-ahead log
	}
	if l.writers != nil {
		l.writers.Close()
	}
}

func (l *sqlite) runView(ctx context.Context, limit time.Duration, tx *Tx, fn func(*Tx) error) error {
	if longer, ok := ctx.Value(limitKey{}).(time.Duration); ok {
		limit = longer
	}
	ctx, cancel := context.WithTimeout(ctx, limit) // the transaction is rolled back when the context ends
	defer cancel()
	stx, err := l.readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer stx.Rollback()
	tx.lite = liteTx{exec: stx.ExecContext, query: stx.QueryContext}
	err = fn(tx)
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		return ctx.Err()
	}
	if l.files != nil && l.files.haveChanged() { // checked even if fn succeeded, because fn may have read inconsistent data
		return errDisturbed
	}
	return err
}

// takeTurn waits up to the given time for the turn of this goroutine to write.
// It returns the remaining time. joins says that the caller can continue an open
// transaction. The caller must pass the turn on.
func (l *sqlite) takeTurn(ctx context.Context, limit time.Duration, joins bool) (left time.Duration, err error) {
	if l.turns.tryTake() {
		return limit, nil
	}
	l.waits.Add(1)
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	deadline, _ := waiting.Deadline()
	before := time.Until(deadline)
	err = l.turns.take(waiting, joins)
	left = time.Until(deadline)
	l.waited.Add(int64(before - left))
	return left, err
}

// limitBusy makes SQLite wait for other processes for at most the given time,
// and never longer than busyLimit, until the caller calls reset.
func (l *sqlite) limitBusy(ctx context.Context, left time.Duration) (reset func(), err error) {
	if left >= busyLimit {
		return func() {}, nil
	}
	if err := l.setBusy(ctx, left); err != nil {
		return nil, err
	}
	return func() {
		_ = l.setBusy(context.WithoutCancel(ctx), busyLimit) // an error is ignored: the pragma changes no data
	}, nil
}

// setBusy sets how long the writing connection waits for another process to
// release a lock.
func (l *sqlite) setBusy(ctx context.Context, limit time.Duration) error {
	_, err := l.writer.ExecContext(ctx, `PRAGMA busy_timeout = `+inMilliseconds(max(limit, time.Millisecond)))
	return err
}

func (l *sqlite) runMaintenance(ctx context.Context, limit time.Duration) error {
	left, err := l.takeTurn(ctx, limit, false)
	if err != nil {
		return err
	}
	defer l.turns.pass()
	reset, err := l.limitBusy(ctx, left)
	if err != nil {
		return err
	}
	defer reset()
	for _, pragma := range []string{`PRAGMA optimize`, `PRAGMA wal_checkpoint(PASSIVE)`} {
		if _, err := l.writer.ExecContext(ctx, pragma); err != nil {
			return err
		}
	}
	return nil
}

// prepareStatement returns a prepared statement of the writing connection, and
// prepares it on first use. The caller must have called takeTurn.
func (l *sqlite) prepareStatement(ctx context.Context, query string) (*sql.Stmt, error) {
	if s, ok := l.writing[query]; ok {
		return s, nil
	}
	s, err := l.writer.PrepareContext(ctx, query)
	if err == nil {
		l.writing[query] = s
	}
	return s, err
}

// liteTx has the functions that run statements in a SQLite transaction.
type liteTx struct {
	exec  func(ctx context.Context, query string, args ...any) (sql.Result, error)
	query func(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// liteRow is a query result of which only the first row is read.
type liteRow struct {
	rows *sql.Rows
	err  error
}

func (r liteRow) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	return r.rows.Close()
}
