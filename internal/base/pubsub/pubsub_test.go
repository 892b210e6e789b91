package pubsub_test

import (
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
