// Package throttle keeps single callers from overloading a node.
//
// It has a token bucket per key in memory: generous, per node, and lost at a
// restart. Exact limits across nodes are in package ratelimit.
package throttle

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Buckets has a token bucket of the same size for every key.
type Buckets struct {
	perMinute int
	now       func() time.Time

	mu    sync.Mutex
	young map[string]*rate.Limiter // used since the last turn
	old   map[string]*rate.Limiter // used in the turn before; dropped at the next
	turn  time.Time                // when young becomes old
}

// New allows perMinute calls a minute for each key, also all at once. Zero or less
// allows any number.
func New(perMinute int, now func() time.Time) *Buckets {
	return &Buckets{perMinute: perMinute, now: now, young: map[string]*rate.Limiter{}}
}

// PerMinute returns the number of calls a minute that each key is allowed.
func (b *Buckets) PerMinute() int { return b.perMinute }

// Take uses one call of the key's allowance. If none is left, it returns the
// time until the next call is allowed.
func (b *Buckets) Take(key string) (wait time.Duration, ok bool) {
	if b.perMinute <= 0 {
		return 0, true
	}
	now := b.now()
	r := b.bucketOf(key, now).ReserveN(now, 1)
	if wait = r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
		return wait, false
	}
	return 0, true
}

// bucketOf returns the key's bucket. A bucket that was not used for a minute is
// full again and can be dropped: two generations of maps do that without a scan.
func (b *Buckets) bucketOf(key string, now time.Time) *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !now.Before(b.turn) {
		b.old = b.young
		b.young = map[string]*rate.Limiter{}
		b.turn = now.Add(time.Minute)
	}
	l, ok := b.young[key]
	if !ok {
		if l, ok = b.old[key]; !ok {
			l = rate.NewLimiter(rate.Limit(float64(b.perMinute)/60), b.perMinute)
		}
		b.young[key] = l
	}
	return l
}
