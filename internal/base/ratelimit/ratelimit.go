// Package ratelimit limits how often something happens, exactly and on all nodes
// together.
//
// Everything that was admitted under a key is a row with its time. A window of
// m in a span s admits the next one when fewer than m rows are younger than s,
// so that no interval of that length ever holds more than m: neither across the
// minute, nor with many callers at once, who wait for each other at the key's
// row, nor when a clock steps back, since rows of the future count as well.
//
// Keys are texts of the caller, which begin with their purpose so that no two
// purposes share one: "password/person/ID", "device/address/203.0.113.7". A
// transaction that takes several keys takes those of one purpose before those
// of the next, in the same order everywhere, or two of them wait for each other.
package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
)

// Window lets at most Most happen in any interval as long as Span. What is
// exactly Span old is outside.
type Window struct {
	Most int
	Span time.Duration
}

// Refusal is a limit that is reached. The zero value is none.
type Refusal struct {
	Window
	// Wait is how long until the next one would be admitted.
	Wait time.Duration
}

// Fault is what the caller is told.
func (r Refusal) Fault(message string) *fault.Error {
	return fault.TooMany(message, r.Most, r.Span, r.Wait)
}

// Take admits one more under the key if every window has room for it, and
// gives the id to Return it with. Where one is full the id is "", nothing is
// recorded, and full is the window that stays full for longest.
//
// The key stays locked until the transaction ends.
func Take(ctx context.Context, tx *sqldb.Tx, key string, windows ...Window) (id string, full Refusal, err error) {
	if err := valid(key, windows); err != nil {
		return "", Refusal{}, err
	}
	if err := lock(ctx, tx, key); err != nil {
		return "", Refusal{}, fmt.Errorf("rate of %s: %w", key, err)
	}
	if full, err = Full(ctx, tx, key, windows...); err != nil || full.Wait > 0 {
		return "", full, err
	}
	id = ids.New()
	if err := insert(ctx, tx, id, key); err != nil {
		return "", Refusal{}, fmt.Errorf("rate of %s: %w", key, err)
	}
	return id, Refusal{}, nil
}

// Backoff lets Free happen in any interval as long as Span, and then one more at
// a time, each after a longer wait since the last: First, twice that, and so on
// up to Most. It slows somebody down where a Window would shut them out.
type Backoff struct {
	Free        int
	Span        time.Duration
	First, Most time.Duration
}

// delay is how long after the last of n entries, Free of them or more, the next
// may come.
func (b Backoff) delay(n int) time.Duration {
	wait := b.First
	for i := b.Free; i < n && wait < b.Most; i++ {
		wait *= 2
	}
	return min(wait, b.Most)
}

// valid refuses what would silently limit nothing.
func (b Backoff) valid() bool {
	return b.Free >= 1 && b.Span >= time.Microsecond && b.First >= time.Microsecond && b.Most >= b.First && b.Most <= b.Span
}

// Pace is Take with waits that grow; windows hold besides. It locks the key as
// Take does.
func Pace(ctx context.Context, tx *sqldb.Tx, key string, b Backoff, windows ...Window) (id string, full Refusal, err error) {
	if err := validKey(key); err != nil {
		return "", Refusal{}, err
	}
	if !b.valid() {
		return "", Refusal{}, fmt.Errorf("rate of %s: a backoff of %+v", key, b)
	}

	if err := lock(ctx, tx, key); err != nil {
		return "", Refusal{}, fmt.Errorf("rate of %s: %w", key, err)
	}
	n, last, err := latest(ctx, tx, key, b.Span)
	if err != nil {
		return "", Refusal{}, fmt.Errorf("rate of %s: %w", key, err)
	}
	if len(windows) > 0 {
		if full, err = Full(ctx, tx, key, windows...); err != nil {
			return "", Refusal{}, err
		}
	}
	if n >= b.Free {
		full = longer(full, Refusal{
			Window: Window{Most: b.Free, Span: b.Span},
			Wait:   last.Add(b.delay(n)).Sub(tx.Now),
		})
	}
	if full.Wait > 0 {
		return "", full, nil
	}

	id = ids.New()
	if err := insert(ctx, tx, id, key); err != nil {
		return "", Refusal{}, fmt.Errorf("rate of %s: %w", key, err)
	}
	return id, Refusal{}, nil
}

// longer gives the refusal that lasts longer. One that lasts no time is none.
func longer(a, b Refusal) Refusal {
	if b.Wait > a.Wait {
		return b
	}
	return a
}

