package webhook

import (
	"slices"
	"strconv"
	"testing"
	"time"
)

func events(host string, n int) (all []dueEvent) {
	for i := range n {
		all = append(all, dueEvent{id: host + strconv.Itoa(i), host: host, rank: i + 1})
	}
	return all
}

func TestAHostTakesNoMoreThanItsShare(t *testing.T) {
	t.Parallel()
	s := newSlots(8, 3)
	now := time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)
	total := 0
	for _, want := range []int{1, 1, 1, 0} { // one in each spacing, three in all
		if got, _ := s.takeSlots(now, events("flood", 3)); len(got) != want {
			t.Fatalf("after %d slots it took %d more, want %d", total, len(got), want)
		}
		total += want
		now = now.Add(spacing)
	}
	if full, soon := s.fullHosts(now); !slices.Equal(full, []string{"flood"}) || soon {
		t.Errorf("full = %v, soon %v", full, soon)
	}
	s.releaseSlot("flood")
	if full, soon := s.fullHosts(now); len(full) != 0 || soon {
		t.Errorf("full after one came back = %v, soon %v", full, soon)
	}
}

func TestAHostIsSentToTenTimesASecond(t *testing.T) {
	t.Parallel()
	s := newSlots(64, 64)
	start := time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)
	var sent []time.Duration
	for at := time.Duration(0); at < 5*time.Second; at += time.Millisecond {
		now := start.Add(at)
		got, soon := s.takeSlots(now, events("busy", 5))
		if !soon {
			t.Fatal("nobody is told that there will be more soon")
		}
		for range got {
			sent = append(sent, at)
			s.releaseSlot("busy")
		}
		if full, soon := s.fullHosts(now); len(got) == 1 && (!slices.Equal(full, []string{"busy"}) || !soon) {
			t.Fatalf("full = %v, soon %v", full, soon)
		}
	}
	if len(sent) < 44 {
		t.Errorf("%d attempts in five seconds", len(sent))
	}
	for i := range len(sent) - 10 {
		if sent[i+10]-sent[i] < time.Second {
			t.Fatalf("eleven attempts from %v to %v", sent[i], sent[i+10])
		}
	}
	if s.fullHosts(start.Add(time.Minute)); len(s.pace) != 0 || len(s.busy) != 0 || s.total != 0 {
		t.Errorf("kept %v, %v, %d for hosts long done", s.pace, s.busy, s.total)
	}
}

func TestHalfOfTheSlotsAreForOthers(t *testing.T) {
	t.Parallel()
	s := newSlots(8, 4)
	now := time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)
	for range 10 { // two hosts that never answer take what they can
		s.takeSlots(now, slices.Concat(events("a", 4), events("b", 4)))
		now = now.Add(time.Second)
	}
	if s.total != 4 {
		t.Errorf("two hosts have %d of 8 slots, want half", s.total)
	}
	if full, _ := s.fullHosts(now); !slices.Equal(full, []string{"a", "b"}) {
		t.Errorf("full = %v", full)
	}
	got, _ := s.takeSlots(now, slices.Concat(events("a", 1), events("c", 2), events("d", 1), events("e", 1), events("f", 1), events("g", 1)))
	var hosts []string
	for _, e := range got {
		hosts = append(hosts, e.host)
	}
	if !slices.Equal(hosts, []string{"c", "d", "e", "f"}) || s.hasFree() {
		t.Errorf("taken for %v, %d slots in use, want one each for hosts that had none", hosts, s.total)
	}
}

func TestAFailingHostGetsOneAtATime(t *testing.T) {
	t.Parallel()
	s := newSlots(8, 4)
	now := time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)
	failing := events("a", 4)
	for i := range failing {
		failing[i].failing = true
	}
	for range 5 {
		s.takeSlots(now, slices.Clone(failing))
		now = now.Add(time.Second)
	}
	if s.total != 1 {
		t.Errorf("%d at once, want 1", s.total)
	}
}
