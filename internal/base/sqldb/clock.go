package sqldb

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// clock keeps the time of the database server: the server's time at one moment
// of the local clock, and from then on the time that has passed on the local
// monotonic clock, which changes of the local date do not affect.
type clock struct {
	mu     sync.RWMutex
	ours   time.Time // zero before the first reading
	theirs time.Time
}

// lookAgain is the time for which a reading of the server's clock is valid: two
// clocks drift apart by at most a few milliseconds in that time.
const lookAgain = time.Minute

// isStale reports whether the server's clock should be read again.
func (c *clock) isStale(now time.Time) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.ours.IsZero() || now.Sub(c.ours) >= lookAgain
}

// setServerTime records the server's time at a time of the local clock.
func (c *clock) setServerTime(ours, theirs time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ours = ours
	c.theirs = theirs
}

// serverTime returns the server's time at a time of the local clock.
func (c *clock) serverTime(now time.Time) time.Time {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.theirs.Add(now.Sub(c.ours))
}

// Now returns the current time that all users of this database share, in the
// precision of a time column.
func (db *DB) Now() time.Time {
	now := db.now()
	if db.clock != nil {
		now = db.clock.serverTime(now)
	}
	return now.UTC().Truncate(time.Microsecond)
}

// followClock reads the server's clock if the last reading is stale. It uses the
// connection of the caller, which runs a query anyway.
func (db *DB) followClock(ctx context.Context, query func(context.Context, string, ...any) Row) error {
	if db.clock == nil || !db.clock.isStale(db.now()) {
		return nil
	}
	before := db.now()
	var micros int64
	if err := query(ctx, `SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)`).Scan(&micros); err != nil {
		return fmt.Errorf("read the database's clock: %w", err)
	}
	took := db.now().Sub(before)
	db.clock.setServerTime(before.Add(took/2), time.UnixMicro(micros)) // the server's clock was read at some time between request and response
	return nil
}
