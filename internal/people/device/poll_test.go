package device_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/device"
)

func TestPollOutcomes(t *testing.T) {
	t.Parallel()
	const s = time.Second
	type act struct {
		at   time.Duration
		do   string
		want fault.Code
	}
	cases := []struct {
		name  string
		acts  []act
		alive bool // whether a device came of it that still counts
	}{
		{"the first poll may come at once", []act{{0, "poll", fault.AuthorizationPending}}, false},
		{"approved and claimed", []act{{0, "poll", fault.AuthorizationPending}, {3 * s, "approve", ""}, {5 * s, "poll", ""}}, true},
		{"an approval beats slow down", []act{{0, "poll", fault.AuthorizationPending}, {1 * s, "poll", fault.SlowDown}, {1 * s, "approve", ""}, {2 * s, "poll", ""}}, true},
		{"approved in the last second", []act{{599 * s, "approve", ""}, {599*s + 999*time.Millisecond, "poll", ""}}, true},
		{"approved in time, polled too late", []act{{599 * s, "approve", ""}, {601 * s, "poll", fault.DeviceCodeExpired}}, false},
		{"approved, polled when the time is over", []act{{599 * s, "approve", ""}, {600 * s, "poll", fault.DeviceCodeExpired}}, false},
		{"approved too late", []act{{601 * s, "approve", fault.NotFound}, {602 * s, "poll", fault.DeviceCodeExpired}}, false},
		{"approved a millisecond too late", []act{{600*s + time.Millisecond, "approve", fault.NotFound}}, false},
		{"refused too late", []act{{600 * s, "refuse", fault.NotFound}}, false},
		{"nobody came", []act{{599 * s, "poll", fault.AuthorizationPending}, {600 * s, "poll", fault.DeviceCodeExpired}, {1200 * s, "poll", fault.DeviceCodeExpired}}, false},
		{"refused", []act{{1 * s, "refuse", ""}, {2 * s, "poll", fault.DeviceCodeExpired}, {3 * s, "approve", fault.NotFound}}, false},
		{"claimed once", []act{{1 * s, "approve", ""}, {2 * s, "poll", ""}, {2 * s, "poll", fault.DeviceCodeExpired}, {12 * s, "poll", fault.DeviceCodeExpired}}, true},
		{"a late replay kills", []act{{1 * s, "approve", ""}, {2 * s, "poll", ""}, {12*s + time.Microsecond, "poll", fault.DeviceCodeExpired}}, false},
		{"a replay kills after the time is over", []act{{1 * s, "approve", ""}, {2 * s, "poll", ""}, {3600 * s, "poll", fault.DeviceCodeExpired}}, false},
		{"approved twice", []act{{1 * s, "approve", ""}, {2 * s, "approve", fault.Forbidden}, {3 * s, "poll", ""}}, true},
		{"refused after the approval", []act{{1 * s, "approve", ""}, {2 * s, "refuse", fault.Forbidden}, {3 * s, "poll", ""}}, true},
		{"approved after the claim", []act{{1 * s, "approve", ""}, {2 * s, "poll", ""}, {3 * s, "approve", fault.NotFound}}, true},
	}
	each(t, func(t *testing.T, w *fixture) {
		for n, c := range cases {
			begin := time.Duration(n) * 24 * time.Hour
			w.at(begin)
			codes, who := w.start(), w.person()
			var dev device.Device
			for _, a := range c.acts {
				w.at(begin + a.at)
				var err error
				switch a.do {
				case "approve", "refuse":
					_, err = w.decide(codes.UserCode, who, a.do == "approve")
				case "poll":
					var got device.Device
					if got, _, err = w.poll(codes.DeviceCode); err == nil {
						dev = got
					}
				}
				w.want(fmt.Sprintf("%s: %s at %v", c.name, a.do, a.at), err, a.want)
			}
			if got := dev.ID != "" && w.alive(dev.ID); got != c.alive {
				t.Errorf("%s: alive = %v, want %v", c.name, got, c.alive)
			}
		}
	})
}

// TestTheDatabaseHasTheTime has a node whose clock is slow: the transaction
// that claims goes by its own.
func TestTheDatabaseHasTheTime(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		codes, who := w.start(), w.person()
		w.approve(codes.UserCode, who)
		o := w.options()
		o.Now = func() time.Time { return start }
		w.Devices = device.New(o)
		w.at(600 * time.Second)
		_, _, err := w.poll(codes.DeviceCode)
		w.want("poll", err, fault.DeviceCodeExpired)
		if n := w.count(`SELECT count(*) FROM device`); n != 0 {
			t.Errorf("%d devices, want none", n)
		}
	})
}

