package sqldb

import "time"

// Stats describes the use of this process's database connections. Collecting it
// sends no query to the database.
type Stats struct {
	Busy, Idle, Max int
	// Waits is the number of times that a caller had to wait for a connection
	// or, on SQLite, for another writer. Waited is the total time of all waits.
	Waits  int64
	Waited time.Duration
	// Replica is the use of the replica; all zero without one.
	Replica ReplicaStats
}

// Stats returns the current use of the connections.
func (db *DB) Stats() Stats {
	if db.lite != nil {
		return db.lite.readStats()
	}
	s := db.pool.Stat()
	return Stats{
		Busy:    int(s.AcquiredConns()),
		Idle:    int(s.IdleConns()),
		Max:     int(s.MaxConns()),
		Waits:   s.EmptyAcquireCount(),
		Waited:  s.EmptyAcquireWaitTime(),
		Replica: db.replica.readStats(),
	}
}

// readStats returns the use of the reading connections of both kinds and the
// writing connection together.
func (l *sqlite) readStats() Stats {
	pool := l.readers.Stats()
	rows := cap(l.rows.free)
	idleRows := len(l.rows.free)
	idleWriter := 0
	if l.turns.isFree() {
		idleWriter = 1
	}
	return Stats{
		Busy:   pool.InUse + rows - idleRows + 1 - idleWriter,
		Idle:   pool.Idle + idleRows + idleWriter,
		Max:    pool.MaxOpenConnections + rows + 1,
		Waits:  pool.WaitCount + l.waits.Load(),
		Waited: pool.WaitDuration + time.Duration(l.waited.Load()),
	}
}
