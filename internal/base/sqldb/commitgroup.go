package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// On SQLite, writers that wait for each other commit together (group commit):
// a commit waits for the disk, and this wait is longer than the work of most
// transactions.
//
//	first writer    BEGIN  work  ·······················  COMMIT  returns
//	second writer         SAVEPOINT  work  RELEASE  ····          returns
//	third writer                          SAVEPOINT  work         returns
//
// A writer that has done its work passes the open transaction on to the writer
// that has waited longest. The last one, after which nobody waits, commits.
// Every writer returns only after the commit, whether it succeeded or not. The
// work of a writer that fails is rolled back to its savepoint; the others do not
// notice. If the commit fails, or SQLite rolls back the whole transaction,
// nothing of the group is stored, and every writer repeats its work in a
// transaction of its own. So the outcome is the same as if the writers had
// committed one after the other.
//
// Statements of a group are not interrupted when a client disconnects, because
// SQLite would roll back the whole transaction. They are short. Operations with
// WithLimit, which may be long, always have a transaction of their own.
type commitGroup struct {
	began   time.Time
	members int           // writers whose work is in the transaction
	done    chan struct{} // closed when the transaction has ended
	err     error         // result of the transaction; read it after done is closed
}

// Limits of a group, so that its first writer does not wait long for the
// commit.
const (
	maxGroupMembers = 32
	maxGroupAge     = 10 * time.Millisecond
)

// brokenGroupError is the error of a group whose transaction SQLite rolled back.
type brokenGroupError struct{ error }

func (e brokenGroupError) Unwrap() error { return e.error }

// runUpdate runs fn in a write transaction, alone or together with other
// writers.
func (l *sqlite) runUpdate(ctx context.Context, limit time.Duration, tx *Tx, now func() time.Time, fn func(*Tx) error) error {
	_, isLong := ctx.Value(limitKey{}).(time.Duration)
	joins := !isLong
	for {
		shared, err := l.runInGroup(ctx, limit, joins, tx, now, fn)
		if _, broken := errors.AsType[brokenGroupError](err); !broken || !shared {
			return err
		}
		joins = false
		tx.committed = nil
	}
}

// runInGroup runs fn once and waits until the transaction has ended. shared
// reports whether other writers took part in the transaction. The error is a
// brokenGroupError if the failure may be theirs.
func (l *sqlite) runInGroup(ctx context.Context, limit time.Duration, joins bool, tx *Tx, now func() time.Time, fn func(*Tx) error) (shared bool, err error) {
	left, err := l.takeTurn(ctx, limit, joins)
	if err != nil {
		return false, err
	}
	g := l.group
	if g == nil {
		if err := l.beginGroup(ctx, left); err != nil {
			l.turns.pass()
			return false, err
		}
		g = l.group
		g.began = now()
	}
	first := g.members == 0

	ended := false
	defer func() {
		if !ended { // fn panicked; the panic goes on
			l.endMember(g, false, joins, now)
		}
	}()
	err = l.runMember(ctx, g, joins, tx, now, fn)
	ended = true
	l.endMember(g, err == nil, joins, now)
	<-g.done
	shared = !first || g.members > 1
	if g.err != nil && (shared || err == nil) {
		return shared, g.err
	}
	return shared, err // if the transaction was lost, its error says why
}

// beginGroup begins a transaction. left is how long SQLite may wait for other
// processes, at most busyLimit.
func (l *sqlite) beginGroup(ctx context.Context, left time.Duration) error {
	reset, err := l.limitBusy(ctx, left)
	if err != nil {
		return err
	}
	defer reset()
	if _, err := l.writer.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		// BEGIN may have succeeded although ctx ended. If there is no
		// transaction, the rollback has no effect.
		_, _ = l.writer.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
		return err
	}
	l.group = &commitGroup{done: make(chan struct{})}
	return nil
}

// runMember runs fn in the open transaction. If fn fails, its work is rolled
// back. The first writer has a savepoint too: if SQLite has rolled back its
// transaction, the savepoint is missing, and nobody continues the transaction.
func (l *sqlite) runMember(ctx context.Context, g *commitGroup, joins bool, tx *Tx, now func() time.Time, fn func(*Tx) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err // ctx ended when the turn came
	}
	returned := false
	if joins {
		if err := l.execPrepared(`SAVEPOINT member`); err != nil {
			g.breakOff(err)
			return err
		}
		defer func() {
			if !returned || err != nil { // fn panicked or failed
				g.breakOff(l.execPrepared(`ROLLBACK TO member`))
			}
			g.breakOff(l.execPrepared(`RELEASE member`))
		}()
	}
	prepare := func(ctx context.Context, query string) (context.Context, *sql.Stmt, error) {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if joins {
			ctx = context.WithoutCancel(ctx)
		}
		s, err := l.prepareStatement(ctx, query)
		return ctx, s, err
	}
	tx.Now = now()
	tx.lite = liteTx{
		exec: func(ctx context.Context, query string, args ...any) (sql.Result, error) {
			ctx, s, err := prepare(ctx, query)
			if err != nil {
				return nil, err
			}
			return s.ExecContext(ctx, args...)
		},
		query: func(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
			ctx, s, err := prepare(ctx, query)
			if err != nil {
				return nil, err
			}
			return s.QueryContext(ctx, args...)
		},
	}
	err = fn(tx)
	returned = true
	return err
}

// endMember counts a writer that succeeded, and then either passes the
// transaction on to the next writer or ends it. The turn of the caller ends.
func (l *sqlite) endMember(g *commitGroup, succeeded, joins bool, now func() time.Time) {
	if succeeded {
		g.members++
	}
	isOpen := g.members > 0 && g.err == nil
	if isOpen && joins && g.members < maxGroupMembers && now().Sub(g.began) < maxGroupAge && l.turns.passToJoiner() {
		return
	}
	if isOpen {
		// The commit is not cancelled with a client's context: if the client
		// disconnected during the commit, the outcome would be unknown.
		if _, err := l.writer.ExecContext(context.Background(), `COMMIT`); err != nil {
			g.err = brokenGroupError{err}
		}
	}
	if !isOpen || g.err != nil {
		_, _ = l.writer.ExecContext(context.Background(), `ROLLBACK`) // if there is no transaction, it has no effect
	}
	l.group = nil
	close(g.done)
	l.turns.pass()
}

// breakOff records an error after which the transaction of the group is lost:
// SQLite rolls back the whole transaction after some errors, such as a full
// disk, and then it has no savepoint. It has no effect if err is nil.
func (g *commitGroup) breakOff(err error) {
	if err != nil && g.err == nil {
		g.err = brokenGroupError{fmt.Errorf("end of a group of transactions: %w", err)}
	}
}

// execPrepared runs a statement without arguments on the writing connection. The
// caller must have called takeTurn.
func (l *sqlite) execPrepared(query string) error {
	s, err := l.prepareStatement(context.Background(), query)
	if err == nil {
		_, err = s.Exec()
	}
	return err
}