// TestGoneCodesLookAlike holds that unknown, refused, claimed and old codes
// have one answer.
func TestGoneCodesLookAlike(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		who := w.person()
		refused, claimed, old := w.start(), w.start(), w.start()
		w.decide(refused.UserCode, who, false)
		w.approve(claimed.UserCode, who)
		w.poll(claimed.DeviceCode)
		w.pass(time.Hour)
		for name, code := range map[string]string{"refused": refused.DeviceCode, "claimed": claimed.DeviceCode, "old": old.DeviceCode,
			"unknown": "atl_d_" + ids.Text(43)} {
			_, _, err := w.poll(code)
			f, ok := errors.AsType[*fault.Error](err)
			if !ok || f.Code != fault.DeviceCodeExpired || f.Message != "This device code has expired. Start again." || len(f.Details) != 0 || f.RetryAfter != 0 {
				t.Errorf("%s = %+v", name, err)
			}
		}
		// What cannot be a code does not reach the database.
		for _, code := range []string{"", "atl_d_", old.DeviceCode + "0", old.DeviceCode[1:], old.DeviceCode[:48], strings.Replace(old.DeviceCode, "_d_", "_r_", 1),
			"atl_d_" + strings.Repeat("é", 21) + "0", "atl_d_" + strings.Repeat("\x00", 43), "atl_d_" + ids.Text(42) + "'", strings.Repeat("a", 1<<20)} {
			w.want(fmt.Sprintf("%.60q", code), w.PollGrant(t.Context(), nil, code, nil), fault.DeviceCodeExpired)
		}
	})
}

func TestAClaimMakesTheDevice(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		codes, who := w.start(), w.person()
		w.approve(codes.UserCode, who)
		w.pass(3 * time.Second)
		no := errors.New("no")
		if err := w.PollGrant(t.Context(), w.db, codes.DeviceCode, func(*sqldb.Tx, device.Grant, device.Device, string) error { return no }); !errors.Is(err, no) {
			t.Errorf("a claim that its caller refuses = %v", err)
		}
		if n := w.count(`SELECT count(*) FROM device`); n != 0 {
			t.Errorf("%d devices after it, want none", n)
		}
		var grant device.Grant
		var dev device.Device
		err := w.PollGrant(t.Context(), w.db, codes.DeviceCode, func(_ *sqldb.Tx, g device.Grant, d device.Device, refresh string) error {
			grant, dev = g, d
			if len(refresh) != 49 || !strings.HasPrefix(refresh, "atl_r_") {
				t.Errorf("refresh token = %q", refresh)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := device.Device{ID: dev.ID, PersonID: who, PluginKind: "blender", Agent: "Blender/5.0", Address: "203.0.113.7", Provider: "password",
			Created: w.now(), LastUsed: w.now()}
		if dev != want || !ids.Valid(dev.ID) {
			t.Errorf("device = %+v, want %+v", dev, want)
		}
		if grant.PluginKind != "blender" || !grant.Expires.Equal(start.Add(600*time.Second)) || !ids.Valid(grant.ID) {
			t.Errorf("grant = %+v", grant)
		}
	})
}

// TestSlowDown polls in a hurry and looks at what the client is told and what
// it is held to.
func TestSlowDown(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		codes := w.start()
		poll := func() (interval any, after time.Duration, err error) {
			_, _, err = w.poll(codes.DeviceCode)
			if f, ok := errors.AsType[*fault.Error](err); ok {
				return f.Details["interval"], f.RetryAfter, err
			}
			return nil, 0, err
		}
		_, _, err := poll()
		w.want("the first", err, fault.AuthorizationPending)
		w.pass(time.Millisecond)
		last, wait := time.Duration(0), 5*time.Second
		for n, told := range []int64{10, 20, 40, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60} {
			interval, after, err := poll()
			w.want("a hasty one", err, fault.SlowDown)
			if interval != told || after != time.Duration(told)*time.Second {
				t.Errorf("hasty poll %d was told %v and %v, want %d", n+1, interval, after, told)
			}
			wait = min(wait+5*time.Second, time.Minute)
			if got := w.count(`SELECT wait_ms FROM device_grant`); got != int(wait/time.Millisecond) {
				t.Errorf("hasty poll %d is held to %d ms, want %v", n+1, got, wait)
			}
			if got := w.count(`SELECT polled FROM device_grant`); got != int(start.Add(last).UnixMicro()) {
				t.Errorf("hasty poll %d counts as one in time", n+1)
			}
		}
		// At the end of the rope nothing is written.
		before := w.count(`SELECT wait_ms + told_s FROM device_grant`)
		w.whileWriting(func(ctx context.Context) {
			w.want("a poll while another writes", w.PollGrant(ctx, w.db, codes.DeviceCode, nil), fault.SlowDown)
		})
		if after := w.count(`SELECT wait_ms + told_s FROM device_grant`); after != before {
			t.Errorf("intervals went from %d to %d", before, after)
		}
		w.at(last + wait - time.Microsecond)
		_, _, err = poll()
		w.want("a moment too soon", err, fault.SlowDown)
		w.at(last + wait)
		_, _, err = poll()
		w.want("in time", err, fault.AuthorizationPending)
	})
}

