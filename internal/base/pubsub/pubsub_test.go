package pubsub_test

import (
	"slices"
	"testing"

	"atelier/internal/base/pubsub"
)

func TestFollowing(t *testing.T) {
	t.Parallel()
	h := pubsub.New()
	first, stopFirst := h.Follow("a")
	second, stopSecond := h.Follow("a")
	other, stopOther := h.Follow("b")
	defer stopOther()
	h.Notify("a")
	h.Notify("a")
	h.Notify("nobody")
	for name, ch := range map[string]<-chan struct{}{"first": first, "second": second} {
		if len(ch) != 1 {
			t.Errorf("%s heard %d times, want once", name, len(ch))
		}
	}
	if len(other) != 0 {
		t.Error("another's news")
	}
	<-first
	<-second
	stopFirst()
	h.Notify("a")
	if len(first) != 0 || len(second) != 1 {
		t.Errorf("after one stopped: %d and %d", len(first), len(second))
	}
	stopSecond()
	stopSecond()
}

func TestFollowingSeveral(t *testing.T) {
	t.Parallel()
	h := pubsub.New()
	var seen []string
	stopObserving := h.Observe(func(id string) { seen = append(seen, id) })
	both, stop := h.Follow("a", "b")

	for _, id := range []string{"a", "b"} {
		h.Notify(id)
		if len(both) != 1 {
			t.Errorf("after %s the follower of both heard %d times, want once", id, len(both))
		}
		<-both
	}
	h.Notify("c", "a")
	if len(both) != 1 {
		t.Errorf("after c and a the follower of both heard %d times, want once", len(both))
	}
	<-both

	stop()
	stopObserving()
	h.Notify("a", "b")
	if len(both) != 0 {
		t.Error("a follower that stopped was signalled")
	}
	if want := []string{"a", "b", "c", "a"}; !slices.Equal(seen, want) {
		t.Errorf("the observer saw %q, want %q", seen, want)
	}
}
