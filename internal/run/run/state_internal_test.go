package run

import (
	"slices"
	"testing"
)

// Moves gives the tests outside what moves there are.
func Moves(from, to State) bool { return slices.Contains(next[from], to) }

func TestStatesAsTheyAreSeen(t *testing.T) {
	t.Parallel()
	for s, want := range map[State]struct {
		ended  bool
		status string
	}{
		Queued: {false, Pending}, Running: {false, Pending},
		Succeeded: {true, "succeeded"}, Failed: {true, "failed"}, Cancelled: {true, "cancelled"},
	} {
		if s.IsEnded() != want.ended || s.PublicStatus() != want.status {
			t.Errorf("%s: ended %v, %s", s, s.IsEnded(), s.PublicStatus())
		}
	}
}
