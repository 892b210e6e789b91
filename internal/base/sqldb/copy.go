package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	lite "modernc.org/sqlite"
)

// errNotEmbedded is returned by operations that work only on SQLite.
var errNotEmbedded = errors.New("only the embedded SQLite database supports this operation")

// copyPages is the number of database pages that are copied before the context
// is checked again.
const copyPages = 256

// CopyTo writes a copy of the SQLite database to a new file at path, which only
// the service's user can read. The copy is a consistent snapshot. Copying does
// not block other readers and writers, even in other processes, but the
// write-ahead log cannot be truncated until the copy is complete.
func (db *DB) CopyTo(ctx context.Context, path string) (err error) {
	if db.lite == nil {
		return errNotEmbedded
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("copy database: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("copy database: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("copy database: %w", err), os.Remove(path))
		}
	}()

	source, err := sql.Open("sqlite", sqliteDSN(db.source, "query_only(1)"))
	if err != nil {
		return err
	}
	defer source.Close()
	conn, err := source.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()

	// The transaction keeps one snapshot of the database. Without it, SQLite
	// would restart the copy after every change by another connection.
	if _, err := conn.ExecContext(ctx, `BEGIN`); err != nil {
		return err
	}
	defer func() {
		_, end := conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
		err = errors.Join(err, end)
	}()
	var tables int64
	if err := conn.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&tables); err != nil {
		return err
	}
	return conn.Raw(func(driver any) error { return copyAll(ctx, driver, path) })
}

// copyAll copies the database of a connection to a file at path, page by page.
func copyAll(ctx context.Context, driver any, path string) error {
	source, ok := driver.(interface {
		NewBackup(uri string) (*lite.Backup, error)
	})
	if !ok {
		return errors.New("the SQLite driver does not support online backups")
	}
	target := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: "_pragma=synchronous(FULL)"}).String()
	backup, err := source.NewBackup(target)
	if err != nil {
		return err
	}
	for more := true; more && err == nil; {
		if err = ctx.Err(); err == nil {
			more, err = backup.Step(copyPages)
		}
	}
	return errors.Join(err, backup.Finish())
}

// EmptyWriteAheadLog moves everything in the write-ahead log of the SQLite
// database at path into the database file, and truncates the log. It waits for
// transactions of other connections until ctx ends.
func EmptyWriteAheadLog(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", sqliteDSN(path))
	if err != nil {
		return fmt.Errorf("empty the write-ahead log: %w", err)
	}
	defer db.Close()
	for {
		var busy, frames, moved int64
		if err := db.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &moved); err != nil {
			return fmt.Errorf("empty the write-ahead log: %w", err)
		}
		if busy == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("empty the write-ahead log: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// integrityLimit is the maximum time of SQLite's integrity check.
const integrityLimit = 6 * time.Hour

// CheckIntegrity runs SQLite's integrity check and returns the problems that it
// finds.
func (db *DB) CheckIntegrity(ctx context.Context) (problems []string, err error) {
	if db.lite == nil {
		return nil, errNotEmbedded
	}
	ctx = WithLimit(ctx, integrityLimit)
	err = db.Read(ctx, func(tx *Tx) error {
		problems, err = All(ctx, tx, `PRAGMA integrity_check`, nil, func(row Scanner) (line string, err error) {
			err = row.Scan(&line)
			return line, err
		})
		return err
	})
	if len(problems) == 1 && problems[0] == "ok" {
		problems = nil
	}
	return problems, err
}

// Version returns the schema version of the database, which is the number of
// the last migration.
func (db *DB) Version(ctx context.Context) (int64, error) {
	p, conn, err := migrationProvider(db, db.pool)
	if err != nil {
		return 0, fmt.Errorf("read migrations: %w", err)
	}
	defer conn.Close()
	have, _, err := p.GetVersions(ctx)
	if err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	return have, nil
}