// Full tells what Take would refuse, the zero value where it would admit the
// caller. It takes and locks nothing: another may be quicker.
func Full(ctx context.Context, tx *sqldb.Tx, key string, windows ...Window) (full Refusal, err error) {
	if err := valid(key, windows); err != nil {
		return Refusal{}, err
	}
	for _, w := range windows {
		at, isFull, err := newest(ctx, tx, key, w)
		if err != nil {
			return Refusal{}, fmt.Errorf("rate of %s: %w", key, err)
		}
		if isFull {
			full = longer(full, Refusal{Window: w, Wait: at.Add(w.Span).Sub(tx.Now)})
		}
	}
	return full, nil
}

// Left tells how many more Take would admit now, or, where that is none, what it
// would refuse. It takes and locks nothing.
func Left(ctx context.Context, tx *sqldb.Tx, key string, windows ...Window) (left int, full Refusal, err error) {
	if full, err = Full(ctx, tx, key, windows...); err != nil || full.Wait > 0 {
		return 0, full, err
	}
	left = math.MaxInt
	for _, w := range windows {
		n, _, err := count(ctx, tx, key, w)
		if err != nil {
			return 0, Refusal{}, fmt.Errorf("rate of %s: %w", key, err)
		}
		left = min(left, w.Most-n)
	}
	return left, Refusal{}, nil
}

// Room is what a window has left.
type Room struct {
	Left int
	// Reset is when the oldest entry leaves the window.
	Reset time.Duration
}

// Admit is Take for callers who are told what each window has left.
func Admit(ctx context.Context, tx *sqldb.Tx, key string, windows ...Window) (rooms []Room, full Refusal, err error) {
	if err := valid(key, windows); err != nil {
		return nil, Refusal{}, err
	}
	if err := lock(ctx, tx, key); err != nil {
		return nil, Refusal{}, fmt.Errorf("rate of %s: %w", key, err)
	}
	rooms, err = Rooms(ctx, tx, key, windows...)
	if err != nil {
		return nil, Refusal{}, err
	}
	for i := range rooms {
		if rooms[i].Left == 0 {
			full, err = Full(ctx, tx, key, windows...)
			return nil, full, err
		}
		rooms[i].Left--
	}
	if err := insert(ctx, tx, ids.New(), key); err != nil {
		return nil, Refusal{}, fmt.Errorf("rate of %s: %w", key, err)
	}
	return rooms, Refusal{}, nil
}

// Rooms tells what each window has left. It takes and locks nothing.
func Rooms(ctx context.Context, tx *sqldb.Tx, key string, windows ...Window) ([]Room, error) {
	if err := valid(key, windows); err != nil {
		return nil, err
	}
	rooms := make([]Room, len(windows))
	for i, w := range windows {
		n, first, err := count(ctx, tx, key, w)
		if err != nil {
			return nil, fmt.Errorf("rate of %s: %w", key, err)
		}
		rooms[i] = Room{Left: max(w.Most-n, 0), Reset: w.Span}
		if n > 0 && first.Before(tx.Now) {
			rooms[i].Reset = first.Add(w.Span).Sub(tx.Now)
		}
	}
	return rooms, nil
}

// Return gives back what Take admitted, as if it had not happened. What was
// swept or returned before is no error.
func Return(ctx context.Context, tx *sqldb.Tx, id string) error { return remove(ctx, tx, id) }

// Daily is what keys begin with whose windows reach back a day.
const Daily = "day/"

// Drop forgets what happened under keys.
func Drop(ctx context.Context, tx *sqldb.Tx, keys ...string) error { return drop(ctx, tx, keys) }

// DropUnder forgets what happened under all keys that begin with a text. It
// looks at every key: it is for what happens seldom.
func DropUnder(ctx context.Context, tx *sqldb.Tx, prefix string) error {
	keys, err := keysUnder(ctx, tx, prefix)
	if err != nil {
		return err
	}
	return drop(ctx, tx, keys)
}

// Sweep removes what happened before a time, which must lie further back than
// any window reaches, and under Daily keys a day before it: at most limit rows
// and as many keys. It says how many it removed; below limit nothing is left.
func Sweep(ctx context.Context, tx *sqldb.Tx, before time.Time, limit int) (removed int64, err error) {
	return sweep(ctx, tx, before, limit)
}

// maxKey is the longest key in bytes: indexes have their limits.
const maxKey = 500

func validKey(key string) error {
	if key == "" || len(key) > maxKey || !utf8.ValidString(key) {
		return fmt.Errorf("rate: %.40q is no key", key)
	}
	return nil
}

// valid refuses what would silently limit nothing.
func valid(key string, windows []Window) error {
	if err := validKey(key); err != nil {
		return err
	}
	if len(windows) == 0 {
		return errors.New("rate of " + key + ": no window")
	}
	for _, w := range windows {
		if w.Most < 1 || w.Span < time.Microsecond {
			return fmt.Errorf("rate of %s: a window of %d in %v", key, w.Most, w.Span)
		}
	}
	return nil
}
