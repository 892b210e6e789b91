package ratelimit_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ratelimit"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

// clock is a test's own time, in microseconds.
type clock struct{ atomic.Int64 }

func (c *clock) now() time.Time         { return time.UnixMicro(c.Load()) }
func (c *clock) step(d time.Duration)   { c.Add(d.Microseconds()) }
func (c *clock) stepTo(t time.Duration) { c.Store(start + t.Microseconds()) }

const start = 1_800_000_000_000_000

// each runs fn on every database with a clock that stands still.
func each(t *testing.T, fn func(t *testing.T, db *sqldb.DB, c *clock)) {
	t.Helper()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			c := &clock{}
			c.Store(start)
			db := dbtest.OpenAt(t, dbtest.URL(t, engine), c.now)
			fn(t, db, c)
			if v, err := db.VerifyChecks(t.Context(), ratelimit.Checks); err != nil || len(v) != 0 {
				t.Errorf("checks = %v, %v", v, err)
			}
		})
	}
}

func take(t *testing.T, db *sqldb.DB, key string, windows ...ratelimit.Window) (id string, wait time.Duration) {
	t.Helper()
	err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
		got, full, err := ratelimit.Take(t.Context(), tx, ratelimit.Key{Name: key}, windows...)
		id, wait = got, full.Wait
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if (id == "") != (wait > 0) {
		t.Fatalf("take = %q, %v: want an id or a time to wait", id, wait)
	}
	return id, wait
}

func full(t *testing.T, db *sqldb.DB, key string, windows ...ratelimit.Window) (wait time.Duration) {
	t.Helper()
	err := db.Read(t.Context(), func(tx *sqldb.Tx) error {
		full, err := ratelimit.Peek(t.Context(), tx, ratelimit.Key{Name: key}, windows...)
		wait = full.Wait
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return wait
}

func count(t *testing.T, db *sqldb.DB, table string) (n int64) {
	t.Helper()
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func admit(t *testing.T, db *sqldb.DB, key string, windows ...ratelimit.Window) (rooms []ratelimit.Room, wait time.Duration) {
	t.Helper()
	err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
		got, full, err := ratelimit.Admit(t.Context(), tx, ratelimit.Key{Name: key}, windows...)
		rooms, wait = got, full.Wait
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rooms, wait
}

func TestTake(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *sqldb.DB, c *clock) {
		minute := ratelimit.Window{Max: 3, Span: time.Minute}
		for _, s := range []struct {
			name string
			at   time.Duration
			key  string
			wait time.Duration
		}{
			{"first", 0, "a", 0},
			{"second", 10 * time.Second, "a", 0},
			{"third", 59 * time.Second, "a", 0},
			{"a fourth does not fit", 59 * time.Second, "a", time.Second},
			{"another key has its own", 59 * time.Second, "b", 0},
			{"a microsecond early", time.Minute - time.Microsecond, "a", time.Microsecond},
			{"exactly a span old is outside", time.Minute, "a", 0},
			{"across the minute", 61 * time.Second, "a", 9 * time.Second},
			{"the clock steps back", -time.Hour, "a", time.Hour + 70*time.Second},
			{"and forward", 70 * time.Second, "a", 0},
			{"all are outside", time.Hour, "a", 0},
		} {
			c.stepTo(s.at)
			if got := full(t, db, s.key, minute); got != s.wait {
				t.Errorf("%s: full = %v, want %v", s.name, got, s.wait)
			}
			if _, got := take(t, db, s.key, minute); got != s.wait {
				t.Errorf("%s: wait = %v, want %v", s.name, got, s.wait)
			}
		}
		if n := count(t, db, "rate_log"); n != 7 {
			t.Errorf("%d rows, want 7: those admitted", n)
		}
	})
}

func TestTwoWindows(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *sqldb.DB, c *clock) {
		windows := []ratelimit.Window{{Max: 2, Span: time.Minute}, {Max: 3, Span: time.Hour}}
		for _, s := range []struct {
			at, wait time.Duration
		}{
			{0, 0}, {time.Second, 0},
			{2 * time.Second, 58 * time.Second}, // the minute is full
			{time.Minute, 0},
			{62 * time.Second, time.Hour - 62*time.Second}, // the hour is full
			{time.Hour - time.Microsecond, time.Microsecond},
			{time.Hour, 0},
			{time.Hour, time.Second}, // the minute has room, the hour once the second leaves it
			{time.Hour + time.Second, 0},
			{time.Hour + 2*time.Second, 58 * time.Second}, // both are full
		} {
			c.stepTo(s.at)
			if _, got := take(t, db, "a", windows...); got != s.wait {
				t.Errorf("at %v: wait = %v, want %v", s.at, got, s.wait)
			}
		}
	})
}

