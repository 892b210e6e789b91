// Package queue runs background jobs, which continue after the request that
// added them has ended.
//
//	           returned at shutdown: the attempt does not count
//	            ┌─────────────────────────────────────────────────┐
//	            ▼                                                 │
//	Add ──▶ waiting ────── due, and a worker has a slot ─────▶ running ──▶ done
//	            ▲                                              │   │
//	            └── failed, worker lost: after Retry's wait ───┘   └─────▶ failed
//
// A job is added in the caller's transaction and exists once the transaction
// commits. It runs at least once. An attempt whose process dies counts as
// failed and is followed by another, so handlers must be idempotent. A job
// fails when its handler returns GiveUp or when it has no attempts left. An
// attempt also fails if the handler panics or exceeds its Timeout.
//
// Handlers must return when their context ends: at the Timeout, when the lease
// is lost, and when Run has to stop. The queue waits for the handler, which
// occupies its slot until it returns.
//
// On SQLite the jobs are rows of the table job (local.go), and every process
// that runs the queue works on them. A running job has a lease that its worker
// renews. When the lease expires, any process may take over the job. The
// attempt number is the fencing token: a worker that has lost its lease cannot
// change the row.
//
// On PostgreSQL, River stores the jobs (river.go). It recognizes the job of a
// dead worker only by its age, after the largest Timeout of all handlers. It
// has no fencing token: a handler that ignores its context for that long may
// overwrite the outcome of another worker's attempt. One process is the leader
// and rescues such jobs. The leader discards jobs of unknown kinds, so every
// process that calls Run must have the same handlers.
package queue
