// Package sqldb runs one set of queries on SQLite and on PostgreSQL.
//
// Queries are plain SQL with $1 placeholders. SQLite has one writing
// connection, so that writers queue here and not in SQLITE_BUSY, and a pool of
// readers; PostgreSQL has the pool of pgx. Where the two differ, the
// difference is a field of Dialect.
//
// A database that cannot be reached is a fault.Unavailable; every other error
// comes through as the driver made it.
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

// ErrNoRows is what Row.Scan returns when the query found nothing.
var ErrNoRows = sql.ErrNoRows

// Dialect is how the databases differ. A new field needs a reason here.
type Dialect struct {
	Name string
	// ForUpdate, at the end of a SELECT, locks the rows until the transaction
	// ends. SQLite has one writer at a time and no such clause.
	ForUpdate string
	// ForShare, at the end of a SELECT, keeps others from changing the rows until
	// the transaction ends, and lets them do the same: for what many rely on and
	// few change. SQLite has one writer at a time and no such clause.
	ForShare string
	// SkipLocked is ForUpdate that passes over rows somebody else has locked,
	// for taking work from a list together with others.
	SkipLocked string
	// Clock is the database's own time in microseconds, for checks that look at
	// what should have happened by now: everything else goes by Tx.Now.
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

// Options are what Open needs besides the address.
type Options struct {
	// MaxConns bounds the connections to PostgreSQL and the readers of SQLite.
	MaxConns int
	// Now is this machine's clock.
	Now func() time.Time
	// Follow has Tx.Now and DB.Now keep the time of the PostgreSQL server, so
	// that all nodes agree on it however their own clocks are set. SQLite is on
	// this machine anyway.
	Follow bool
	// ReadOnly opens a database that is there and never writes to it: see
	// readonly.go.
	ReadOnly bool
	// Limit bounds one operation, 0 for the usual: see limits.go.
	Limit time.Duration
	// Trace hears of every statement in a transaction before it is sent, nil for
	// nobody. It must not keep or change args.
	Trace func(query string, args []any)
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	Dialect Dialect

	now    func() time.Time
	clock  *clock        // of the PostgreSQL server, nil to go by our own
	pool   *pgxpool.Pool // PostgreSQL
	lite   *sqlite       // SQLite
	source string        // what Open was given, for the migrations' own connection
	trace  func(query string, args []any)

	readOnly  bool
	sealKey   []byte        // see Tx.Seal
	operation time.Duration // how long one may take
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
			// The parser's text repeats the address, password and all.
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

// Close ends every connection, once. Nobody may be using the database.
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

// Pool is the PostgreSQL pool, nil on SQLite. It is for libraries that bring
// their own SQL (River); everything of ours goes through Tx.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// Ping proves that the database answers.
func (db *DB) Ping(ctx context.Context) error {
	var one int64
	return db.QueryRow(ctx, `SELECT 1`).Scan(&one)
}

// QueryRow runs one reading query outside any transaction. It is the short way
// for requests that need a single row.
func (db *DB) QueryRow(ctx context.Context, query string, args ...any) Row {
	if db.lite != nil {
		defer db.spendBudget(ctx, db.now())
		return db.lite.rows.readRow(ctx, query, args, db.limitOf(ctx))
	}
	return db.queryRow(ctx, query, args)
}

// Read runs fn on one consistent view of the database.
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

// writeTries bounds how often Write repeats a transaction that lost a conflict.
const writeTries = 5

// Write runs fn in one transaction and commits it when fn returns nil. fn may
// run again after a conflict, so it touches only tx and sets its results
// afresh.
func (db *DB) Write(ctx context.Context, fn func(*Tx) error) error {
	if db.readOnly {
		return errReadOnly
	}
	defer db.spendBudget(ctx, db.now())
	fn = withGuardOf(ctx, fn)
	limited, cancel := db.boundContext(ctx)
	defer cancel()
	for try := 1; ; try++ {
		tx := &Tx{Dialect: db.Dialect, trace: db.trace, sealKey: db.sealKey, limited: limited} // its time comes when it begins
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

// readTx is a transaction of Read.
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
	// Now is the time of everything this transaction does, taken when it began:
	// on SQLite it never runs backwards from one to the next.
	Now     time.Time
	Dialect Dialect
	// ReadOnly says that this is a transaction of Read.
	ReadOnly bool

	pgx       pgx.Tx
	lite      liteTx
	committed []func()
	trace     func(query string, args []any)
	sealKey   []byte
	limited   context.Context // ends with the time of the operation, on PostgreSQL
}

// PGX is the PostgreSQL transaction below, nil on SQLite; see DB.Pool.
func (tx *Tx) PGX() pgx.Tx { return tx.pgx }

// AfterCommit runs fn once the transaction has been committed. fn must be
// quick and must not fail: it can wake somebody, not do the work.
func (tx *Tx) AfterCommit(fn func()) { tx.committed = append(tx.committed, fn) }

// Exec runs a writing statement and says how many rows it touched.
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

// QueryRow runs a query that gives at most one row.
func (tx *Tx) QueryRow(ctx context.Context, query string, args ...any) Row {
	if tx.trace != nil {
		tx.trace(query, args)
	}
	if tx.pgx != nil {
		return Row{from: tx.pgx.QueryRow(ctx, query, args...)}
	}
	rows, err := tx.lite.query(ctx, query, args...)
	return Row{from: liteRow{rows, err}}
}

// Scanner takes the columns of one row.
type Scanner interface {
	Scan(dest ...any) error
}

// Row is the answer to a query for one row.
type Row struct {
	from  Scanner
	err   error
	ended func(error) // hears of the outcome, nil for nobody
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

// Each runs a query and hands every row to scan, in order. scan must not use tx:
// PostgreSQL reads the rest of the answer from the same connection.
func (tx *Tx) Each(ctx context.Context, query string, args []any, scan func(Scanner) error) error {
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
	rows, err := tx.lite.query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	return eachRow(rows, scan)
}

// eachRow hands the rows of either database to scan.
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

// Maintain does the small upkeep that SQLite leaves to its users: statistics
// for the planner, and the write-ahead log kept short. PostgreSQL does its own.
func (db *DB) Maintain(ctx context.Context) error {
	if db.lite == nil || db.readOnly {
		return nil
	}
	return classifyError(db.lite.runMaintenance(ctx, db.operation))
}