// TestRefusalNamesTheLimit has the hour, or a backoff, last longer than the
// minute does, though it is over within one.
func TestRefusalNamesTheLimit(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *sqldb.DB, c *clock) {
		minute, hour := ratelimit.Window{Max: 1, Span: time.Minute}, ratelimit.Window{Max: 2, Span: time.Hour}
		backoff := ratelimit.Backoff{Free: 2, Span: 2 * time.Hour, First: 90 * time.Second, MaxWait: time.Hour}
		check := func(at time.Duration, do func(*sqldb.Tx) (ratelimit.Refusal, error), want ratelimit.Refusal) {
			t.Helper()
			c.stepTo(at)
			var got ratelimit.Refusal
			err := db.Write(t.Context(), func(tx *sqldb.Tx) (err error) {
				got, err = do(tx)
				return err
			})
			if err != nil || got != want {
				t.Errorf("after %v: %+v, %v, want %+v", at, got, err, want)
			}
		}
		takeOne := func(tx *sqldb.Tx) (ratelimit.Refusal, error) {
			_, full, err := ratelimit.Take(t.Context(), tx, ratelimit.Key{Name: "a"}, minute, hour)
			return full, err
		}
		paceOne := func(tx *sqldb.Tx) (ratelimit.Refusal, error) {
			_, full, err := ratelimit.TakeWithBackoff(t.Context(), tx, ratelimit.Key{Name: "b"}, backoff, minute)
			return full, err
		}
		none := ratelimit.Refusal{}
		check(0, takeOne, none)
		check(time.Second, takeOne, ratelimit.Refusal{Window: minute, Wait: 59 * time.Second})
		check(59*time.Minute+20*time.Second, takeOne, none)
		check(59*time.Minute+30*time.Second, takeOne, ratelimit.Refusal{Window: minute, Wait: 50 * time.Second})
		check(time.Hour, takeOne, ratelimit.Refusal{Window: minute, Wait: 20 * time.Second})
		check(time.Hour+20*time.Second, takeOne, none)
		check(time.Hour+21*time.Second, takeOne, ratelimit.Refusal{Window: hour, Wait: 58*time.Minute + 59*time.Second})
		check(2*time.Hour-50*time.Second, takeOne, ratelimit.Refusal{Window: hour, Wait: 10 * time.Second})

		check(3*time.Hour, paceOne, none)
		check(3*time.Hour+time.Minute, paceOne, none)
		check(3*time.Hour+2*time.Minute, paceOne, ratelimit.Refusal{Window: ratelimit.Window{Max: 2, Span: 2 * time.Hour}, Wait: 30 * time.Second})
		check(3*time.Hour+61*time.Second, paceOne, ratelimit.Refusal{Window: ratelimit.Window{Max: 2, Span: 2 * time.Hour}, Wait: 89 * time.Second})

		f := ratelimit.Refusal{Window: hour, Wait: 10*time.Second + time.Microsecond}.Fault("Wait.")
		if f.Code != fault.RateLimited || f.RetryAfter != 10*time.Second+time.Microsecond || f.Details["limit"] != 2 ||
			f.Details["window_seconds"] != int64(3600) || f.Details["retry_after_seconds"] != int64(11) {
			t.Errorf("fault = %+v", f)
		}
	})
}

func TestReturn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *sqldb.DB, _ *clock) {
		once := ratelimit.Window{Max: 1, Span: time.Minute}
		id, _ := take(t, db, "a", once)
		other, _ := take(t, db, "b", once)
		for range 2 { // a second time is no error and gives nothing more
			if err := db.Write(t.Context(), func(tx *sqldb.Tx) error { return ratelimit.ReturnEvent(t.Context(), tx, id) }); err != nil {
				t.Fatal(err)
			}
		}
		if wait := full(t, db, "b", once); wait == 0 {
			t.Errorf("returning %s returned %s too", id, other)
		}
		if again, wait := take(t, db, "a", once); again == "" || again == id {
			t.Errorf("take after a return = %q, %v, want a fresh id", again, wait)
		}
		if _, wait := take(t, db, "a", once); wait == 0 {
			t.Error("one return made room for two")
		}
	})
}

