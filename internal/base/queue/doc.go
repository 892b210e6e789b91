// Package queue does work that outlives the request that asked for it.
//
//	              snooze, handed back: the attempt does not count
//	            ┌─────────────────────────────────────────────────┐
//	            ▼                                                 │
//	Add ──▶ waiting ──its time has come, a worker is free──▶ running ──▶ done
//	         │  ▲                                             │ │ │
//	         │  └──failed, worker lost: after Retry's wait────┘ │ └──▶ failed
//	         │                                                  │
//	         └──Cancel──▶ cancelled ◀──Cancel───────────────────┘
//
// A job is added in the caller's transaction: it exists when that commits and
// never otherwise. It is done at least once. An attempt that dies with its
// process counts and is followed by another, so a handler must bear being
// called again for work it has done already. A job fails when its handler
// gives up or when the attempts are used up; an attempt that panics or runs
// into its Timeout has failed like any other.
//
// A handler heeds its context. The context ends with the Timeout, on Cancel,
// when the lease is lost and when Run has to stop. In each case the queue waits
// for the handler, which keeps its place until it returns.
//
// On SQLite the jobs are rows of ours (local.go) and every process that runs
// the queue works on them. A running job has a lease that its worker renews;
// when it ends, any process takes the job over. The attempt number is the
// fence: a worker that comes back late changes nothing.
//
// On PostgreSQL River keeps the jobs (river.go). It finds a dead worker's job
// by age alone, after the largest Timeout of all handlers, and it has no
// fence: a handler that ignores its context for that long may finish the
// attempt of another. One process leads and does the rescuing, and what it
// finds of a kind it does not know it throws away: give every process that
// calls Run the same handlers.
package queue
