package sqldb

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// RequestBudget is the longest time of all database operations of a request
// together. It leaves room for the other work of a request within ten seconds.
const RequestBudget = 7500 * time.Millisecond

// Budget is the rest of the time for the operations of one request. Each
// operation has a limit of its own, but several in a row could take longer than
// the caller waits.
type Budget struct {
	left atomic.Int64 // nanoseconds
}

type budgetKey struct{}

// WithBudget returns a context whose operations take at most total together.
// Operations with WithLimit are not counted.
func WithBudget(ctx context.Context, total time.Duration) (context.Context, *Budget) {
	b := &Budget{}
	b.left.Store(int64(total))
	return context.WithValue(ctx, budgetKey{}, b), b
}

// Lift removes the limit, for responses that are being streamed.
func (b *Budget) Lift() { b.left.Store(math.MaxInt64) }

// leftOf returns the rest of the context's budget.
func leftOf(ctx context.Context) time.Duration {
	if b, ok := ctx.Value(budgetKey{}).(*Budget); ok {
		return time.Duration(b.left.Load())
	}
	return math.MaxInt64
}

// spendBudget subtracts the time since an operation began from the context's
// budget.
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