func TestWhatWasRolledBackDidNotHappen(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *sqldb.DB, _ *clock) {
		once := ratelimit.Window{Max: 1, Span: time.Minute}
		no := errors.New("refused for another reason")
		err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
			id, _, err := ratelimit.Take(t.Context(), tx, ratelimit.Key{Name: "a"}, once)
			if err != nil || id == "" {
				t.Errorf("take = %q, %v", id, err)
			}
			return no
		})
		if !errors.Is(err, no) {
			t.Fatal(err)
		}
		if _, wait := take(t, db, "a", once); wait != 0 {
			t.Errorf("wait = %v, want none", wait)
		}
	})
}

func TestNonsenseIsRefused(t *testing.T) {
	t.Parallel()
	minute := ratelimit.Window{Max: 1, Span: time.Minute}
	each(t, func(t *testing.T, db *sqldb.DB, _ *clock) {
		for _, c := range []struct {
			name, key string
			windows   []ratelimit.Window
		}{
			{"no window", "a", nil},
			{"no room", "a", []ratelimit.Window{minute, {Max: 0, Span: time.Minute}}},
			{"less than none", "a", []ratelimit.Window{{Max: -1, Span: time.Minute}}},
			{"no span", "a", []ratelimit.Window{{Max: 1}}},
			{"no key", "", []ratelimit.Window{minute}},
			{"a long key", strings.Repeat("a", 501), []ratelimit.Window{minute}},
			{"a broken key", "a\xff", []ratelimit.Window{minute}},
		} {
			err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
				_, _, err := ratelimit.Take(t.Context(), tx, ratelimit.Key{Name: c.key}, c.windows...)
				return err
			})
			if err == nil {
				t.Errorf("%s: taken", c.name)
			}
			err = db.Read(t.Context(), func(tx *sqldb.Tx) error {
				_, err := ratelimit.Peek(t.Context(), tx, ratelimit.Key{Name: c.key}, c.windows...)
				return err
			})
			if err == nil {
				t.Errorf("%s: looked at", c.name)
			}
		}
	})
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *sqldb.DB, c *clock) {
		ctx := t.Context()
		windows := []ratelimit.Window{{Max: 10, Span: time.Minute}, {Max: 100, Span: time.Hour}}
		var admitted atomic.Int64
		var group sync.WaitGroup
		for range 64 {
			group.Go(func() {
				for _, key := range []string{"person/a", "person/b"} {
					c.step(time.Millisecond)
					var id string
					err := db.Write(ctx, func(tx *sqldb.Tx) (err error) {
						id, _, err = ratelimit.Take(ctx, tx, ratelimit.Key{Name: key}, windows...)
						return err
					})
					if err != nil {
						t.Errorf("take = %v", err)
					}
					if id != "" {
						admitted.Add(1)
					}
				}
			})
		}
		group.Wait()
		if n := admitted.Load(); n != 20 || count(t, db, "rate_log") != n {
			t.Errorf("%d admitted, %d rows, want 10 for each key", n, count(t, db, "rate_log"))
		}
	})
}

// model does what the package does, by looking at everything.
type model struct {
	windows []ratelimit.Window
	at      []int64 // in microseconds
}

func (m *model) room(now int64) bool {
	for _, w := range m.windows {
		n := 0
		for _, at := range m.at {
			if at > now-w.Span.Microseconds() {
				n++
			}
		}
		if n >= w.Max {
			return false
		}
	}
	return true
}

// rooms is what the windows have left once one more is admitted.
func (m *model) rooms(now int64) (all []ratelimit.Room) {
	for _, w := range m.windows {
		left, first := w.Max-1, now
		for _, at := range m.at {
			if at > now-w.Span.Microseconds() {
				left, first = left-1, min(first, at)
			}
		}
		all = append(all, ratelimit.Room{Left: left, Reset: w.Span - time.Duration(now-first)*time.Microsecond})
	}
	return all
}

// wait tries every moment at which an entry leaves a window.
func (m *model) wait(now int64) time.Duration {
	moments := []int64{now}
	for _, w := range m.windows {
		for _, at := range m.at {
			if leaves := at + w.Span.Microseconds(); leaves > now {
				moments = append(moments, leaves)
			}
		}
	}
	slices.Sort(moments)
	for _, moment := range moments {
		if m.room(moment) {
			return time.Duration(moment-now) * time.Microsecond
		}
	}
	panic("never")
}

