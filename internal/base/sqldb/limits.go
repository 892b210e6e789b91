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

// Time limits. A request must be answered within ten seconds whatever the
// database does, and a node that is paused in the middle of a transaction must
// not block others from its rows for longer than that.
//
//	here            operationLimit  one Read, Write or QueryRow, from waiting for a
//	                                connection to the commit; the connection is destroyed
//	                stalledLimit    the same, while the server does not answer
//	                RequestBudget   all operations of a request, until its answer begins
//	                connectLimit    a new connection
//	at the server   idleLimit       a transaction whose client sends nothing
//	                lockLimit       waiting for a row; a client that still runs retries
//	                statementLimit  one statement, more than River's longest
//	                tcp_*           a client that has disappeared
//
// Several transactions of a paused node may wait for one row, and each that gets
// the row keeps it for idleLimit. None waits for longer than lockLimit, and a
// paused node does not retry: after the sum of both limits the row is free for
// the other nodes.
//
// River's own queries do not use DB, so only the limits at the server apply to
// them. WithLimit is for the few operations that take longer; migrations have a
// pool without limits.
const (
	operationLimit   = 8 * time.Second
	stalledLimit     = time.Second
	connectLimit     = 5 * time.Second
	idleLimit        = 3 * time.Second
	lockLimit        = 2 * time.Second
	statementLimit   = 65 * time.Second // River reindexes for up to a minute
	transactionLimit = 75 * time.Second // from PostgreSQL 17 on
	silenceLimit     = 20 * time.Second // of a peer that acknowledges no data
)

// limitKey is the context key of WithLimit.
type limitKey struct{}

// WithLimit allows each operation with the context to take up to limit, for
// checks and recounts. An operation still fails at once if the database does not
// answer at its beginning.
func WithLimit(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, limitKey{}, limit)
}

// limitOf returns the longest time of an operation with the context.
func (db *DB) limitOf(ctx context.Context) time.Duration {
	limit := db.operation
	if db.stalled.Load() {
		limit = min(limit, stalledLimit)
	}
	return min(limit, leftOf(ctx))
}

// boundContext returns the context of an operation on PostgreSQL, which ends at
// the operation's limit. SQLite needs none: its limits apply to its waits.
func (db *DB) boundContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if db.lite != nil {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, db.limitOf(ctx))
}

// mayWaitAgain reports whether a transaction that waited too long for a row may
// try once more, within the limit of its operation.
func mayWaitAgain(limited context.Context, err error) bool {
	deadline, ok := limited.Deadline()
	return ok && IsLockTimeout(err) && time.Until(deadline) > lockLimit
}

// noticeOutcome derives from the outcome of an operation whether the server
// answers. A timeout counts only if the limit was long enough for a healthy
// server.
func (db *DB) noticeOutcome(ctx context.Context, limit time.Duration, err error) {
	enough := limit >= min(stalledLimit, db.operation)
	timedOut := enough && ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err))
	if timedOut != db.stalled.Load() && (timedOut || err == nil || errors.Is(err, pgx.ErrNoRows)) {
		db.stalled.Store(timedOut)
	}
}

// runTransaction runs fn in a transaction on PostgreSQL, within the limits. At
// the limit it makes the connection fail, whatever statement is running: fn may
// use contexts of its own.
func (db *DB) runTransaction(ctx, limited context.Context, o pgx.TxOptions, fn func(pgx.Tx) error) (err error) {
	deadline, _ := limited.Deadline() // set by boundContext
	limit := time.Until(deadline)
	defer func() { db.noticeOutcome(ctx, limit, err) }()
	if own, ok := ctx.Deadline(); ok && !own.After(deadline) {
		// The caller's deadline is earlier: its context ends the statement and
		// has the reason. The connection's own deadline comes later, so that the
		// statement does not fail before that.
		deadline = own.Add(stalledLimit)
	}
	c, err := db.pool.Acquire(limited)
	if err != nil {
		return err
	}
	defer c.Release()

	conn := c.Conn()
	timer := time.AfterFunc(time.Until(deadline), func() { _ = conn.PgConn().Conn().SetDeadline(time.Unix(1, 0)) })
	defer func() {
		if !timer.Stop() { // the connection has an expired deadline and must not be reused
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

// queryRow runs one query on PostgreSQL, within the limits.
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

// limitPool sets the limits on every connection of a pool. Limits in the
// database address take precedence.
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
			return fmt.Errorf("set time limits: %w", err)
		}
		return nil
	}
}

// limitConnect limits the time for connecting and the silence of a peer.
func limitConnect(conf *pgxpool.Config) {
	conf.ConnConfig.ConnectTimeout = cmp.Or(conf.ConnConfig.ConnectTimeout, connectLimit)
	dialer := &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silenceLimit / 2, Interval: silenceLimit / 4, Count: 2},
		Control:         setUserTimeout,
	}
	conf.ConnConfig.DialFunc = dialer.DialContext
}

// limitsAtServer returns the statement that sets the limits of a session. The
// limits are not part of the start-up message: older servers and PgBouncer
// refuse connections with unknown settings.
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

// longerAtServer returns the statement that raises the server's limits of a
// transaction to limit.
func longerAtServer(conn *pgx.Conn, limit time.Duration) string {
	longer := "SET LOCAL statement_timeout = " + inMilliseconds(limit) + ";"
	if hasTransactionTimeout(conn) {
		longer += "SET LOCAL transaction_timeout = " + inMilliseconds(limit) + ";"
	}
	return longer
}

// hasTransactionTimeout reports whether the server is PostgreSQL 17 or newer.
func hasTransactionTimeout(conn *pgx.Conn) bool {
	major, _, _ := strings.Cut(conn.PgConn().ParameterStatus("server_version"), ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= 17
}

func inMilliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func inSeconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }
