// Package throttle keeps any one caller from taking all of a node's time.
//
// It is a token bucket per key in memory: generous, per node, forgotten at
// restart. Limits that must hold exactly are kept in the database instead.
package throttle

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Buckets gives every key the same allowance.
type Buckets struct {
	perMinute int
	now       func() time.Time

	mu    sync.Mutex
	young map[string]*rate.Limiter // used since the last turn
	old   map[string]*rate.Limiter // used in the turn before; dropped at the next
	turn  time.Time                // when young becomes old
}

// New allows perMinute calls a minute for each key, all at once if they like.
// Zero or less allows any number.
func New(perMinute int, now func() time.Time) *Buckets {
	return &Buckets{perMinute: perMinute, now: now, young: map[string]*rate.Limiter{}}
}

// PerMinute is how many calls a minute each key is allowed, and how many at once.
func (b *Buckets) PerMinute() int { return b.perMinute }

// Take uses one call of key's allowance. When there is none left it says how
// long until there is.
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

// bucketOf finds the key's bucket. One that nobody used for a minute is full
// again, so forgetting it changes nothing: two generations of maps do that
// without looking at each entry.
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
