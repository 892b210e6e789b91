// Package sqldb runs the same queries on SQLite and PostgreSQL.
//
// Queries are plain SQL with placeholders like $1. SQLite has one connection
// for writing, so that writers wait in this package instead of failing with
// SQLITE_BUSY, and several connections for reading. PostgreSQL has a connection
// pool of pgx. The fields of Dialect contain the differences between the two
// databases.
//
// If the database cannot be reached, the error is fault.Unavailable. Other
// errors of the driver are returned unchanged.
package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrNoRows is returned by Row.Scan if the query found no row.
var ErrNoRows = sql.ErrNoRows

// Dialect contains the differences between the two databases. The comment of
// each field explains why it is needed.
type Dialect struct {
	Name string
	// ForUpdate, at the end of a SELECT, locks the rows until the transaction
	// ends. It is empty on SQLite, which has only one writer at a time.
	ForUpdate string
	// ForShare, at the end of a SELECT, prevents changes to the rows until the
	// transaction ends. Several transactions can lock a row in this way at the
	// same time. It is for rows that are often read and rarely changed. It is
	// empty on SQLite, which has only one writer at a time.
	ForShare string
	// SkipLocked is like ForUpdate, but skips rows that other transactions have
	// locked. It is for workers that concurrently claim rows of one table.
	SkipLocked string
	// Clock is an SQL expression for the time of the database server in
	// microseconds since 1970. It is only for checks of deadlines; all other
	// code uses Tx.Now.
	Clock string
}

var (
	dialectSQLite   = Dialect{Name: "sqlite", Clock: "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"}
	dialectPostgres = Dialect{
		Name:       "postgres",
		ForUpdate:  " FOR UPDATE",
		ForShare:   " FOR SHARE",
		SkipLocked: " FOR UPDATE SKIP LOCKED",
		Clock:      "CAST(extract(epoch FROM now()) * 1000000 AS BIGINT)",
	}
)

// Options are the parameters of Open in addition to the database URL.
type Options struct {
	// MaxConns is the maximum number of connections. On SQLite it limits only
	// the connections for read transactions.
	MaxConns int
	// IdleConns is the number of idle connections to PostgreSQL that are kept
	// open, ready for the next requests.
	IdleConns int
	// ConnLifetime is the age at which a connection to PostgreSQL is replaced,
	// and ConnIdleTime is the time after which an idle one is closed. Zero means
	// the default of pgx: an hour, and half an hour.
	ConnLifetime, ConnIdleTime time.Duration
	// Now is the local clock.
	Now func() time.Time
	// Follow makes Tx.Now and DB.Now return the time of the PostgreSQL server,
	// so that all nodes use the same time even if their own clocks differ. It
	// has no effect on SQLite.
	Follow bool
	// ReadOnly opens an existing database and never writes to it. See
	// readonly.go.
	ReadOnly bool
	// Limit is the maximum time of one operation. The default is
	// operationLimit, see limits.go.
	Limit time.Duration
	// Trace, if set, is called with every statement of a transaction before it
	// is executed. The function must not keep or change args.
	Trace func(query string, args []any)
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	Dialect Dialect

	now     func() time.Time
	clock   *clock        // clock of the PostgreSQL server; nil if the local clock is used
	pool    *pgxpool.Pool // nil on SQLite
	lite    *sqlite       // nil on PostgreSQL
	replica *replica      // nil without a replica
	source  string        // URL of the PostgreSQL database, or path of the SQLite file
	trace   func(query string, args []any)

	readOnly  bool
	sealKey   []byte        // key for Tx.SealTexts
	operation time.Duration // maximum time of one operation
	stalled   atomic.Bool   // the PostgreSQL server does not respond
	closing   sync.Once
}

// Open opens the database at a URL of the form sqlite:///path or postgres://….
func Open(ctx context.Context, address string, o Options) (*DB, error) {
	db := &DB{
		now:       o.Now,
		source:    address,
		trace:     o.Trace,
		readOnly:  o.ReadOnly,
		operation: cmp.Or(o.Limit, operationLimit),
	}
	scheme, _, _ := strings.Cut(address, "://")
	switch scheme {
	case "sqlite":
		path, err := sqlitePath(address)
		if err != nil {
			return nil, err
		}
		db.Dialect = dialectSQLite
		db.source = path
		if o.ReadOnly {
			db.lite, err = openSQLiteReadOnly(path, o.MaxConns)
		} else {
			db.lite, err = openSQLite(ctx, path, o.MaxConns)
		}
		if err != nil {
			return nil, fmt.Errorf("open database: %w", err)
		}
	case "postgres", "postgresql":
		conf, err := pgxpool.ParseConfig(address)
		if err != nil {
			// The parser's error is not returned, because it contains the URL
			// with the password.
			return nil, errors.New("the database address is not a valid postgres:// URL")
		}
		conf.MaxConns = int32(max(o.MaxConns, 4)) // migrations use several connections at the same time
		conf.MinIdleConns = int32(min(o.IdleConns, int(conf.MaxConns)))
		conf.MaxConnLifetime = cmp.Or(o.ConnLifetime, conf.MaxConnLifetime)
		conf.MaxConnIdleTime = cmp.Or(o.ConnIdleTime, conf.MaxConnIdleTime)
		limitPool(conf)
		db.Dialect = dialectPostgres
		db.pool, err = pgxpool.NewWithConfig(ctx, conf)
		if err != nil {
			return nil, fmt.Errorf("open database: %w", err)
		}
		if o.Follow {
			db.clock = &clock{}
		}
	default:
		return nil, fmt.Errorf("the database address must have the form sqlite:///path or postgres://…")
	}
	err := db.Ping(ctx)
	if err == nil {
		err = db.followClock(ctx, db.QueryRow)
	}
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("open database: %w", err)
	}
	return db, nil
}

