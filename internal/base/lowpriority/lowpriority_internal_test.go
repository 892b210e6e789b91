package lowpriority

import (
	"runtime"
	"slices"
	"testing"
)

// Whoever sets the number of turns while crews are there means it: they give
// back no more than what they have added to it.
func TestTurnsAreGivenBack(t *testing.T) {
	t.Parallel()
	const set = 100 // beyond: somebody else sets the number
	for _, c := range []struct {
		name  string
		moves []int
		want  []int
	}{
		{"one", []int{2, -2}, []int{4, 2}},
		{"in the order they came", []int{2, 3, -2, -3}, []int{4, 7, 5, 2}},
		{"in the other order", []int{2, 3, -3, -2}, []int{4, 7, 4, 2}},
		{"set meanwhile", []int{2, set + 3, -2}, []int{4, 3, 3}},
		{"set to as many as there are cores", []int{2, set + 2, -2, 2, -2}, []int{4, 2, 2, 4, 2}},
		{"set between two", []int{2, set + 3, 2, -2, -2}, []int{4, 3, 5, 3, 3}},
		{"set after all", []int{2, -2, set + 8, 2, -2}, []int{4, 2, 8, 10, 8}},
	} {
		var l loan
		now := 2
		var got []int
		for _, n := range c.moves {
			if n > set {
				now = n - set
			} else {
				now = l.changeTurns(now, n)
			}
			got = append(got, now)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestWorkIsDone has work done in the background, and a panic come back.
func TestWorkIsDone(t *testing.T) {
	before, cores := runtime.GOMAXPROCS(0), Cores()
	Do(func() {
		if n := runtime.GOMAXPROCS(0); n != before+1 || Cores() != cores {
			t.Errorf("%d turns for %d cores, want %d for %d", n, Cores(), before+1, cores)
		}
	})
	defer func() {
		if p := recover(); p != "oh" {
			t.Errorf("panic = %v", p)
		}
		if n := runtime.GOMAXPROCS(0); n != before {
			t.Errorf("%d turns are left, want %d", n, before)
		}
	}()
	Do(func() { panic("oh") })
}
