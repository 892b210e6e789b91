package sqldb

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// planKey is the context key of WithReusedPlans and WithIndexOrder. The value
// is the settings of the transaction.
type planKey struct{}

// Settings of a PostgreSQL transaction, as statements after its BEGIN. With
// millions of rows PostgreSQL would start worker processes for a page of twenty
// rows, which takes ten times as long as to read it. A sort that cannot be avoided
// counts as very expensive while enable_sort is off, so that PostgreSQL would
// spend a long time to compile the query.
const (
	reusedPlans = `; SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL jit = off`
	indexOrder  = reusedPlans + `; SET LOCAL enable_sort = off; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off` +
		`; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off`
)

// WithReusedPlans returns a context for read transactions whose queries have
// the same best plan for all arguments. PostgreSQL then plans such a query once
// on each connection. Without it, PostgreSQL plans the query in every call as
// soon as the tables are large enough for a plan to seem to depend on the
// arguments, which takes longer than to read a page. It has no effect on
// SQLite.
func WithReusedPlans(ctx context.Context) context.Context {
	return context.WithValue(ctx, planKey{}, reusedPlans)
}

// WithIndexOrder is WithReusedPlans for pages of lists whose rows have the order
// of an index that fits all conditions, or all but those that most rows meet.
// PostgreSQL must read the page from that index. A plan that is made for all
// accounts would otherwise fit the average account, which is small: it would
// read and sort all rows of a large one.
func WithIndexOrder(ctx context.Context) context.Context {
	return context.WithValue(ctx, planKey{}, indexOrder)
}

// readOptions returns the options of a read transaction on PostgreSQL. The
// settings are sent with the BEGIN, so they cost no round trip.
func readOptions(ctx context.Context) pgx.TxOptions {
	if settings, ok := ctx.Value(planKey{}).(string); ok {
		return pgx.TxOptions{BeginQuery: `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY` + settings}
	}
	return pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
}