// sqlitePath returns the path of the SQLite database at a URL.
func sqlitePath(address string) (string, error) {
	escaped, ok := strings.CutPrefix(address, "sqlite://")
	path, err := url.PathUnescape(escaped)
	if err != nil || !ok || path == "" {
		return "", errors.New("the database address must have the form sqlite:///path")
	}
	return path, nil
}

// Close closes all connections. The database must no longer be in use. Further
// calls have no effect.
func (db *DB) Close() {
	db.closing.Do(func() {
		if db.lite != nil {
			db.lite.closeAll()
		}
		if db.replica != nil {
			db.replica.closeReplica()
		}
		if db.pool != nil {
			db.pool.Close()
		}
	})
}

// Pool returns the PostgreSQL connection pool, or nil on SQLite. It is only for
// libraries that run their own SQL (River).
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// Ping returns an error if the database does not respond.
func (db *DB) Ping(ctx context.Context) error {
	var one int64
	return db.QueryRow(ctx, `SELECT 1`).Scan(&one)
}

// QueryRow runs a query for one row outside a transaction.
func (db *DB) QueryRow(ctx context.Context, query string, args ...any) Row {
	if db.lite != nil {
		defer db.spendBudget(ctx, db.now())
		return db.lite.rows.readRow(ctx, query, args, db.limitOf(ctx))
	}
	return db.queryRow(ctx, query, args)
}

// Read runs fn in a read-only transaction, which sees one consistent snapshot
// of the database.
func (db *DB) Read(ctx context.Context, fn func(*Tx) error) error {
	defer db.spendBudget(ctx, db.now())
	fn = withGuardOf(ctx, fn)
	if db.lite != nil {
		return classifyError(db.lite.runView(ctx, db.limitOf(ctx), db.readTx(), fn))
	}
	limited, cancel := db.boundContext(ctx)
	defer cancel()
	return classifyError(db.runTransaction(ctx, limited, readOptions(ctx), func(ptx pgx.Tx) error {
		tx := db.readTx()
		tx.pgx = ptx
		if err := fn(tx); err != nil {
			return err
		}
		return tx.Flush(ctx)
	}))
}

// writeTries is the maximum number of times that Write runs a transaction that
// is rolled back.
const writeTries = 5

// Write runs fn in a transaction and commits it if fn returns nil. If the
// server rolled the transaction back, because it conflicts with others or lost
// its connection before the commit, fn is called again. So fn must have no
// effects except through tx, and must set all its results in every call.
func (db *DB) Write(ctx context.Context, fn func(*Tx) error) error {
	if db.readOnly {
		return errReadOnly
	}
	defer db.spendBudget(ctx, db.now())
	fn = withGuardOf(ctx, fn)
	limited, cancel := db.boundContext(ctx)
	defer cancel()
	for try := 1; ; try++ {
		tx := &Tx{Dialect: db.Dialect, trace: db.trace, sealKey: db.sealKey, limited: limited} // Now is set when the transaction begins
		err := db.writeOnce(ctx, tx, fn)
		if err == nil {
			for _, f := range tx.committed {
				f()
			}
			return nil
		}
		if !mayWaitAgain(limited, err) && (try == writeTries || !wasRolledBack(err)) {
			return classifyError(err)
		}
	}
}

func (db *DB) writeOnce(ctx context.Context, tx *Tx, fn func(*Tx) error) error {
	if db.lite != nil {
		return db.lite.runUpdate(ctx, db.limitOf(ctx), tx, db.Now, fn)
	}
	return db.runTransaction(ctx, tx.limited, pgx.TxOptions{}, func(ptx pgx.Tx) error {
		tx.pgx = ptx
		if err := db.followClock(ctx, tx.QueryRow); err != nil {
			return err
		}
		tx.Now = db.Now()
		err := fn(tx)
		if err == nil {
			err = tx.Flush(ctx)
		}
		if err != nil && ptx.Conn().IsClosed() && tx.limited.Err() == nil && ctx.Err() == nil {
			return interruptedError{err}
		}
		return err
	})
}

