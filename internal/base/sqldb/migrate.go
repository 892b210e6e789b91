package sqldb

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"atelier/internal/base/failpoint"
	"atelier/internal/base/osfile"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrationLock is the key of the PostgreSQL advisory lock that a process has
// while it migrates.
const migrationLock = 0x41_54_45_4c // "ATEL"

// ErrNewer is returned if a newer release of the program has migrated the
// database.
var ErrNewer = errors.New("a newer version of atelier has migrated this database")

// Migrate migrates the database schema to this release's version and returns
// the number of migrations that it applied. Several processes may call it at
// the same time: one process migrates and the other processes wait. Each
// migration is one transaction, so after a crash the next call continues with
// the first migration that is missing. On PostgreSQL, indexes on large tables
// are built without a transaction (see prepareIndexes).
func (db *DB) Migrate(ctx context.Context) (steps int, err error) {
	if err := db.checkMoved(ctx); err != nil {
		return 0, err
	}
	return db.applyMigrations(ctx)
}

func (db *DB) applyMigrations(ctx context.Context) (steps int, err error) {
	if db.readOnly {
		return 0, errReadOnly
	}
	pool, err := unlimitedPool(ctx, db)
	if err != nil {
		return 0, fmt.Errorf("connect for migrations: %w", err)
	}
	if pool != nil {
		defer pool.Close()
	}
	unlock, err := lockMigrations(ctx, db, pool)
	if err != nil {
		return 0, fmt.Errorf("lock migrations: %w", err)
	}
	defer unlock()

	p, conn, err := migrationProvider(db, pool)
	if err != nil {
		return 0, fmt.Errorf("read migrations: %w", err)
	}
	defer conn.Close()
	if err := checkVersion(ctx, p); err != nil {
		return 0, err
	}
	if err := prepareIndexes(ctx, pool); err != nil {
		return 0, err
	}
	for {
		res, err := p.UpByOne(ctx)
		if errors.Is(err, goose.ErrNoNextVersion) {
			break
		}
		if err != nil {
			return steps, fmt.Errorf("migrate: %w", err)
		}
		if res != nil {
			steps++
		}
		failpoint.Hit("migrate.mid")
	}
	if pool == nil {
		return steps, nil
	}
	// River has its own migrations for its tables.
	m, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return steps, fmt.Errorf("migrate queue: %w", err)
	}
	res, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	if err != nil {
		return steps, fmt.Errorf("migrate queue: %w", err)
	}
	return steps + len(res.Versions), nil
}

// ErrNone is returned if the database does not contain an Atelier installation.
var ErrNone = errors.New("this database contains no Atelier installation")

