// Package ratelimit limits how often an event may happen, exactly and across
// all nodes.
//
// Every admitted event is a row with its key and time (a sliding window log). A
// window of m events per span s admits an event if fewer than m rows are
// younger than s, so no interval of that length ever contains more than m
// events. This is true across minute boundaries, with concurrent callers (they
// wait for the lock on the key's row) and if a clock is set back (rows with a
// time in the future count too).
//
// A transaction that takes several keys must take them in the same order of
// purposes as all other transactions. Otherwise they can deadlock.
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

// Key identifies a counter of events.
type Key struct {
	// Name begins with the purpose, so that two purposes never share a counter,
	// for example "password/person/ID" or "device/address/203.0.113.7".
	Name string
	// Subject is the id of the person, or the e-mail address in lower case,
	// that the counter belongs to. It is empty if the counter belongs to
	// neither. ForgetSubject deletes all counters of a subject.
	Subject string
}

// Window admits at most Max events in any interval of length Span. An event
// that is exactly Span old no longer counts.
type Window struct {
	Max  int
	Span time.Duration
}

// Refusal describes a limit that was reached. The zero value means that no
// limit was reached.
type Refusal struct {
	Window
	// Wait is the time until the next event would be admitted.
	Wait time.Duration
}

// Fault returns a RateLimited error for the API client, with the limit and the
// time to wait.
func (r Refusal) Fault(message string) *fault.Error {
	return fault.TooMany(message, r.Max, r.Span, r.Wait)
}

// Take records an event under the key if every window admits it, and returns
// the event's id for ReturnEvent. If a window is full, the id is empty, nothing
// is recorded, and full is the refusal with the longest wait.
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

// Backoff admits Free events in any interval of length Span without a wait.
// Before each further event, a minimum time must have passed since the previous
// event: First, then twice that, and so on up to MaxWait. So it delays callers
// that a Window would reject.
type Backoff struct {
	Free           int
	Span           time.Duration
	First, MaxWait time.Duration
}

// waitAfter returns the time to wait after the last of n events. n must be at
// least Free.
func (b Backoff) waitAfter(n int) time.Duration {
	wait := b.First
	for i := b.Free; i < n && wait < b.MaxWait; i++ {
		wait *= 2
	}
	return min(wait, b.MaxWait)
}

// isValid reports whether the backoff has usable values: positive durations
// with First ≤ MaxWait ≤ Span, and at least one free event.
func (b Backoff) isValid() bool {
	return b.Free >= 1 && b.Span >= time.Microsecond && b.First >= time.Microsecond && b.MaxWait >= b.First && b.MaxWait <= b.Span
}

// TakeWithBackoff is like Take, but the backoff must also admit the event, and
// windows may be empty. It locks the key until the transaction ends.
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

// Peek returns the refusal that Take would return now. It is zero if Take would
// record the event. Peek neither records nor locks anything, so the result may
// be outdated when Take is called.
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

// Left returns the number of events that Take would admit now, or the refusal
// if that number is 0. It neither records nor locks anything.
func Left(ctx context.Context, tx *sqldb.Tx, key Key, windows ...Window) (left int, full Refusal, err error) {
	if full, err = Peek(ctx, tx, key, windows...); err != nil || full.Wait > 0 {
		return 0, full, err
	}
	counts, err := countWindows(ctx, tx, key.Name, windows)
	if err != nil {
		return 0, Refusal{}, fmt.Errorf("rate limit %s: %w", key.Name, err)
	}
	left = math.MaxInt
	for i, w := range windows {
		left = min(left, w.Max-counts[i].n)
	}
	return left, Refusal{}, nil
}

// Room is the number of events that a window still admits.
type Room struct {
	Left int
	// Reset is the time until the oldest event leaves the window.
	Reset time.Duration
}

// Admit is like Take, but returns, for each window, how many more events it
// admits after this one.
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

// Rooms returns, for each window, how many more events it admits. It neither
// records nor locks anything.
func Rooms(ctx context.Context, tx *sqldb.Tx, key Key, windows ...Window) ([]Room, error) {
	if err := validateWindows(key, windows); err != nil {
		return nil, err
	}
	counts, err := countWindows(ctx, tx, key.Name, windows)
	if err != nil {
		return nil, fmt.Errorf("rate limit %s: %w", key.Name, err)
	}
	rooms := make([]Room, len(windows))
	for i, w := range windows {
		c := counts[i]
		rooms[i] = Room{Left: max(w.Max-c.n, 0), Reset: w.Span}
		if c.n > 0 && c.first.Before(tx.Now) {
			rooms[i].Reset = c.first.Add(w.Span).Sub(tx.Now)
		}
	}
	return rooms, nil
}

// Daily is the prefix of keys with windows of up to a day. Sweep keeps their
// events for a day longer than the events of other keys.
const Daily = "day/"

// maxKeyBytes is the maximum length of a name or subject in bytes. The database
// limits the size of index entries.
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

// validateWindows returns an error if the key is invalid, if there is no
// window, or if a window has no positive limit and span.
func validateWindows(key Key, windows []Window) error {
	if err := key.validateKey(); err != nil {
		return err
	}
	if len(windows) == 0 {
		return fmt.Errorf("rate limit %s: at least one window is required", key.Name)
	}
	for _, w := range windows {
		if w.Max < 1 || w.Span < time.Microsecond {
			return fmt.Errorf("rate limit %s: invalid window of %d events in %v", key.Name, w.Max, w.Span)
		}
	}
	return nil
}
