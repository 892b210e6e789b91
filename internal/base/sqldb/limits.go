package sqldb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Time limits. A request must get a response within ten seconds, even if the
// database fails. A node that is suspended in the middle of a transaction must
// not keep rows locked, and so block other nodes, for longer than that.
//
//	in this process operationLimit  one Read, Write or QueryRow, from waiting for a connection
//	                                to the commit; at the limit the connection is destroyed
//	                stalledLimit    the same, while the server does not respond
//	                RequestBudget   all operations of a request, until its response begins
//	                connectLimit    a new connection
//	at the server   idleLimit       a transaction whose client sends nothing
//	                lockLimit       waiting for a row; a client that still runs retries
//	                statementLimit  one statement; River's longest takes less
//	                tcp_*           a client that has disappeared
//
// Several transactions of a suspended node may wait for the same row, and each
// that gets the lock keeps it for idleLimit. None waits for longer than
// lockLimit, and a node retries only when it runs again. So after the sum of both
// limits the row is available to the other nodes.
//
// River's own queries do not use DB, so only the limits at the server apply to
// them. WithLimit is for the few operations that take longer. Migrations use a
// connection pool without limits.
const (
	operationLimit   = 8 * time.Second
	stalledLimit     = time.Second
	connectLimit     = 5 * time.Second
	idleLimit        = 3 * time.Second
	lockLimit        = 2 * time.Second
	statementLimit   = 65 * time.Second // River reindexes for up to a minute
	transactionLimit = 75 * time.Second // only on PostgreSQL 17 and newer
	silenceLimit     = 20 * time.Second // time after which the system closes a connection whose peer acknowledges no data
)

// limitKey is the context key of WithLimit.
type limitKey struct{}

// WithLimit returns a context in which each database operation may take up to
// the given time. It is for long checks and recounts. An operation still fails
// quickly if the database does not respond when the operation begins.
func WithLimit(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, limitKey{}, limit)
}

// limitOf returns the maximum time of a database operation with the context.
func (db *DB) limitOf(ctx context.Context) time.Duration {
	limit := db.operation
	if db.stalled.Load() {
		limit = min(limit, stalledLimit)
	}
	return min(limit, leftOf(ctx))
}

// boundContext returns a context for an operation on PostgreSQL, which ends at
// the operation's limit. On SQLite it returns ctx, because runView and takeTurn
// apply the limit on SQLite.
func (db *DB) boundContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if db.lite != nil {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, db.limitOf(ctx))
}

// mayWaitAgain reports whether a failed transaction may be retried: it failed
// with a lock timeout, and enough time is left until the limit of the
// operation.
func mayWaitAgain(limited context.Context, err error) bool {
	deadline, ok := limited.Deadline()
	return ok && IsLockTimeout(err) && time.Until(deadline) > lockLimit
}

// noticeOutcome records in db.stalled, after an operation, whether the server
// responds. A timeout counts only if the limit of the operation was long enough
// for a healthy server.
func (db *DB) noticeOutcome(ctx context.Context, limit time.Duration, err error) {
	enough := limit >= min(stalledLimit, db.operation)
	timedOut := enough && ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err))
	if timedOut != db.stalled.Load() && (timedOut || err == nil || errors.Is(err, pgx.ErrNoRows)) {
		db.stalled.Store(timedOut)
	}
}

// runTransaction runs fn in a PostgreSQL transaction, within the time limits.
// At the limit it makes the connection fail, so that a running statement ends
// even if fn uses another context.
func (db *DB) runTransaction(ctx, limited context.Context, o pgx.TxOptions, fn func(pgx.Tx) error) (err error) {
	deadline, _ := limited.Deadline() // set by boundContext
	limit := time.Until(deadline)
	defer func() { db.noticeOutcome(ctx, limit, err) }()
	return runTransactionOn(ctx, limited, db.pool, o, fn)
}

