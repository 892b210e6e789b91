// Package queue runs jobs that outlive the request that added them.
//
//	           returned at shutdown: the attempt does not count
//	            ┌─────────────────────────────────────────────────┐
//	            ▼                                                 │
//	Add ──▶ waiting ────── due, and a worker has a slot ─────▶ running ──▶ done
//	            ▲                                              │   │
//	            └── failed, worker lost: after Retry's wait ───┘   └─────▶ failed
//
// A job is added in the caller's transaction and exists once the transaction
// commits. It runs at least once. An attempt that ends with its process counts
// and is followed by another, so handlers must be idempotent. A job fails when
// its handler returns GiveUp or when the attempts are used up; an attempt that
// panics or exceeds its Timeout has failed like any other.
//
// Handlers must return when their context ends: with the Timeout, when the lease
// is lost, and when Run has to stop. The queue waits for the handler, which
// keeps its slot until it returns.
//
// On SQLite the jobs are rows of the table job (local.go), and every process
// that runs the queue works on them. A running job has a lease that its worker
// renews; when the lease ends, any process takes over the job. The attempt
// number is the fencing token: a worker that lost its lease changes nothing.
//
// On PostgreSQL River stores the jobs (river.go). It recognizes a lost worker's
// job only by its age, after the largest Timeout of all handlers, and it has no
// fencing token: a handler that ignores its context for that long may finish
// another worker's attempt. One process is the leader and rescues jobs; it
// discards jobs of unknown kinds. Every process that calls Run must have the
// same handlers.
package queue