// CheckMigrated returns an error unless the schema has exactly this release's
// version. It writes nothing.
func (db *DB) CheckMigrated(ctx context.Context) error {
	if err := db.checkMoved(ctx); err != nil {
		return err
	}
	have, err := db.stepsTaken(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if len(have) == 0 {
		return ErrNone
	}
	want, err := stepNumbers(db.Dialect)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	newest := slices.Max(have)
	if newest > slices.Max(want) {
		return fmt.Errorf("%w: database schema version %d; this program supports up to %d", ErrNewer, newest, slices.Max(want))
	}
	for _, step := range want {
		if !slices.Contains(have, step) {
			return errors.New("the database schema is older than this version of atelier: run atelier migrate")
		}
	}
	return nil
}

// CheckExists returns ErrNone if the database has no schema at all. It writes
// nothing.
func (db *DB) CheckExists(ctx context.Context) error {
	have, err := db.stepsTaken(ctx)
	if err == nil && len(have) == 0 {
		err = ErrNone
	}
	return err
}

// stepsTaken returns the numbers of the migrations that were applied to the
// database. It does not use goose, because goose would create its version
// table.
func (db *DB) stepsTaken(ctx context.Context) (numbers []int64, err error) {
	hasTable := `SELECT to_regclass('` + goose.DefaultTablename + `') IS NOT NULL`
	if db.lite != nil {
		hasTable = `SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '` + goose.DefaultTablename + `')`
	}
	err = db.Read(ctx, func(tx *Tx) error {
		numbers = nil
		var found bool
		if err := tx.QueryRow(ctx, hasTable).Scan(&found); err != nil || !found {
			return err
		}
		// goose adds a row with number 0 when it creates the table.
		numbers, err = All(ctx, tx, `SELECT version_id FROM `+goose.DefaultTablename+` WHERE is_applied AND version_id > 0`, nil,
			func(row Scanner) (n int64, err error) { return n, row.Scan(&n) })
		return err
	})
	return numbers, err
}

// stepNumbers returns the numbers of this release's migrations.
func stepNumbers(d Dialect) (numbers []int64, err error) {
	files, err := fs.ReadDir(stepsFor(d), ".")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		n, err := goose.NumericComponent(f.Name())
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// checkVersion returns ErrNewer if a newer release has migrated the database.
func checkVersion(ctx context.Context, p *goose.Provider) error {
	have, want, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if have > want {
		return fmt.Errorf("%w: database schema version %d; this program supports up to %d", ErrNewer, have, want)
	}
	return nil
}

// unlimitedPool returns a pool of connections without time limits, or nil on
// SQLite. The migration of a large installation takes longer than the usual
// limits allow, and so does waiting for another node that migrates.
func unlimitedPool(ctx context.Context, db *DB) (*pgxpool.Pool, error) {
	if db.pool == nil {
		return nil, nil
	}
	conf := db.pool.Config()
	conf.AfterConnect = nil
	return pgxpool.NewWithConfig(ctx, conf)
}

// migrationProvider returns the migrations for this database. They run on
// connections of the given pool or, on SQLite, on a separate connection, which
// the caller must close.
func migrationProvider(db *DB, pool *pgxpool.Pool) (*goose.Provider, *sql.DB, error) {
	var conn *sql.DB
	dialect := goose.DialectPostgres
	if pool != nil {
		conn = stdlib.OpenDBFromPool(pool)
	} else {
		var err error
		if conn, err = sql.Open("sqlite", sqliteDSN(db.source)); err != nil {
			return nil, nil, err
		}
		conn.SetMaxOpenConns(1)
		dialect = goose.DialectSQLite3
	}
	p, err := goose.NewProvider(dialect, conn, stepsFor(db.Dialect), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return p, conn, nil
}

// invalidIndexes lists the indexes of this schema whose construction was
// interrupted or has not ended.
const invalidIndexes = `
	SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
	WHERE NOT i.indisvalid AND c.relnamespace = current_schema()::regnamespace ORDER BY c.relname`

// concurrentIndex finds the names of the indexes that migrations build without
// a lock on the table.
var concurrentIndex = regexp.MustCompile(`(?i)\bCREATE\s+INDEX\s+CONCURRENTLY\s+IF\s+NOT\s+EXISTS\s+(\w+)`)

// prepareIndexes drops indexes of migrations whose construction was
// interrupted, so that the migration that creates them can be repeated. It does
// nothing on SQLite. The caller must hold the lock of the migrations.
//
// A plain CREATE INDEX of PostgreSQL locks the table against writes until the
// index is complete, which takes minutes for a large table. Therefore the
// migrations of tables that grow with the runs create their indexes with CREATE
// INDEX CONCURRENTLY IF NOT EXISTS, outside of a transaction. If that is
// interrupted, an invalid index remains. TestLargeTablesStayWritable checks the
// migrations.
func prepareIndexes(ctx context.Context, pool *pgxpool.Pool) error {
	if pool == nil {
		return nil
	}
	ours, err := concurrentIndexes()
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	rows, err := pool.Query(ctx, invalidIndexes)
	if err != nil {
		return fmt.Errorf("find invalid indexes: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("find invalid indexes: %w", err)
	}

	for _, name := range names {
		if !slices.Contains(ours, name) { // somebody else may be building it now
			continue
		}
		if _, err := pool.Exec(ctx, `DROP INDEX CONCURRENTLY IF EXISTS `+pgx.Identifier{name}.Sanitize()); err != nil {
			return fmt.Errorf("drop invalid index %s: %w", name, err)
		}
	}
	return nil
}

// concurrentIndexes returns the names of the indexes that migrations build
// without a lock on the table.
func concurrentIndexes() (names []string, err error) {
	steps := stepsFor(dialectPostgres)
	files, err := fs.ReadDir(steps, ".")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := fs.ReadFile(steps, f.Name())
		if err != nil {
			return nil, err
		}
		for _, match := range concurrentIndex.FindAllSubmatch(text, -1) {
			names = append(names, string(match[1]))
		}
	}
	return names, nil
}

// lockRetry is how often a process asks for the lock of the migrations while
// another process has it.
const lockRetry = 200 * time.Millisecond

// lockMigrations ensures that only one process at a time changes the schema.
// The lock is released if the process dies.
//
// On PostgreSQL a process that waits asks again and again, because a statement
// that waits for the lock has a snapshot of the database, and CREATE INDEX
// CONCURRENTLY waits for all snapshots: the two would wait for each other
// forever, and PostgreSQL would not notice.
func lockMigrations(ctx context.Context, db *DB, pool *pgxpool.Pool) (unlock func(), err error) {
	if pool != nil {
		c, err := pool.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		for {
			var locked bool
			if err := c.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, int64(migrationLock)).Scan(&locked); err != nil {
				c.Release()
				return nil, err
			}
			if locked {
				break
			}
			select {
			case <-ctx.Done():
				c.Release()
				return nil, ctx.Err()
			case <-time.After(lockRetry):
			}
		}
		return func() {
			_, _ = c.Exec(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, int64(migrationLock))
			c.Release()
		}, nil
	}
	f, err := os.OpenFile(db.source+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := osfile.Lock(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { f.Close() }, nil
}

// stepsFor returns the migration files for one kind of database: the common
// files, and the files whose suffix names this kind.
func stepsFor(d Dialect) fs.FS {
	sub, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		panic(err) // the directory is embedded above
	}
	other := ".postgres.sql"
	if d.Name == dialectPostgres.Name {
		other = ".sqlite.sql"
	}
	return without{sub, other}
}

// without is a file system that hides files whose names end with suffix.
type without struct {
	fs.FS
	suffix string
}

func (w without) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(w.FS, name)
	return slices.DeleteFunc(all, func(e fs.DirEntry) bool { return strings.HasSuffix(e.Name(), w.suffix) }), err
}
