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

// isConflict reports whether a transaction failed because it conflicted with a
// concurrent transaction, so that it may be retried.
func isConflict(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == "40001" || pg.Code == "40P01" // serialization failure, deadlock
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

// lockNotAvailable is PostgreSQL's error code for a lock timeout.
const lockNotAvailable = "55P03"

// IsLockTimeout reports whether a statement waited too long for a row that
// another transaction had locked. The database itself is available, and the
// statement may be retried.
func IsLockTimeout(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == lockNotAvailable
}

// classifyError converts errors of an unreachable database to fault.Unavailable
// and returns other errors unchanged.
func classifyError(err error) error {
	if err == nil || !isUnreachable(err) {
		return err
	}
	return fault.New(fault.Unavailable, "The service can't reach its database. Try again shortly.").Because(err)
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
		case lockNotAvailable, "57014", "25P03", "25P04": // timeouts of a lock, a statement, an idle transaction and a transaction
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