// TestRandomSchedules holds what the package promises against the model: no
// admission too many, no false refusal, and an exact time to wait.
func TestRandomSchedules(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	each(t, func(t *testing.T, db *sqldb.DB, c *clock) {
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 0))
		refused, waited, back := 0, 0, 0
		for schedule := range 6 {
			key := fmt.Sprint("schedule/", schedule)
			m := &model{windows: []ratelimit.Window{
				{Max: 1 + r.IntN(4), Span: time.Duration(1+r.IntN(20)) * time.Microsecond},
				{Max: 3 + r.IntN(6), Span: time.Duration(20+r.IntN(60)) * time.Microsecond},
			}}
			c.stepTo(time.Duration(schedule) * time.Hour)
			for range 120 {
				switch r.IntN(10) {
				case 0:
					back++
					c.Add(-r.Int64N(30))
				case 1, 2:
					c.Add(r.Int64N(50))
				default:
					c.Add(r.Int64N(4))
				}
				now := c.Load()
				want := m.wait(now)
				if got := full(t, db, key, m.windows...); got != want {
					t.Fatalf("full = %v, want %v", got, want)
				}
				var admitted bool
				var got time.Duration
				if r.IntN(2) == 0 {
					var id string
					id, got = take(t, db, key, m.windows...)
					admitted = id != ""
				} else {
					var rooms []ratelimit.Room
					rooms, got = admit(t, db, key, m.windows...)
					if admitted = rooms != nil; admitted && !slices.Equal(rooms, m.rooms(now)) {
						t.Fatalf("rooms = %v, want %v", rooms, m.rooms(now))
					}
				}
				if got != want {
					t.Fatalf("wait = %v, want %v, with %v at %d in %v", got, want, m.windows, now, m.at)
				}
				if admitted {
					m.at = append(m.at, now)
					continue
				}
				refused++
				if r.IntN(3) > 0 {
					continue
				}
				waited++
				c.step(got - time.Microsecond)
				if _, rest := take(t, db, key, m.windows...); rest != time.Microsecond {
					t.Fatalf("a microsecond early: wait = %v, want it refused for 1µs", rest)
				}
				c.step(time.Microsecond)
				if _, rest := take(t, db, key, m.windows...); rest != 0 {
					t.Fatalf("after the wait it told: wait = %v, want it admitted", rest)
				}
				m.at = append(m.at, c.Load())
			}
			slices.Sort(m.at)
			for _, w := range m.windows {
				for i := range len(m.at) - w.Max {
					if span := m.at[i+w.Max] - m.at[i]; span < w.Span.Microseconds() {
						t.Fatalf("%d within %dµs, the window is %v", w.Max+1, span, w)
					}
				}
			}
		}
		if refused < 50 || waited < 10 || back < 10 {
			t.Errorf("%d refused, %d waited, %d steps back: the schedules try nothing", refused, waited, back)
		}
	})
}

func pace(t *testing.T, db *sqldb.DB, key string, b ratelimit.Backoff, windows ...ratelimit.Window) (id string, wait time.Duration) {
	t.Helper()
	err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
		got, full, err := ratelimit.TakeWithBackoff(t.Context(), tx, ratelimit.Key{Name: key}, b, windows...)
		id, wait = got, full.Wait
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if (id == "") != (wait > 0) {
		t.Fatalf("pace = %q, %v: want an id or a time to wait", id, wait)
	}
	return id, wait
}

// TestPace waits longer and longer, up to the end, and begins anew after a rest.
func TestPace(t *testing.T) {
	t.Parallel()
	b := ratelimit.Backoff{Free: 3, Span: time.Hour, First: 10 * time.Second, MaxWait: time.Minute}
	each(t, func(t *testing.T, db *sqldb.DB, c *clock) {
		for range 3 {
			if _, wait := pace(t, db, "a", b); wait != 0 {
				t.Fatalf("one of the first waits %v", wait)
			}
		}
		for _, want := range []time.Duration{10, 20, 40, 60, 60, 60} {
			want *= time.Second
			if _, wait := pace(t, db, "a", b); wait != want {
				t.Errorf("wait = %v, want %v", wait, want)
			}
			c.step(want - time.Microsecond)
			if _, wait := pace(t, db, "a", b); wait != time.Microsecond {
				t.Errorf("a moment early: wait = %v", wait)
			}
			c.step(time.Microsecond)
			if _, wait := pace(t, db, "a", b); wait != 0 {
				t.Errorf("after the wait: %v", wait)
			}
		}
		if _, wait := pace(t, db, "b", b); wait != 0 {
			t.Errorf("another key waits %v", wait)
		}
		c.step(-time.Minute) // a clock that steps back gives nothing away
		if _, wait := pace(t, db, "a", b); wait != 2*time.Minute {
			t.Errorf("wait = %v, want 2m", wait)
		}
		c.step(time.Hour + time.Minute)
		if _, wait := pace(t, db, "a", b); wait != 0 {
			t.Errorf("after a rest: %v", wait)
		}
	})
}

