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

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// sqlite is the embedded database: one connection that writes, several that
// read.
type sqlite struct {
	rows    *readers // for one row each
	readers *sql.DB  // for transactions

	files *stillFiles // that nobody else has open, where they were opened as such

	writers *sql.DB       // nil for reading only, as is the writer
	turn    chan struct{} // holds one token: whoever has it may write
	writer  *sql.Conn     // guarded by turn, as are the statements
	writing map[string]*sql.Stmt

	waits, waited atomic.Int64 // for the turn: how often, and nanoseconds in all
}

// busyLimit is how long SQLite waits for a lock of another process.
const busyLimit = 5 * time.Second

// sqliteDSN names the file with the settings every connection needs. Writers
// begin immediate transactions: a deferred one that reads first and then
// writes fails with SQLITE_BUSY under load.
func sqliteDSN(path string, extra ...string) string {
	return fileDSN(path, append([]string{
		"busy_timeout(" + inMilliseconds(busyLimit) + ")", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
		"recursive_triggers(1)", // so that a REPLACE deletes like a DELETE, and append-only tables refuse it
	}, extra...)...)
}

// fileDSN names a file with the pragmas that each of its connections runs.
func fileDSN(path string, pragmas ...string) string {
	v := url.Values{"_pragma": pragmas}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: v.Encode()}).String()
}

// createPrivate returns the file of a new database, for our user only. SQLite
// would make it readable for all that the umask lets; the log and the index
// beside it get the mode that it has.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil // it is there, or SQLite says why it cannot be made
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
	l := &sqlite{readers: r, writers: w, turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	// The first connection turns WAL on, which readers cannot.
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
		l.writer.Close() // the last one out empties the write-ahead log
	}
	if l.writers != nil {
		l.writers.Close()
	}
}

func (l *sqlite) runView(ctx context.Context, limit time.Duration, tx *Tx, fn func(*Tx) error) error {
	if longer, ok := ctx.Value(limitKey{}).(time.Duration); ok {
		limit = longer
	}
	ctx, cancel := context.WithTimeout(ctx, limit) // the transaction ends with it
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
	if l.files != nil && l.files.haveChanged() { // whatever fn found
		return errDisturbed
	}
	return err
}

// takeTurn waits until nobody else writes, for at most limit. What is left of
// the limit is how long SQLite may wait for another process after that.
func (l *sqlite) takeTurn(ctx context.Context, limit time.Duration) (done func(), err error) {
	give := func() { l.turn <- struct{}{} }
	left := limit
	select {
	case <-l.turn:
	default:
		l.waits.Add(1)
		waiting, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		deadline, _ := waiting.Deadline()
		before := time.Until(deadline)
		defer func() { l.waited.Add(int64(before - time.Until(deadline))) }()
		select {
		case <-l.turn:
		case <-waiting.Done():
			return nil, waiting.Err()
		}
		left = time.Until(deadline)
	}
	if left >= busyLimit {
		return give, nil
	}
	if err := l.setBusy(ctx, left); err != nil {
		give()
		return nil, err
	}
	return func() {
		_ = l.setBusy(context.WithoutCancel(ctx), busyLimit) // a pragma that writes nothing
		give()
	}, nil
}

// setBusy sets how long the writer waits for a lock of another process.
func (l *sqlite) setBusy(ctx context.Context, limit time.Duration) error {
	_, err := l.writer.ExecContext(ctx, `PRAGMA busy_timeout = `+inMilliseconds(max(limit, time.Millisecond)))
	return err
}

func (l *sqlite) runMaintenance(ctx context.Context, limit time.Duration) error {
	done, err := l.takeTurn(ctx, limit)
	if err != nil {
		return err
	}
	defer done()
	for _, pragma := range []string{`PRAGMA optimize`, `PRAGMA wal_checkpoint(PASSIVE)`} {
		if _, err := l.writer.ExecContext(ctx, pragma); err != nil {
			return err
		}
	}
	return nil
}

func (l *sqlite) runUpdate(ctx context.Context, limit time.Duration, tx *Tx, now func() time.Time, fn func(*Tx) error) (err error) {
	end, err := l.takeTurn(ctx, limit)
	if err != nil {
		return err
	}
	defer end()
	done := false
	defer func() {
		// fn failed or panicked, or ctx ended during BEGIN, which may have
		// succeeded all the same. Without a transaction this does nothing.
		if !done {
			_, _ = l.writer.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
		}
	}()
	if _, err = l.writer.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	tx.Now = now()
	tx.lite = liteTx{
		exec: func(ctx context.Context, query string, args ...any) (sql.Result, error) {
			s, err := l.prepareStatement(ctx, query)
			if err != nil {
				return nil, err
			}
			return s.ExecContext(ctx, args...)
		},
		query: func(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
			s, err := l.prepareStatement(ctx, query)
			if err != nil {
				return nil, err
			}
			return s.QueryContext(ctx, args...)
		},
	}
	if err = fn(tx); err != nil {
		return err
	}
	// A commit that began is seen through: a caller who went away must not
	// leave the outcome open.
	if _, err = l.writer.ExecContext(context.WithoutCancel(ctx), `COMMIT`); err != nil {
		return err
	}
	done = true
	return nil
}

// prepareStatement returns the writer's prepared statement. The caller has the turn.
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

// liteTx runs statements inside a transaction on SQLite.
type liteTx struct {
	exec  func(ctx context.Context, query string, args ...any) (sql.Result, error)
	query func(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// liteRow is the first row of an answer.
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
