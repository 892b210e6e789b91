// Package sqldb runs one set of queries on SQLite and on PostgreSQL.
//
// Queries are plain SQL with $1 placeholders. SQLite has one writing connection,
// so that writers queue here instead of failing with SQLITE_BUSY, and a pool of
// readers; PostgreSQL has the pool of pgx. Differences between the two databases
// are fields of Dialect.
//
// Errors of a database that cannot be reached are fault.Unavailable. Other
// errors are returned unchanged from the driver.
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

// ErrNoRows is the error of Row.Scan when the query found no row.
var ErrNoRows = sql.ErrNoRows

// Dialect has the differences between the databases. A new field needs a reason
// here.
type Dialect struct {
	Name string
	// ForUpdate, at the end of a SELECT, locks the rows until the transaction
	// ends. SQLite has one writer at a time and no such clause.
	ForUpdate string
	// ForShare, at the end of a SELECT, prevents changes of the rows until the
	// transaction ends; other transactions may share the lock. It is for rows that
	// are read often and changed seldom. SQLite has one writer at a time and no
	// such clause.
	ForShare string
	// SkipLocked is ForUpdate that skips rows locked by other transactions, for
	// workers that claim rows of one table concurrently.
	SkipLocked string
	// Clock is an expression for the database server's time in microseconds, for
	// checks of deadlines. All other code uses Tx.Now.
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

// Options are the settings of Open besides the address.
type Options struct {
	// MaxConns limits the connections to PostgreSQL and the readers of SQLite.
	MaxConns int
	// Now is this machine's clock.
	Now func() time.Time
	// Follow makes Tx.Now and DB.Now return the time of the PostgreSQL server, so
	// that all nodes agree even when their own clocks differ. It has no effect on
	// SQLite.
	Follow bool
	// ReadOnly opens an existing database and never writes to it: see
	// readonly.go.
	ReadOnly bool
	// Limit is the longest time of one operation, 0 for the default: see limits.go.
	Limit time.Duration
	// Trace, if set, is called with every statement of a transaction before it is
	// sent. It must not keep or change args.
	Trace func(query string, args []any)
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	Dialect Dialect

	now    func() time.Time
	clock  *clock        // of the PostgreSQL server, nil to use now
	pool   *pgxpool.Pool // PostgreSQL
	lite   *sqlite       // SQLite
	source string        // the address given to Open, for the migrations' own connection
	trace  func(query string, args []any)

	readOnly  bool
	sealKey   []byte        // see Tx.SealTexts
	operation time.Duration // the longest time of one operation
	stalled   atomic.Bool   // the PostgreSQL server does not answer
	closing   sync.Once
}

// Open connects to sqlite:///path or postgres://….
func Open(ctx context.Context, address string, o Options) (*DB, error) {
	db := &DB{
		now:       o.Now,
		source:    address,
		trace:     o.Trace,
		readOnly:  o.ReadOnly,
		operation: cmp.Or(o.Limit, operationLimit),
	}
	scheme, rest, _ := strings.Cut(address, "://")
	switch scheme {
	case "sqlite":
		path, err := url.PathUnescape(rest)
		if err != nil || path == "" {
			return nil, fmt.Errorf("database address: want sqlite:///path")
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
			// The parser's error contains the address with the password.
			return nil, errors.New("database address: not a valid postgres:// address")
		}
		conf.MaxConns = int32(max(o.MaxConns, 4)) // migrations hold one and use others
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
		return nil, fmt.Errorf("database address: want sqlite:///path or postgres://…")
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

// Close closes all connections, once. The database must no longer be in use.
func (db *DB) Close() {
	db.closing.Do(func() {
		if db.lite != nil {
			db.lite.closeAll()
		}
		if db.pool != nil {
			db.pool.Close()
		}
	})
}

// Pool returns the PostgreSQL pool, nil on SQLite. It is for libraries with SQL
// of their own (River); the program itself uses Tx.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// Ping checks that the database answers.
func (db *DB) Ping(ctx context.Context) error {
	var one int64
	return db.QueryRow(ctx, `SELECT 1`).Scan(&one)
}

// QueryRow runs one reading query outside any transaction, for requests that need
// a single row.
func (db *DB) QueryRow(ctx context.Context, query string, args ...any) Row {
	if db.lite != nil {
		defer db.spendBudget(ctx, db.now())
		return db.lite.rows.readRow(ctx, query, args, db.limitOf(ctx))
	}
	return db.queryRow(ctx, query, args)
}

// Read runs fn on one consistent snapshot of the database.
func (db *DB) Read(ctx context.Context, fn func(*Tx) error) error {
	defer db.spendBudget(ctx, db.now())
	fn = withGuardOf(ctx, fn)
	if db.lite != nil {
		return classifyError(db.lite.runView(ctx, db.limitOf(ctx), db.readTx(), fn))
	}
	opts := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	limited, cancel := db.boundContext(ctx)
	defer cancel()
	return classifyError(db.runTransaction(ctx, limited, opts, func(ptx pgx.Tx) error {
		tx := db.readTx()
		tx.pgx = ptx
		return fn(tx)
	}))
}

// writeTries is the number of times that Write runs a transaction that conflicts
// with others.
const writeTries = 5

// Write runs fn in one transaction and commits it when fn returns nil. fn may
// run again after a conflict, so it must use only tx and must set all its
// results in every run.
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
		if !mayWaitAgain(limited, err) && (try == writeTries || !isConflict(err)) {
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
		return fn(tx)
	})
}

// readTx returns a transaction for Read.
func (db *DB) readTx() *Tx {
	return &Tx{
		Now:      db.Now(),
		Dialect:  db.Dialect,
		ReadOnly: true,
		trace:    db.trace,
		sealKey:  db.sealKey,
	}
}

// Tx is one transaction.
type Tx struct {
	// Now is the time at which the transaction began. All its rows use it. On
	// SQLite it never decreases from one transaction to the next. Only AdvanceNow
	// changes it.
	Now     time.Time
	Dialect Dialect
	// ReadOnly is true in transactions of Read.
	ReadOnly bool

	pgx       pgx.Tx
	lite      liteTx
	committed []func()
	trace     func(query string, args []any)
	sealKey   []byte
	limited   context.Context // ends at the limit of the operation, on PostgreSQL
}

// PGX returns the underlying PostgreSQL transaction, nil on SQLite; see DB.Pool.
func (tx *Tx) PGX() pgx.Tx { return tx.pgx }

// AdvanceNow sets Now to a later time, for a transaction that has waited for a
// lock and must not date its rows before the rows of the lock's previous holder.
// An earlier time changes nothing.
func (tx *Tx) AdvanceNow(to time.Time) {
	if to.After(tx.Now) {
		tx.Now = to
	}
}

// AfterCommit runs fn after the transaction was committed. fn must be quick and
// must not fail: it wakes a worker and does no work itself.
func (tx *Tx) AfterCommit(fn func()) { tx.committed = append(tx.committed, fn) }

// Exec runs a writing statement and returns the number of affected rows.
func (tx *Tx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	if tx.trace != nil {
		tx.trace(query, args)
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
	if tx.trace != nil {
		tx.trace(query, args)
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
	ended func(error) // called with the outcome, may be nil
}

// Scan stores the columns in dest, or returns ErrNoRows.
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

// EachRow runs a query and calls scan with every row, in order. scan must not use
// tx: PostgreSQL reads the rest of the result from the same connection.
func (tx *Tx) EachRow(ctx context.Context, query string, args []any, scan func(Scanner) error) error {
	if tx.trace != nil {
		tx.trace(query, args)
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

// eachRow calls scan with the rows of either database.
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

// MaintainFiles updates the planner's statistics and truncates the write-ahead log on
// SQLite. PostgreSQL does both by itself.
func (db *DB) MaintainFiles(ctx context.Context) error {
	if db.lite == nil || db.readOnly {
		return nil
	}
	return classifyError(db.lite.runMaintenance(ctx, db.operation))
}
