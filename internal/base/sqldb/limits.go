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
// not keep others from its rows for longer than that.
//
//	here            operationLimit  one Read, Write or QueryRow, from waiting for a
//	                                connection to the commit; the connection is destroyed
//	                stalledLimit    the same, while the server does not answer
//	                RequestBudget   all operations of a request, until its answer begins
//	                connectLimit    a new connection
//	at the server   idleLimit       a transaction whose client sends nothing
//	                lockLimit       waiting for a row; whoever lives tries again
//	                statementLimit  one statement, more than River's longest
//	                tcp_*           a client that is gone
//
// Several transactions of a paused node may wait for one row, and each that gets
// it keeps it for idleLimit. None waits for longer than lockLimit, and only those
// who live come again: after the sum of both the row is free for them.
//
// River's own queries do not go through DB, so the limits at the server are the
// ones that hold for them. WithLimit is for the few operations that take longer;
// migrations have a pool without limits.
const (
	operationLimit   = 8 * time.Second
	stalledLimit     = time.Second
	connectLimit     = 5 * time.Second
	idleLimit        = 3 * time.Second
	lockLimit        = 2 * time.Second
	statementLimit   = 65 * time.Second // River reindexes for up to a minute
	transactionLimit = 75 * time.Second // from PostgreSQL 17 on
	silenceLimit     = 20 * time.Second // of a peer that acknowledges nothing
)

// limitKey is the context key of WithLimit.
type limitKey struct{}

// WithLimit lets each operation with the context take up to limit, for checks
// and recounts. It still fails at once where the database does not answer when
// it begins.
func WithLimit(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, limitKey{}, limit)
}

// limitOf is how long an operation with the context may take.
func (db *DB) limitOf(ctx context.Context) time.Duration {
	limit := db.operation
	if db.stalled.Load() {
		limit = min(limit, stalledLimit)
	}
	return min(limit, leftOf(ctx))
}

// boundContext returns the context of an operation on PostgreSQL, which ends with its time.
// SQLite needs none: its limits are where it waits.
func (db *DB) boundContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if db.lite != nil {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, db.limitOf(ctx))
}

// mayWaitAgain reports whether a transaction that waited too long for a row may try
// once more, within the time of its operation.
func mayWaitAgain(limited context.Context, err error) bool {
	deadline, ok := limited.Deadline()
	return ok && IsLockTimeout(err) && time.Until(deadline) > lockLimit
}

// noticeOutcome learns from the outcome of an operation whether the server answers. One
// that had less time than a server needs which is well says nothing about it.
func (db *DB) noticeOutcome(ctx context.Context, limit time.Duration, err error) {
	enough := limit >= min(stalledLimit, db.operation)
	timedOut := enough && ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err))
	if timedOut != db.stalled.Load() && (timedOut || err == nil || errors.Is(err, pgx.ErrNoRows)) {
		db.stalled.Store(timedOut)
	}
}

// runTransaction runs fn in a transaction on PostgreSQL, within the limits. At the end
// of its time the connection stops working under whatever statement it is at:
// the contexts that fn uses are its own.
func (db *DB) runTransaction(ctx, limited context.Context, o pgx.TxOptions, fn func(pgx.Tx) error) (err error) {
	deadline, _ := limited.Deadline() // as bound made it
	limit := time.Until(deadline)
	defer func() { db.noticeOutcome(ctx, limit, err) }()
	if own, ok := ctx.Deadline(); ok && !own.After(deadline) {
		// The caller's time ends first: its context ends the statement then, and
		// says why. We come after it, lest the statement fail before that is known.
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
		if !timer.Stop() { // its deadline would hold for whoever comes next
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

// limitPool returns every connection of a pool the limits. Those that the database
// address has itself stay as they are there.
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

// limitConnect bounds how long connecting takes and how long a peer may be silent.
func limitConnect(conf *pgxpool.Config) {
	conf.ConnConfig.ConnectTimeout = cmp.Or(conf.ConnConfig.ConnectTimeout, connectLimit)
	dialer := &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silenceLimit / 2, Interval: silenceLimit / 4, Count: 2},
		Control:         setUserTimeout,
	}
	conf.ConnConfig.DialFunc = dialer.DialContext
}

// limitsAtServer is the statement that sets the limits of a session. It is no
// part of the start-up message: older servers and PgBouncer refuse to start with
// settings that they do not know.
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

// longerAtServer is the statement that lets a transaction take as long as limit.
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