// TestHonestClientsPass has a client that polls too soon once, after a restart
// say, and then does as it was told: by the RFC five seconds more, or twice.
func TestHonestClientsPass(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		for name, next := range map[string]func(interval, told time.Duration) time.Duration{
			"RFC 8628": func(interval, _ time.Duration) time.Duration { return interval + 5*time.Second },
			"doubling": func(_, told time.Duration) time.Duration { return told },
		} {
			codes := w.start()
			poll := func() error { _, _, err := w.poll(codes.DeviceCode); return err }
			w.want(name+": first", poll(), fault.AuthorizationPending)
			interval := codes.Interval
			for range 3 {
				w.pass(time.Second)
				err := poll()
				w.want(name+": too soon", err, fault.SlowDown)
				if f, ok := errors.AsType[*fault.Error](err); ok {
					interval = next(interval, f.RetryAfter)
				}
				for range 3 {
					w.pass(interval)
					w.want(fmt.Sprintf("%s: after %v", name, interval), poll(), fault.AuthorizationPending)
				}
			}
		}
	})
}

func TestIntervalsThatAreConfiguredLong(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		o := w.options()
		o.Interval = 90*time.Second + time.Millisecond
		w.Devices = device.New(o)
		codes := w.start()
		w.poll(codes.DeviceCode)
		_, _, err := w.poll(codes.DeviceCode)
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != fault.SlowDown || f.RetryAfter != 91*time.Second {
			t.Errorf("a hasty poll = %+v, want to be told 91 s", err)
		}
	})
}

// TestIntervalsThatAreConfiguredShort: who waits as long as they were told is in
// time, although the interval grows by less than five seconds.
func TestIntervalsThatAreConfiguredShort(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		o := w.options()
		o.Interval = time.Second
		w.Devices = device.New(o)
		codes := w.start()
		w.poll(codes.DeviceCode)
		for _, told := range []time.Duration{2, 4, 8, 16, 32, 60, 60} {
			told *= time.Second
			_, _, err := w.poll(codes.DeviceCode)
			if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != fault.SlowDown || f.RetryAfter != told {
				t.Errorf("a hasty poll = %+v, want to be told %v", err, told)
			}
			w.pass(told)
			_, _, err = w.poll(codes.DeviceCode)
			w.want(fmt.Sprintf("after %v as told", told), err, fault.AuthorizationPending)
		}
	})
}

// TestManyPollsClaimOnce has 64 polls at once, before the approval and after.
func TestManyPollsClaimOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		codes, who := w.start(), w.person()
		storm := func() map[fault.Code]int {
			var mu sync.Mutex
			got := map[fault.Code]int{}
			dbtest.Together(64, func(int) {
				_, _, err := w.poll(codes.DeviceCode)
				mu.Lock()
				defer mu.Unlock()
				got[code(err)]++
			})
			return got
		}
		if got := storm(); got[fault.AuthorizationPending] != 1 || got[fault.SlowDown] != 63 {
			t.Errorf("before the approval = %v, want one in time", got)
		}
		w.approve(codes.UserCode, who)
		if got := storm(); got[""] != 1 || got[fault.DeviceCodeExpired] != 63 {
			t.Errorf("after the approval = %v, want one claim", got)
		}
		if n := w.count(`SELECT count(*) FROM device`); n != 1 {
			t.Errorf("%d devices, want 1", n)
		}
	})
}

func TestAReplayIsToldOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		codes, who := w.start(), w.person()
		other, _ := w.signIn(who)
		w.approve(codes.UserCode, who)
		dev, refresh, err := w.poll(codes.DeviceCode)
		if err != nil {
			t.Fatal(err)
		}
		w.pass(15 * time.Second)
		dbtest.Together(16, func(int) {
			_, _, err := w.poll(codes.DeviceCode)
			w.want("a replay", err, fault.DeviceCodeExpired)
		})
		if len(w.replayed) != 1 || w.replayed[0].ID != dev.ID || w.replayed[0].PersonID != who || w.replayed[0].Revoked == nil || !w.replayed[0].Revoked.Equal(w.now()) {
			t.Errorf("replayed = %+v, want the device once", w.replayed)
		}
		if n := w.count(`SELECT count(*) FROM device WHERE revoked_why = 'replayed'`); n != 1 || w.alive(dev.ID) || !w.alive(other.ID) {
			t.Errorf("%d devices were revoked, want that one", n)
		}
		_, err = w.refresh(refresh)
		w.want("its refresh token", err, fault.TokenInvalid)
		w.whileWriting(func(ctx context.Context) {
			w.want("a replay of what is dead", w.PollGrant(ctx, w.db, codes.DeviceCode, nil), fault.DeviceCodeExpired)
		})
	})
}

// TestWithoutTheDatabase holds that nothing is said about a code or a device
// that cannot be looked up.
func TestWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *fixture) {
		codes := w.start()
		dev, _ := w.signIn(w.person())
		away := dbtest.Open(t, w.address)
		away.Close()
		if err := w.PollGrant(t.Context(), away, codes.DeviceCode, nil); err == nil || code(err) == fault.DeviceCodeExpired {
			t.Errorf("poll = %v", err)
		}
		if _, err := w.CheckDevice(t.Context(), away, dev.ID); err == nil || code(err) == fault.Unauthenticated {
			t.Errorf("check = %v", err)
		}
	})
}