// readTx returns a read-only Tx, not yet connected to a database transaction.
func (db *DB) readTx() *Tx {
	return &Tx{
		Now:      db.Now(),
		Dialect:  db.Dialect,
		ReadOnly: true,
		trace:    db.trace,
		sealKey:  db.sealKey,
	}
}

// Tx is a database transaction.
type Tx struct {
	// Now is the time when the transaction began. All rows that the transaction
	// writes use this time. On SQLite, Now never decreases from one transaction
	// to the next. Only AdvanceNow changes it.
	Now     time.Time
	Dialect Dialect
	// ReadOnly is true in transactions of DB.Read.
	ReadOnly bool

	pgx       pgx.Tx
	lite      liteTx
	committed []func()
	deferred  []deferred // statements that have not been sent yet; see pipeline.go
	trace     func(query string, args []any)
	sealKey   []byte
	limited   context.Context // on PostgreSQL, ends at the time limit of the operation
}

// PGX returns the underlying PostgreSQL transaction, or nil on SQLite. It is
// only for River. It sends the deferred statements first.
func (tx *Tx) PGX(ctx context.Context) (pgx.Tx, error) { return tx.pgx, tx.Flush(ctx) }

// AdvanceNow sets Now to a later time. It is for a transaction that has waited
// for a lock: its rows must not have an earlier time than the rows of the
// transaction that had the lock before. If the given time is not later than
// Now, AdvanceNow changes nothing.
func (tx *Tx) AdvanceNow(to time.Time) {
	if to.After(tx.Now) {
		tx.Now = to
	}
}

// AfterCommit registers a function that is called after the transaction was
// committed, for example to wake a worker. The function must be quick and
// cannot report an error.
func (tx *Tx) AfterCommit(fn func()) { tx.committed = append(tx.committed, fn) }

// Exec runs a statement and returns the number of affected rows.
func (tx *Tx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	tx.traceStatement(query, args)
	if len(tx.deferred) > 0 {
		results, err := tx.sendDeferred(ctx, query, args)
		if err != nil {
			return 0, err
		}
		tag, err := results.Exec()
		if closed := results.Close(); err == nil {
			err = closed
		}
		return tag.RowsAffected(), err
	}
	if tx.pgx != nil {
		tag, err := tx.pgx.Exec(ctx, query, args...)
		return tag.RowsAffected(), err
	}
	res, err := tx.lite.exec(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// QueryRow runs a query that returns at most one row.
func (tx *Tx) QueryRow(ctx context.Context, query string, args ...any) Row {
	tx.traceStatement(query, args)
	if len(tx.deferred) > 0 {
		results, err := tx.sendDeferred(ctx, query, args)
		if err != nil {
			return Row{err: classifyError(err)}
		}
		return Row{from: batchRow{results}}
	}
	if tx.pgx != nil {
		return Row{from: tx.pgx.QueryRow(ctx, query, args...)}
	}
	rows, err := tx.lite.query(ctx, query, args...) //nolint:rowserrcheck // liteRow checks it
	return Row{from: liteRow{rows, err}}
}

// Scanner reads the columns of one row.
type Scanner interface {
	Scan(dest ...any) error
}

// Row is the result of a query for one row.
type Row struct {
	from  Scanner
	err   error
	ended func(error) // called with the result of Scan; may be nil
}

// Scan copies the columns to dest. It returns ErrNoRows if there is no row.
func (r Row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	err := r.from.Scan(dest...)
	if r.ended != nil {
		r.ended(err)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNoRows
	}
	return classifyError(err)
}

// EachRow runs a query and calls scan with every row, in order. scan must not
// use tx, because PostgreSQL is still sending rows on the same connection.
func (tx *Tx) EachRow(ctx context.Context, query string, args []any, scan func(Scanner) error) error {
	tx.traceStatement(query, args)
	if len(tx.deferred) > 0 {
		results, err := tx.sendDeferred(ctx, query, args)
		if err != nil {
			return err
		}
		rows, err := results.Query() //nolint:rowserrcheck // eachRow checks it
		if err == nil {
			err = eachRow(rows, scan)
			rows.Close()
		}
		if closed := results.Close(); err == nil {
			err = closed
		}
		return err
	}
	if tx.pgx != nil {
		rows, err := tx.pgx.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		return eachRow(rows, scan)
	}
	rows, err := tx.lite.query(ctx, query, args...) //nolint:rowserrcheck // eachRow checks it
	if err != nil {
		return err
	}
	defer rows.Close()
	return eachRow(rows, scan)
}

// eachRow calls scan with every row of a result of either database.
func eachRow(rows interface {
	Scanner
	Next() bool
	Err() error
}, scan func(Scanner) error) error {
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// MaintainFiles updates the query planner's statistics and moves the
// write-ahead log into the database on SQLite. PostgreSQL does both by itself.
func (db *DB) MaintainFiles(ctx context.Context) error {
	if db.lite == nil || db.readOnly {
		return nil
	}
	return classifyError(db.lite.runMaintenance(ctx, db.operation))
}