// runTransactionOn is runTransaction on a connection of any pool, and does not
// record whether the server responds.
func runTransactionOn(ctx, limited context.Context, pool *pgxpool.Pool, o pgx.TxOptions, fn func(pgx.Tx) error) error {
	deadline, _ := limited.Deadline()
	if own, ok := ctx.Deadline(); ok && !own.After(deadline) {
		// The caller's context has an earlier deadline. That deadline should
		// end the statement, because its error contains the reason. So the
		// deadline of the connection is set to a later time.
		deadline = own.Add(stalledLimit)
	}
	c, err := pool.Acquire(limited)
	if err != nil {
		return err
	}
	defer c.Release()

	conn := c.Conn()
	timer := time.AfterFunc(time.Until(deadline), func() { _ = conn.PgConn().Conn().SetDeadline(time.Unix(1, 0)) })
	defer func() {
		if !timer.Stop() { // the deadline of the connection has expired, so the connection cannot be reused
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), stalledLimit)
			defer cancel()
			_ = conn.Close(closing)
		}
	}()

	return pgx.BeginTxFunc(ctx, conn, o, func(tx pgx.Tx) error {
		if longer, ok := ctx.Value(limitKey{}).(time.Duration); ok {
			if _, err := tx.Exec(ctx, longerAtServer(conn, longer)); err != nil {
				return err
			}
			if timer.Stop() {
				timer.Reset(longer)
			}
		}
		return fn(tx)
	})
}

// queryRow runs a query for one row on PostgreSQL, within the time limits.
func (db *DB) queryRow(ctx context.Context, query string, args []any) Row {
	began := db.now()
	limit := db.limitOf(ctx)
	bounded, cancel := context.WithTimeout(ctx, limit)
	return Row{from: db.pool.QueryRow(bounded, query, args...), ended: func(err error) {
		cancel()
		db.spendBudget(ctx, began)
		db.noticeOutcome(ctx, limit, err)
	}}
}

// limitPool sets the time limits on every connection of a pool. Limits in the
// database URL take precedence.
func limitPool(conf *pgxpool.Config) {
	limitConnect(conf)
	conf.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		settings := limitsAtServer(conn, conf.ConnConfig.RuntimeParams)
		if settings == "" {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, connectLimit)
		defer cancel()
		if _, err := conn.Exec(ctx, settings); err != nil {
			return fmt.Errorf("set transaction time limits: %w", err)
		}
		return nil
	}
}

// limitConnect limits the time to connect, and the time after which a TCP peer
// that does not respond counts as lost.
func limitConnect(conf *pgxpool.Config) {
	conf.ConnConfig.ConnectTimeout = cmp.Or(conf.ConnConfig.ConnectTimeout, connectLimit)
	dialer := &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silenceLimit / 2, Interval: silenceLimit / 4, Count: 2},
		Control:         setUserTimeout,
	}
	conf.ConnConfig.DialFunc = dialer.DialContext
}

// limitsAtServer returns the SQL statements that set the limits of a session,
// except the limits that chosen already contains. They are not sent as start-up
// parameters, because older servers and PgBouncer refuse connections with
// unknown parameters.
func limitsAtServer(conn *pgx.Conn, chosen map[string]string) string {
	limits := []struct {
		name  string
		value string
	}{
		{"statement_timeout", inMilliseconds(statementLimit)},
		{"lock_timeout", inMilliseconds(lockLimit)},
		{"idle_in_transaction_session_timeout", inMilliseconds(idleLimit)},
		{"tcp_keepalives_idle", inSeconds(silenceLimit / 2)},
		{"tcp_keepalives_interval", inSeconds(silenceLimit / 4)},
		{"tcp_keepalives_count", "2"},
		{"tcp_user_timeout", inMilliseconds(silenceLimit)},
		{"transaction_timeout", inMilliseconds(transactionLimit)},
	}
	var b strings.Builder
	for _, l := range limits {
		if _, ok := chosen[l.name]; ok || l.name == "transaction_timeout" && !hasTransactionTimeout(conn) {
			continue
		}
		b.WriteString("SET " + l.name + " = " + l.value + ";")
	}
	return b.String()
}

// longerAtServer returns the SQL statements that set the database server's
// timeouts for the current transaction to limit.
func longerAtServer(conn *pgx.Conn, limit time.Duration) string {
	longer := "SET LOCAL statement_timeout = " + inMilliseconds(limit) + ";"
	if hasTransactionTimeout(conn) {
		longer += "SET LOCAL transaction_timeout = " + inMilliseconds(limit) + ";"
	}
	return longer
}

// hasTransactionTimeout reports whether the server supports
// transaction_timeout: PostgreSQL 17 or newer.
func hasTransactionTimeout(conn *pgx.Conn) bool {
	major, _, _ := strings.Cut(conn.PgConn().ParameterStatus("server_version"), ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= 17
}

func inMilliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func inSeconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }
