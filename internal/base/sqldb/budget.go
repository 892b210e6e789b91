package sqldb

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// RequestBudget is how long the operations of a request may take together. With
// what else there is to do, a request is answered within ten seconds.
const RequestBudget = 7500 * time.Millisecond

// Budget is the time that the operations of one request have left. Each has a
// limit of its own, but several one after the other, some of which waited for a
// connection, would add up to more than whoever asks can wait.
type Budget struct {
	left atomic.Int64 // nanoseconds
}

type budgetKey struct{}

// WithBudget returns a context whose operations take at most total together.
// Those of WithLimit are not counted.
func WithBudget(ctx context.Context, total time.Duration) (context.Context, *Budget) {
	b := &Budget{}
	b.left.Store(int64(total))
	return context.WithValue(ctx, budgetKey{}, b), b
}

// Lift ends the bound, for answers that have begun and may last.
func (b *Budget) Lift() { b.left.Store(math.MaxInt64) }

// leftOf gives how long operations with the context may still take.
func leftOf(ctx context.Context) time.Duration {
	if b, ok := ctx.Value(budgetKey{}).(*Budget); ok {
		return time.Duration(b.left.Load())
	}
	return math.MaxInt64
}

// spendBudget takes the time since an operation began off the context's budget.
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
