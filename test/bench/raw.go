package main

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
	"modernc.org/sqlite"

	"atelier/internal/base/sqldb"
)

// raw creates runs with nothing but a driver.
type raw interface {
	create(ctx context.Context, who member) error
	close()
}

// replaying is a side that creates runs with nothing but a driver, as many at
// once as there are connections.
func replaying(ctx context.Context, name string, r raw, people []member, made *atomic.Int64) side {
	turns := newRota(len(people))
	return side{name, func(span time.Duration) (float64, error) {
		var group errgroup.Group
		var n atomic.Int64
		start := time.Now()
		end := start.Add(span)
		for i := range connections {
			group.Go(func() error {
				for time.Now().Before(end) {
					if err := r.create(ctx, people[turns.next(i)]); err != nil {
						return err
					}
					n.Add(1)
				}
				return nil
			})
		}
		err := group.Wait()
		made.Add(n.Load())
		return float64(n.Load()) / time.Since(start).Seconds(), err
	}}
}

// openRaw opens the driver of the server's database.
func openRaw(ctx context.Context, s *server, all []statement) (raw, error) {
	if s.database != "" {
		return openRawPostgres(ctx, s.database, all)
	}
	return openRawSQLite(ctx, strings.TrimPrefix(s.databaseURL(), "sqlite://"), all)
}

// rawSQLite is one connection that writes, with its statements prepared. It is
// used without database/sql, whose bookkeeping is part of what is measured.
type rawSQLite struct {
	mu    sync.Mutex
	conn  driver.Conn
	all   []statement
	stmts []driver.Stmt
}

// pragmas are how the program opens SQLite, for connections that write.
var pragmas = []struct{ name, value string }{
	{"busy_timeout", "5000"}, {"journal_mode", "WAL"}, {"synchronous", "FULL"}, {"foreign_keys", "1"}, {"recursive_triggers", "1"},
}

// samePragmas proves that the program's connections are set up like ours: also
// in what neither sets.
func samePragmas(ctx context.Context, path string, conn driver.Conn) error {
	db, err := sqldb.Open(ctx, "sqlite://"+path, sqldb.Options{MaxConns: 2, Now: time.Now})
	if err != nil {
		return err
	}
	defer db.Close()
	return db.Write(ctx, func(tx *sqldb.Tx) error {
		for _, name := range []string{"busy_timeout", "journal_mode", "synchronous", "foreign_keys", "recursive_triggers",
			"cache_size", "mmap_size", "temp_store", "wal_autocheckpoint", "page_size", "locking_mode"} {
			var theirs any
			if err := tx.QueryRow(ctx, `PRAGMA `+name).Scan(&theirs); err != nil && !errors.Is(err, sqldb.ErrNoRows) {
				return fmt.Errorf("pragma %s: %w", name, err)
			}
			rows, err := conn.(driver.QueryerContext).QueryContext(ctx, `PRAGMA `+name, nil)
			if err != nil {
				return err
			}
			ours := make([]driver.Value, 1)
			err = rows.Next(ours)
			if errors.Is(err, io.EOF) {
				err = nil
			}
			if err = errors.Join(err, rows.Close()); err != nil {
				return err
			}
			if fmt.Sprint(theirs) != fmt.Sprint(ours[0]) {
				return fmt.Errorf("the program sets %s to %v, this command to %v: they are not comparable", name, theirs, ours[0])
			}
		}
		return nil
	})
}

func openRawSQLite(ctx context.Context, path string, all []statement) (*rawSQLite, error) {
	set := url.Values{}
	for _, p := range pragmas {
		set.Add("_pragma", p.name+"("+p.value+")")
	}
	conn, err := new(sqlite.Driver).Open("file:" + path + "?" + set.Encode())
	if err != nil {
		return nil, err
	}
	r := &rawSQLite{conn: conn, all: all}
	if err := samePragmas(ctx, path, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	for _, s := range all {
		stmt, err := conn.Prepare(s.text)
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		r.stmts = append(r.stmts, stmt)
	}
	return r, nil
}

func (r *rawSQLite) close() {
	for _, s := range r.stmts {
		s.Close()
	}
	r.conn.Close()
}

func (r *rawSQLite) exec(text string) error {
	_, err := r.conn.(driver.ExecerContext).ExecContext(context.Background(), text, nil)
	return err
}

func (r *rawSQLite) create(_ context.Context, who member) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	if err := r.send(who); err != nil {
		return errors.Join(err, r.exec(`ROLLBACK`))
	}
	return r.exec(`COMMIT`)
}

func (r *rawSQLite) send(who member) error {
	c, err := newCreation(who, time.Now())
	if err != nil {
		return err
	}
	ctx := context.Background() // one that can end costs the driver a goroutine each time
	for i := range r.all {
		values := r.all[i].values(c)
		args := make([]driver.NamedValue, len(values))
		for k, v := range values {
			if v, err = driver.DefaultParameterConverter.ConvertValue(v); err != nil {
				return err
			}
			args[k] = driver.NamedValue{Ordinal: k + 1, Value: v}
		}
		if !r.all[i].reads {
			if _, err := r.stmts[i].(driver.StmtExecContext).ExecContext(ctx, args); err != nil {
				return err
			}
			continue
		}
		rows, err := r.stmts[i].(driver.StmtQueryContext).QueryContext(ctx, args)
		if err != nil {
			return err
		}
		row := make([]driver.Value, len(rows.Columns()))
		for err == nil {
			err = rows.Next(row)
		}
		if !errors.Is(err, io.EOF) {
			return errors.Join(err, rows.Close())
		}
		if err := rows.Close(); err != nil {
			return err
		}
	}
	return nil
}

// rawPostgres is a pool as large as the program's. pgx prepares statements by
// itself, in both.
type rawPostgres struct {
	pool *pgxpool.Pool
	all  []statement
}

func openRawPostgres(ctx context.Context, address string, all []statement) (*rawPostgres, error) {
	conf, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	conf.MaxConns = connections
	pool, err := pgxpool.NewWithConfig(ctx, conf)
	return &rawPostgres{pool, all}, err
}

func (r *rawPostgres) close() { r.pool.Close() }

func (r *rawPostgres) create(ctx context.Context, who member) error {
	return pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		c, err := newCreation(who, time.Now())
		if err != nil {
			return err
		}
		for i := range r.all {
			if !r.all[i].reads {
				if _, err := tx.Exec(ctx, r.all[i].text, r.all[i].values(c)...); err != nil {
					return err
				}
				continue
			}
			rows, err := tx.Query(ctx, r.all[i].text, r.all[i].values(c)...)
			if err != nil {
				return err
			}
			for rows.Next() {
			}
			rows.Close()
			if err := rows.Err(); err != nil {
				return err
			}
		}
		return nil
	})
}