// TestPaceWithWindows holds both, also for many at once.
func TestPaceWithWindows(t *testing.T) {
	t.Parallel()
	b := ratelimit.Backoff{Free: 7, Span: time.Hour, First: time.Second, MaxWait: time.Minute}
	each(t, func(t *testing.T, db *sqldb.DB, c *clock) {
		var admitted atomic.Int64
		dbtest.Together(30, func(int) {
			if id, _ := pace(t, db, "a", b, ratelimit.Window{Max: 5, Span: time.Minute}); id != "" {
				admitted.Add(1)
			}
		})
		if n := admitted.Load(); n != 5 {
			t.Errorf("%d of 30 at once, want 5", n)
		}
		admitted.Store(0)
		dbtest.Together(30, func(int) {
			if id, _ := pace(t, db, "b", b); id != "" {
				admitted.Add(1)
			}
		})
		if n := admitted.Load(); n != 7 {
			t.Errorf("%d of 30 at once, want 7", n)
		}
		id, _ := pace(t, db, "c", b)
		if err := db.Write(t.Context(), func(tx *sqldb.Tx) error { return ratelimit.ReturnEvent(t.Context(), tx, id) }); err != nil {
			t.Fatal(err)
		}
		for i := range 7 {
			if _, wait := pace(t, db, "c", b); wait != 0 {
				t.Errorf("what was returned counts: the %dth waits %v", i+1, wait)
			}
		}
	})
}

func TestBadBackoffs(t *testing.T) {
	t.Parallel()
	good := ratelimit.Backoff{Free: 1, Span: time.Hour, First: time.Second, MaxWait: time.Minute}
	each(t, func(t *testing.T, db *sqldb.DB, _ *clock) {
		for _, change := range []func(b *ratelimit.Backoff){
			func(b *ratelimit.Backoff) { b.Free = 0 },
			func(b *ratelimit.Backoff) { b.Span = 0 },
			func(b *ratelimit.Backoff) { b.First = 0 },
			func(b *ratelimit.Backoff) { b.MaxWait = 0 },
			func(b *ratelimit.Backoff) { b.MaxWait = 2 * time.Hour },
		} {
			b := good
			change(&b)
			err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
				_, _, err := ratelimit.TakeWithBackoff(t.Context(), tx, ratelimit.Key{Name: "a"}, b)
				return err
			})
			if err == nil {
				t.Errorf("%+v is taken", b)
			}
		}
	})
}

func TestForgetSubject(t *testing.T) {
	t.Parallel()
	w := ratelimit.Window{Max: 1, Span: time.Hour}
	each(t, func(t *testing.T, db *sqldb.DB, _ *clock) {
		ctx := t.Context()
		keys := []ratelimit.Key{
			{Name: "code/person/p1", Subject: "p1"}, {Name: "mail/person/p1", Subject: "p1"},
			{Name: "code/person/p11", Subject: "p11"}, {Name: "code/person/P1", Subject: "P1"}, {Name: "p1"},
		}
		err := db.Write(ctx, func(tx *sqldb.Tx) error {
			for _, key := range keys {
				if _, _, err := ratelimit.Take(ctx, tx, key, w); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}

		if err := db.Write(ctx, func(tx *sqldb.Tx) error { return ratelimit.ForgetSubject(ctx, tx, "p1") }); err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			kept := key.Subject != "p1"
			if got := full(t, db, key.Name, w) > 0; got != kept {
				t.Errorf("%s is kept: %v, want %v", key.Name, got, kept)
			}
		}
		if err := db.Write(ctx, func(tx *sqldb.Tx) error { return ratelimit.ForgetSubject(ctx, tx, "") }); err == nil {
			t.Error("an empty subject was forgotten")
		}
		if n := count(t, db, "rate_key"); n != 3 {
			t.Errorf("%d keys are left, want 3", n)
		}
	})
}
