package sqldb

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// RequestBudget is the maximum total time of all database operations of one
// HTTP request. Responses must begin within ten seconds; the remaining time is
// for other work.
const RequestBudget = 7500 * time.Millisecond

// Budget is the time that remains for the database operations of one request.
// Each operation also has its own limit, but several in a row could take longer
// than the client waits.
type Budget struct {
	left atomic.Int64 // nanoseconds
}

type budgetKey struct{}

// WithBudget returns a context whose database operations together may take at
// most the given time. Operations with WithLimit do not count.
func WithBudget(ctx context.Context, total time.Duration) (context.Context, *Budget) {
	b := &Budget{}
	b.left.Store(int64(total))
	return context.WithValue(ctx, budgetKey{}, b), b
}

// Lift removes the limit. It is for responses that are streamed.
func (b *Budget) Lift() { b.left.Store(math.MaxInt64) }

// leftOf returns the time that remains in the context's budget. It is unlimited
// if the context has no budget.
func leftOf(ctx context.Context) time.Duration {
	if b, ok := ctx.Value(budgetKey{}).(*Budget); ok {
		return time.Duration(b.left.Load())
	}
	return math.MaxInt64
}

// spendBudget subtracts the duration of an operation that started at the time
// began from the context's budget.
func (db *DB) spendBudget(ctx context.Context, began time.Time) {
	b, ok := ctx.Value(budgetKey{}).(*Budget)
	if !ok {
		return
	}
	if _, longer := ctx.Value(limitKey{}).(time.Duration); longer {
		return
	}
	b.left.Add(-int64(max(0, db.now().Sub(began))))
}
