package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	lite "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"atelier/internal/base/fault"
)

// interruptedError is the error of a transaction whose connection was lost
// before the commit was sent, so that the server has rolled it back.
type interruptedError struct{ error }

func (e interruptedError) Unwrap() error { return e.error }

// wasRolledBack reports whether the server ended a transaction without
// committing it, for a reason that may be gone when the transaction is retried:
// it conflicted with a concurrent one, it lost its connection, or this process
// was suspended in the middle of it.
func wasRolledBack(err error) bool {
	if _, ok := errors.AsType[interruptedError](err); ok {
		return true
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	switch pg.Code {
	case serializationFailure, deadlock, idleInTransaction:
		return true
	}
	return false
}

// IsDuplicate reports whether a statement violated a unique index or primary
// key.
func IsDuplicate(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == "23505"
	}
	if l, ok := errors.AsType[*lite.Error](err); ok {
		return l.Code() == lib.SQLITE_CONSTRAINT_UNIQUE || l.Code() == lib.SQLITE_CONSTRAINT_PRIMARYKEY
	}
	return false
}

// Error codes of PostgreSQL.
const (
	serializationFailure = "40001"
	deadlock             = "40P01"
	lockNotAvailable     = "55P03" // waited too long for a row
	idleInTransaction    = "25P03" // the client sent nothing for too long
)

// IsLockTimeout reports whether a statement waited too long for a row that
// another transaction had locked. The database itself is available, and the
// statement may be retried.
func IsLockTimeout(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == lockNotAvailable
}

// classifyError converts errors of an unreachable database, and of a transaction
// that was rolled back too often, to fault.Unavailable and returns other errors
// unchanged.
func classifyError(err error) error {
	if err != nil && isUnreachable(err) {
		return fault.New(fault.Unavailable, "The service can't reach its database. Try again shortly.").Because(err)
	}
	if wasRolledBack(err) && !fault.Is(err, fault.Unavailable) {
		return fault.New(fault.Unavailable, "Too many requests change the same data at the same time. Try again shortly.").Because(err)
	}
	return err
}

func isUnreachable(err error) bool {
	if errors.Is(err, context.Canceled) {
		return false // the client has disconnected; the database is available
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return false // the error was classified before
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true // connecting failed, for whatever reason
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code {
		case lockNotAvailable, "57014", idleInTransaction, "25P04": // timeouts of a lock, a statement, an idle transaction and a transaction
			return true
		}
		// Class 08: connection failed. Class 53: out of resources. 57P:
		// shutting down or starting.
		return strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "53") || strings.HasPrefix(pg.Code, "57P")
	}
	if l, ok := errors.AsType[*lite.Error](err); ok {
		switch l.Code() & 0xff {
		case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_IOERR, lib.SQLITE_CANTOPEN, lib.SQLITE_FULL,
			lib.SQLITE_READONLY, lib.SQLITE_NOMEM, lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
			return true
		}
		return false
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true // timeouts and refused or broken connections
	}
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.Is(err, context.DeadlineExceeded) || pgconn.SafeToRetry(err)
}
