package sqldb

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// clock estimates the time of the database server. It stores the server's time
// at one moment, and adds the time that has since passed on the local monotonic
// clock. Changes of the local system time do not affect it.
type clock struct {
	mu     sync.RWMutex
	ours   time.Time // local time of the last reading; zero before the first reading
	theirs time.Time
}

// lookAgain is the time after which the server's clock is read again. In that
// time the two clocks drift apart by at most a few milliseconds.
const lookAgain = time.Minute

// isStale reports whether the server's clock should be read again.
func (c *clock) isStale(now time.Time) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.ours.IsZero() || now.Sub(c.ours) >= lookAgain
}

// setServerTime records the server's time (theirs) at a local time (ours).
func (c *clock) setServerTime(ours, theirs time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ours = ours
	c.theirs = theirs
}

// serverTime returns the server's time at the given local time.
func (c *clock) serverTime(now time.Time) time.Time {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.theirs.Add(now.Sub(c.ours))
}

// Now returns the current time, in UTC and with the precision of a time column.
// With Options.Follow it is the time of the database server, which all nodes
// share.
func (db *DB) Now() time.Time {
	now := db.now()
	if db.clock != nil {
		now = db.clock.serverTime(now)
	}
	return now.UTC().Truncate(time.Microsecond)
}

// followClock reads the server's clock if the last reading is too old. It uses
// the caller's connection, because the caller is about to run a query anyway.
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
	db.clock.setServerTime(before.Add(took/2), time.UnixMicro(micros)) // the server read its clock between request and response; half way is the best estimate
	return nil
}
