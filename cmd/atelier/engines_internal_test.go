package main

import "testing"

func TestThreadsOfTheModel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ cores, wanted, want int }{{4, 0, 4}, {4, 1, 1}, {4, 4, 4}, {4, 2000, 4}} {
		if got := threads(tt.cores, tt.wanted); got != tt.want {
			t.Errorf("%d of %d cores = %d threads, want %d", tt.wanted, tt.cores, got, tt.want)
		}
	}
}
