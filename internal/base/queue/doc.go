// Package queue runs jobs that outlive the request that added them.
//
//	           returned at shutdown: the attempt does not count
//	            ┌─────────────────────────────────────────────────┐
//	            ▼                                                 │
//	Add ──▶ waiting ────── due, and a worker has a slot ─────▶ running ──▶ done
//	            ▲                                              │   │
//	            └── failed, worker lost: after Retry's wait ───┘   └─────▶ failed
//
// A job is added in the caller's transaction and exists once that commits. It
// runs at least once. An attempt that dies with its process counts and is
// followed by another, so handlers must be idempotent. A job fails when its
// handler returns up or when the attempts are used up; an attempt that panics or
// exceeds its Timeout has failed like any other.
//
// Handlers must return when their context ends: with the Timeout, when the
// lease is lost, and when Run has to stop. The queue waits for the handler,
// which keeps its slot until it returns.
//
// On SQLite the jobs are rows of the table job (local.go), and every process
// that runs the queue works on them. A running job has a lease that its worker
// renews; when the lease ends, any process takes the job over. The attempt
// number is the fence: a worker that comes back late changes nothing.
//
// On PostgreSQL River stores the jobs (river.go). It recognizes a dead worker's
// job by age alone, after the largest Timeout of all handlers, and it has no
// fence: a handler that ignores its context for that long may finish another
// worker's attempt. One process is the leader and rescues jobs; it discards
// jobs of kinds that it does not know. Every process that calls Run must have
// the same handlers.
package queue
