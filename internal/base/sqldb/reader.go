package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"

	lite "modernc.org/sqlite"
)

// readers are SQLite connections for queries that return one row; every request
// runs at least one such query. They use the driver directly, because the
// overhead of database/sql takes as long as the query itself.
type readers struct {
	free chan *rowReader
	done chan struct{} // closed by closeAll
}

// rowReader is a connection with its prepared statements.
type rowReader struct {
	conn  driver.Conn
	stmts map[string]statement
}

// statement is a prepared statement of the SQLite driver.
type statement interface {
	driver.Stmt
	driver.StmtQueryContext
}

func openReaders(dsn string, n int) (*readers, error) {
	r := &readers{free: make(chan *rowReader, n), done: make(chan struct{})}
	for range n {
		c, err := new(lite.Driver).Open(dsn)
		if err != nil {
			r.closeAll()
			return nil, err
		}
		r.free <- &rowReader{c, map[string]statement{}}
	}
	return r, nil
}

// closeAll closes all connections. They must not be in use.
func (r *readers) closeAll() {
	close(r.done)
	for range len(r.free) {
		one := <-r.free
		for _, s := range one.stmts {
			s.Close() // a connection cannot be closed while it has open statements
		}
		one.conn.Close()
	}
}

// readRow reads the first row of a query. It waits up to the given time for a
// free connection.
func (r *readers) readRow(ctx context.Context, query string, args []any, limit time.Duration) Row {
	one, err := r.takeReader(ctx, limit)
	if err != nil {
		return Row{err: classifyError(err)}
	}
	defer func() { r.free <- one }()
	values, err := one.readValues(query, args)
	if err != nil {
		return Row{err: classifyError(err)}
	}
	return Row{from: values}
}

// takeReader waits up to the given time for a free connection and returns it.
func (r *readers) takeReader(ctx context.Context, limit time.Duration) (*rowReader, error) {
	select {
	case one := <-r.free:
		return one, nil
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case one := <-r.free:
		return one, nil
	case <-r.done:
		return nil, sql.ErrConnDone
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *rowReader) readValues(query string, args []any) (values, error) {
	stmt, ok := r.stmts[query]
	if !ok {
		s, err := r.conn.Prepare(query)
		if err != nil {
			return nil, err
		}
		stmt = s.(statement)
		r.stmts[query] = stmt
	}
	named := make([]driver.NamedValue, len(args))
	for i, a := range args {
		v, err := driver.DefaultParameterConverter.ConvertValue(a)
		if err != nil {
			return nil, fmt.Errorf("convert query argument %d: %w", i+1, err)
		}
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	// The query is not cancelled with the caller's context: reading one row is
	// as quick as cancelling, and without a cancellable context the driver
	// needs no extra goroutine.
	rows, err := stmt.QueryContext(context.Background(), named)
	if err != nil {
		return nil, err
	}
	v := make(values, len(rows.Columns()))
	err = rows.Next(v)
	if errors.Is(err, io.EOF) {
		err = ErrNoRows
	}
	return v, errors.Join(err, rows.Close())
}

// values are the column values of a row.
type values []driver.Value

// Scan implements Scanner for the destination types that the program uses.
func (v values) Scan(dest ...any) error {
	if len(dest) != len(v) {
		return fmt.Errorf("scan: the row has %d columns, but there are %d variables", len(v), len(dest))
	}
	for i, d := range dest {
		if err := assignValue(d, v[i]); err != nil {
			return fmt.Errorf("scan column %d: %w", i+1, err)
		}
	}
	return nil
}

func assignValue(dest any, src driver.Value) error {
	switch d := dest.(type) {
	case *string:
		if s, ok := src.(string); ok {
			*d = s
			return nil
		}
	case *int64:
		if n, ok := src.(int64); ok {
			*d = n
			return nil
		}
	case *int:
		if n, ok := src.(int64); ok {
			*d = int(n)
			return nil
		}
	case *float64:
		switch n := src.(type) {
		case float64:
			*d = n
			return nil
		case int64:
			*d = float64(n)
			return nil
		}
	case *bool:
		switch b := src.(type) {
		case bool:
			*d = b
			return nil
		case int64:
			*d = b != 0
			return nil
		}
	case **string:
		return assignNullable(d, src)
	case **int64:
		return assignNullable(d, src)
	case sql.Scanner:
		return d.Scan(src)
	}
	return fmt.Errorf("a value of type %T cannot be stored in a %T", src, dest)
}

// assignNullable stores a column value in a pointer, which is nil for NULL.
func assignNullable[T any](dest **T, src driver.Value) error {
	if src == nil {
		*dest = nil
		return nil
	}
	*dest = new(T)
	return assignValue(*dest, src)
}
