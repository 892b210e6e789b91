// Package ratelimit limits how often an event happens, exactly and on all nodes
// together.
//
// Every admitted event is a row with its key and time: a sliding window log. A
// window of m events in a span s admits the next event if fewer than m rows are
// younger than s, so no interval of that length ever holds more than m events:
// not across a minute boundary, not with concurrent callers, which wait for each
// other at the key's row, and not if a clock steps back, since rows in the
// future count as well.
//
// Transactions that take several keys must take the keys of one purpose before
// the keys of the next, in the same order everywhere; otherwise they deadlock.
package ratelimit

import (
	"context"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// Key names a counter.
type Key struct {
	// Name begins with the purpose, so that no two purposes share a counter:
	// "password/person/ID", "device/address/203.0.113.7".
	Name string
	// Subject is the person's ID, or the mail address in lower case, that the
	// counter belongs to; empty for neither. ForgetSubject removes all counters
	// of a subject.
	Subject string
}

// Window admits at most Most events in any interval as long as Span. An event
// that is exactly Span old is outside.
type Window struct {
	Max  int
	Span time.Duration
}

// Refusal is a limit that has been reached. The zero value means that no limit
// was reached.
type Refusal struct {
	Window
	// Wait is the time until the next event would be admitted.
	Wait time.Duration
}

// Fault returns the error for the caller, with the limit and the wait.
func (r Refusal) Fault(message string) *fault.Error {
	return fault.TooMany(message, r.Max, r.Span, r.Wait)
}

// Take records an event under the key if every window admits it, and returns
// the event's id for Return. If a window is full, the id is empty, nothing is
// recorded, and full is the refusal that lasts longest.
//
// The key stays locked until the transaction ends.
func Take(ctx context.Context, tx *sqldb.Tx, key Key, windows ...Window) (id string, full Refusal, err error) {
	if err := validateWindows(key, windows); err != nil {
		return "", Refusal{}, err
	}
	if err := lockKey(ctx, tx, key); err != nil {
		return "", Refusal{}, fmt.Errorf("rate limit %s: %w", key.Name, err)
	}
	if full, err = Peek(ctx, tx, key, windows...); err != nil || full.Wait > 0 {
		return "", full, err
	}
	id = ids.New()
	if err := insertEvent(ctx, tx, id, key.Name); err != nil {
		return "", Refusal{}, fmt.Errorf("rate limit %s: %w", key.Name, err)
	}
	return id, Refusal{}, nil
}

// Backoff admits Free events in any interval as long as Span without a wait.
// Each further event has to wait after the previous event: First, then twice
// that, and so on up to Most. It delays a caller that a Window would refuse.
type Backoff struct {
	Free           int
	Span           time.Duration
	First, MaxWait time.Duration
}

// waitAfter returns the wait after the last of n events; n must be at least
// Free.
func (b Backoff) waitAfter(n int) time.Duration {
	wait := b.First
	for i := b.Free; i < n && wait < b.MaxWait; i++ {
		wait *= 2
	}
	return min(wait, b.MaxWait)
}

// isValid reports whether the backoff limits anything at all.
func (b Backoff) isValid() bool {
	return b.Free >= 1 && b.Span >= time.Microsecond && b.First >= time.Microsecond && b.MaxWait >= b.First && b.MaxWait <= b.Span
}

// TakeWithBackoff is Take with a backoff. The windows must admit the event as well. It
// locks the key as Take does.
func TakeWithBackoff(ctx context.Context, tx *sqldb.Tx, key Key, b Backoff, windows ...Window) (id string, full Refusal, err error) {
	if err := key.validateKey(); err != nil {
		return "", Refusal{}, err
	}
	if !b.isValid() {
		return "", Refusal{}, fmt.Errorf("rate limit %s: invalid backoff %+v", key.Name, b)
	}

	if err := lockKey(ctx, tx, key); err != nil {
		return "", Refusal{}, fmt.Errorf("rate limit %s: %w", key.Name, err)
	}
	n, last, err := countSince(ctx, tx, key.Name, b.Span)
	if err != nil {
		return "", Refusal{}, fmt.Errorf("rate limit %s: %w", key.Name, err)
	}
	if len(windows) > 0 {
		if full, err = Peek(ctx, tx, key, windows...); err != nil {
			return "", Refusal{}, err
		}
	}
	if n >= b.Free {
		full = longerRefusal(full, Refusal{
			Window: Window{Max: b.Free, Span: b.Span},
			Wait:   last.Add(b.waitAfter(n)).Sub(tx.Now),
		})
	}
	if full.Wait > 0 {
		return "", full, nil
	}

	id = ids.New()
	if err := insertEvent(ctx, tx, id, key.Name); err != nil {
		return "", Refusal{}, fmt.Errorf("rate limit %s: %w", key.Name, err)
	}
	return id, Refusal{}, nil
}

// longerRefusal returns the refusal with the longer wait.
func longerRefusal(a, b Refusal) Refusal {
	if b.Wait > a.Wait {
		return b
	}
	return a
}

// Peek returns the refusal that Take would return now, or zero if Take would
// record the event. It records and locks nothing, so a concurrent Take may come
// first.
func Peek(ctx context.Context, tx *sqldb.Tx, key Key, windows ...Window) (full Refusal, err error) {
	if err := validateWindows(key, windows); err != nil {
		return Refusal{}, err
	}
	for _, w := range windows {
		at, isFull, err := oldestOfFull(ctx, tx, key.Name, w)
		if err != nil {
			return Refusal{}, fmt.Errorf("rate limit %s: %w", key.Name, err)
		}
		if isFull {
			full = longerRefusal(full, Refusal{Window: w, Wait: at.Add(w.Span).Sub(tx.Now)})
		}
	}
	return full, nil
}

// Left returns how many events Take would admit now, or the refusal if there are
// none. It records and locks nothing.
func Left(ctx context.Context, tx *sqldb.Tx, key Key, windows ...Window) (left int, full Refusal, err error) {
	if full, err = Peek(ctx, tx, key, windows...); err != nil || full.Wait > 0 {
		return 0, full, err
	}
	left = math.MaxInt
	for _, w := range windows {
		n, _, err := countWindow(ctx, tx, key.Name, w)
		if err != nil {
			return 0, Refusal{}, fmt.Errorf("rate limit %s: %w", key.Name, err)
		}
		left = min(left, w.Max-n)
	}
	return left, Refusal{}, nil
}

// Room is the rest of a window.
type Room struct {
	Left int
	// Reset is the time until the oldest event leaves the window.
	Reset time.Duration
}

// Admit is Take for callers that report the rest of each window.
func Admit(ctx context.Context, tx *sqldb.Tx, key Key, windows ...Window) (rooms []Room, full Refusal, err error) {
	if err := validateWindows(key, windows); err != nil {
		return nil, Refusal{}, err
	}
	if err := lockKey(ctx, tx, key); err != nil {
		return nil, Refusal{}, fmt.Errorf("rate limit %s: %w", key.Name, err)
	}
	rooms, err = Rooms(ctx, tx, key, windows...)
	if err != nil {
		return nil, Refusal{}, err
	}
	for i := range rooms {
		if rooms[i].Left == 0 {
			full, err = Peek(ctx, tx, key, windows...)
			return nil, full, err
		}
		rooms[i].Left--
	}
	if err := insertEvent(ctx, tx, ids.New(), key.Name); err != nil {
		return nil, Refusal{}, fmt.Errorf("rate limit %s: %w", key.Name, err)
	}
	return rooms, Refusal{}, nil
}

// Rooms returns the rest of each window. It records and locks nothing.
func Rooms(ctx context.Context, tx *sqldb.Tx, key Key, windows ...Window) ([]Room, error) {
	if err := validateWindows(key, windows); err != nil {
		return nil, err
	}
	rooms := make([]Room, len(windows))
	for i, w := range windows {
		n, first, err := countWindow(ctx, tx, key.Name, w)
		if err != nil {
			return nil, fmt.Errorf("rate limit %s: %w", key.Name, err)
		}
		rooms[i] = Room{Left: max(w.Max-n, 0), Reset: w.Span}
		if n > 0 && first.Before(tx.Now) {
			rooms[i].Reset = first.Add(w.Span).Sub(tx.Now)
		}
	}
	return rooms, nil
}

// Daily is the prefix of keys whose windows reach back a day. Sweep keeps their
// events for a day longer.
const Daily = "day/"

// maxKeyBytes is the longest name or subject: index entries have a size limit.
const maxKeyBytes = 500

func (k Key) validateKey() error {
	if k.Name == "" || len(k.Name) > maxKeyBytes || !utf8.ValidString(k.Name) {
		return fmt.Errorf("rate limit: invalid key %.40q", k.Name)
	}
	if len(k.Subject) > maxKeyBytes || !utf8.ValidString(k.Subject) {
		return fmt.Errorf("rate limit %s: invalid subject %.40q", k.Name, k.Subject)
	}
	return nil
}

// validateWindows rejects windows that would limit nothing.
func validateWindows(key Key, windows []Window) error {
	if err := key.validateKey(); err != nil {
		return err
	}
	if len(windows) == 0 {
		return fmt.Errorf("rate limit %s: no window", key.Name)
	}
	for _, w := range windows {
		if w.Max < 1 || w.Span < time.Microsecond {
			return fmt.Errorf("rate limit %s: invalid window of %d in %v", key.Name, w.Max, w.Span)
		}
	}
	return nil
}
