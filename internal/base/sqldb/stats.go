package sqldb

import "time"

// Stats are the figures of this process's connections. Reading them sends no
// query to the database.
type Stats struct {
	Busy, Idle, Max int
	// Waits counts the callers that found no free connection, on SQLite also the
	// callers that waited for their turn to write; Waited is the total time of
	// all waits.
	Waits  int64
	Waited time.Duration
}

// Stats returns the figures of the connections.
func (db *DB) Stats() Stats {
	if db.lite != nil {
		return db.lite.readStats()
	}
	s := db.pool.Stat()
	return Stats{
		Busy:   int(s.AcquiredConns()),
		Idle:   int(s.IdleConns()),
		Max:    int(s.MaxConns()),
		Waits:  s.EmptyAcquireCount(),
		Waited: s.EmptyAcquireWaitTime(),
	}
}

// readStats counts the readers of both kinds and the writer.
func (l *sqlite) readStats() Stats {
	pool := l.readers.Stats()
	rows := cap(l.rows.free)
	idleRows := len(l.rows.free)
	idleWriter := len(l.turn)
	return Stats{
		Busy:   pool.InUse + rows - idleRows + 1 - idleWriter,
		Idle:   pool.Idle + idleRows + idleWriter,
		Max:    pool.MaxOpenConnections + rows + 1,
		Waits:  pool.WaitCount + l.waits.Load(),
		Waited: pool.WaitDuration + time.Duration(l.waited.Load()),
	}
}
