package sqldb

import (
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	t.Parallel()
	ours := time.Date(2026, 11, 15, 9, 0, 0, 0, time.UTC)
	theirs := ours.Add(-time.Hour)
	var c clock
	if !c.isStale(ours) {
		t.Error("a clock that nobody has looked at is good")
	}
	c.setServerTime(ours, theirs)
	if c.isStale(ours.Add(lookAgain-1)) || !c.isStale(ours.Add(lookAgain)) {
		t.Error("a look is good for more or less than it should")
	}
	if got, want := c.serverTime(ours.Add(time.Second)), theirs.Add(time.Second); !got.Equal(want) {
		t.Errorf("a second later = %v, want %v", got, want)
	}
}
