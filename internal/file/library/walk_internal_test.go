package library

import (
	"testing"
	"time"
)

// TestLongWalksPause lists a store that takes long: the next sweeps do not list
// it again until the pause has ended.
func TestLongWalksPause(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)
	now := func() time.Time { return at }
	var w walk
	lists := 0
	sweep := func(takes time.Duration) {
		t.Helper()
		err := w.do(now, func() error {
			lists++
			at = at.Add(takes)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	sweep(time.Second)
	sweep(5 * time.Minute)
	if lists != 2 {
		t.Fatalf("listed %d times, want 2: a short walk needs no pause", lists)
	}
	at = at.Add(94 * time.Minute) // 99 minutes after the long walk began
	sweep(time.Second)
	if lists != 2 {
		t.Errorf("listed %d times, want 2: the pause is 100 minutes", lists)
	}
	at = at.Add(2 * time.Minute)
	sweep(time.Second)
	if lists != 3 {
		t.Errorf("listed %d times, want 3: the pause has ended", lists)
	}
}
