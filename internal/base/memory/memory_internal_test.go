package memory

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

// queue has owners wait for a lane one after the other, and gives the order in
// which they were served. Whoever is served leaves at once.
func queue(t *testing.T, b *Budget, l Lane, bytes int64, owners ...string) (served []string) {
	t.Helper()
	var all sync.WaitGroup
	for _, owner := range owners {
		all.Go(func() {
			h, err := b.Acquire(t.Context(), Request{owner, bytes, l})
			if err != nil {
				t.Errorf("%s: %v", owner, err)
				return
			}
			served = append(served, owner) // one place: one at a time
			h.Release()
		})
		synctest.Wait() // in this order
	}
	return served
}

func TestOwnersAreServedInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(1000, 2)
		first, err := b.Acquire(t.Context(), Request{"anna", 500, Large})
		if err != nil {
			t.Fatal(err)
		}
		var served []string
		var mu sync.Mutex
		var all sync.WaitGroup
		for _, owner := range []string{"anna", "anna", "anna", "anna", "bea", "bea", "carl"} {
			all.Go(func() {
				h, err := b.Acquire(t.Context(), Request{owner, 500, Large})
				if err != nil {
					t.Errorf("%s: %v", owner, err)
					return
				}
				mu.Lock()
				served = append(served, owner)
				mu.Unlock()
				time.Sleep(time.Second)
				h.Release()
			})
			synctest.Wait()
		}
		first.Release()
		all.Wait()
		if want := []string{"anna", "bea", "carl", "anna", "bea", "anna", "anna"}; !slices.Equal(served, want) {
			t.Errorf("served %v, want %v", served, want)
		}
		if b.used != 0 || b.lanes[Large].busy != 0 || len(b.lanes[Large].queues) != 0 || len(b.lanes[Large].order) != 0 || len(b.lanes[Large].busyByOwner) != 0 {
			t.Errorf("left behind: %+v", b)
		}
	})
}

func TestSmallOnesDoNotWaitForLargeOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(800, 2)
		for _, r := range []Request{{"anna", 400, LargeTool}, {"anna", 300, Large}} {
			if _, err := b.Acquire(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		for _, l := range []Lane{Large, LargeTool} {
			go b.Acquire(ctx, Request{"anna", 400, l})
		}
		synctest.Wait()
		if served := queue(t, b, Quick, 100, "bea", "anna", "bea"); len(served) != 3 {
			t.Errorf("served %v", served)
		}
		cancel()
	})
}

// TestOneOwnerLeavesAPlace has one owner ask for all places of the quick lane.
func TestOneOwnerLeavesAPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(1000, 2)
		ctx, cancel := context.WithCancel(t.Context())
		var held atomic.Int32
		for range 10 {
			go func() {
				if _, err := b.Acquire(ctx, Request{"anna", 1, Quick}); err == nil {
					held.Add(1)
				}
			}()
		}
		synctest.Wait()
		if held.Load() != 2 {
			t.Errorf("one owner has %d places, want 2 of 3", held.Load())
		}
		h, err := b.Acquire(t.Context(), Request{"bea", 1, Quick})
		if err != nil {
			t.Fatal(err)
		}
		h.Release()
		cancel()
	})
}

func TestWaitingEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(800, 2)
		if _, err := b.Acquire(t.Context(), Request{"anna", 701, Large}); !errors.Is(err, ErrNeverFits) {
			t.Errorf("more than the share: %v", err)
		}
		h, err := b.Acquire(t.Context(), Request{"anna", b.MaxBytes(Large), Large})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range maxWaiting {
			go b.Acquire(ctx, Request{"anna", 1, Large})
		}
		synctest.Wait()
		if _, err := b.Acquire(ctx, Request{"anna", 1, Large}); !errors.Is(err, ErrCrowded) {
			t.Errorf("one more: %v", err)
		}
		if _, err := b.Acquire(ctx, Request{"bea", 1, Large}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("another owner: %v", err)
		}
		synctest.Wait()
		h.Release()
		h.Release()
		if b.used != 0 || len(b.lanes[Large].order) != 0 {
			t.Errorf("%d bytes in use, %v wait", b.used, b.lanes[Large].order)
		}
	})
}

// TestManyAtOnce has many owners come, wait and give up by chance: the budget is
// never exceeded, and all of it is there in the end.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	const total = 10_000
	b := newBudget(total, 2)
	var used, got atomic.Int64
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for range 500 {
				request := Request{fmt.Sprint(i % 5), r.Int64N(total/2) + 1, Lane(r.IntN(int(lanes)))}
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(2000))*time.Microsecond)
				h, err := b.Acquire(ctx, request)
				if err == nil {
					if n := used.Add(request.Bytes); n > total {
						t.Errorf("%d bytes in use", n)
					}
					got.Add(1)
					used.Add(-request.Bytes)
					h.Release()
				}
				cancel()
			}
		})
	}
	all.Wait()
	if b.used != 0 || got.Load() == 0 {
		t.Errorf("%d bytes in use after %d holds", b.used, got.Load())
	}
}

func TestHoldsCover(t *testing.T) {
	t.Parallel()
	h, err := NewBudget(1000).Acquire(t.Context(), Request{"anna", 100, Tool})
	if err != nil {
		t.Fatal(err)
	}
	ctx := WithReservation(t.Context(), h)
	if !Covers(ctx, 100) || Covers(ctx, 101) || Covers(t.Context(), 1) || Covers(WithReservation(t.Context(), nil), 1) {
		t.Error("a hold covers other than its bytes")
	}
}

func TestMachine(t *testing.T) {
	t.Parallel()
	const info = "MemFree: 17 kB\nMemTotal:       4194304 kB\n"
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, tt := range map[string]struct {
		root fstest.MapFS
		want int64
	}{
		"nothing known":      {fstest.MapFS{}, unknown},
		"a machine":          {fstest.MapFS{"proc/meminfo": file(info)}, 2 << 30},
		"a small machine":    {fstest.MapFS{"proc/meminfo": file("MemTotal: 65536 kB\n")}, least},
		"version 2":          {fstest.MapFS{"proc/meminfo": file(info), "proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("1073741824\n")}, 512 << 20},
		"version 2, nested":  {fstest.MapFS{"proc/meminfo": file(info), "proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/memory.max": file("1073741824\n"), "sys/fs/cgroup/a/b/memory.max": file("max\n")}, 512 << 20},
		"version 2, no end":  {fstest.MapFS{"proc/meminfo": file(info), "proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("max\n")}, 2 << 30},
		"version 1":          {fstest.MapFS{"proc/meminfo": file(info), "proc/self/cgroup": file("5:cpu,memory:/docker/x\n1:name=systemd:/\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("536870912\n")}, 256 << 20},
		"version 1, no end":  {fstest.MapFS{"proc/meminfo": file(info), "proc/self/cgroup": file("5:memory:/\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n")}, 2 << 30},
		"a group from above": {fstest.MapFS{"proc/meminfo": file(info), "proc/self/cgroup": file("0::/../../x\n"), "sys/fs/cgroup/memory.max": file("1073741824\n")}, 512 << 20},
	} {
		if got := defaultBytes(tt.root); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
	if got := runtimeLimit(4 << 30); got != 6<<30 {
		t.Errorf("limit = %d", got)
	}
}
