// Package throttle limits the rate of requests per client, so that one client
// cannot overload a node.
//
// It has a token bucket per key in memory. The limits are generous, apply to
// each node separately, and are reset at a restart. Package ratelimit has exact
// limits across nodes.
package throttle

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Buckets has a token bucket for every key, all with the same rate and size.
type Buckets struct {
	perMinute int
	now       func() time.Time

	mu    sync.Mutex
	young map[string]*rate.Limiter // buckets used since young last replaced old
	old   map[string]*rate.Limiter // buckets used before that; dropped when young replaces old
	turn  time.Time                // the time when young next replaces old
}

// New returns buckets that allow perMinute requests a minute for each key, even
// in one burst. If perMinute is zero or less, there is no limit.
func New(perMinute int, now func() time.Time) *Buckets {
	return &Buckets{perMinute: perMinute, now: now, young: map[string]*rate.Limiter{}}
}

// PerMinute returns the number of requests a minute that each key is allowed.
func (b *Buckets) PerMinute() int { return b.perMinute }

// Take takes one token from the key's bucket. If the bucket is empty, ok is
// false and wait is the time until the next token.
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
// full again and can be dropped. To drop such buckets without a search,
// bucketOf drops the map old every minute and replaces it by the map young.
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
