package webhook

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// spacing is the minimum interval between two attempts for one host. It is
// slightly longer than a tenth of a second, so that no receiver gets more than
// ten attempts within a second.
const spacing = 110 * time.Millisecond

// slots limits the concurrent attempts of this process, so that a slow receiver
// does not delay the events of others. Each attempt needs a slot:
//
//   - A host has at most perHost slots, and only one while its attempts fail.
//   - A host that already has a slot gets another only while less than half of
//     all slots are in use. The other half is reserved for hosts without one.
type slots struct {
	parallel, perHost int

	mu    sync.Mutex
	total int
	busy  map[string]int           // number of slots in use, by host
	pace  map[string]*rate.Limiter // limits the rate of attempts, by host; contains only hosts with a recent attempt
}

func newSlots(parallel, perHost int) *slots {
	return &slots{parallel: parallel, perHost: perHost, busy: map[string]int{}, pace: map[string]*rate.Limiter{}}
}

// fullHosts returns the hosts that cannot get a slot now. soon is true if some
// of them are only waiting for the interval spacing, not for another attempt to
// end.
func (s *slots) fullHosts(now time.Time) (hosts []string, soon bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for host, l := range s.pace {
		if l.TokensAt(now) >= 1 {
			delete(s.pace, host) // a new limiter would have the same state
			continue
		}
		hosts = append(hosts, host)
		soon = true
	}
	for host, n := range s.busy {
		if s.pace[host] == nil && (n >= s.perHost || s.total >= s.parallel/2) {
			hosts = append(hosts, host)
		}
	}
	slices.Sort(hosts)
	return hosts, soon
}

// hasFree reports whether any slot is free.
func (s *slots) hasFree() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total < s.parallel
}

// takeSlots assigns slots to events, beginning with events of hosts that have
// the fewest slots. It returns the events that got a slot. soon is true if some
// of the other events are only waiting for the interval spacing of their host.
func (s *slots) takeSlots(now time.Time, events []dueEvent) (taken []dueEvent, soon bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := map[string]int{}
	for _, e := range events {
		before[e.host] = s.busy[e.host]
	}
	slices.SortStableFunc(events, func(a, b dueEvent) int { return cmp.Compare(before[a.host]+a.rank, before[b.host]+b.rank) })
	for _, e := range events {
		n := s.busy[e.host]
		if s.total >= s.parallel || n >= s.perHost || n > 0 && (e.failing || s.total >= s.parallel/2) {
			continue
		}
		if s.pace[e.host] == nil {
			s.pace[e.host] = rate.NewLimiter(rate.Every(spacing), 1)
		}
		if !s.pace[e.host].AllowN(now, 1) {
			soon = true
			continue
		}
		s.busy[e.host]++
		s.total++
		taken = append(taken, e)
	}
	return taken, soon
}

// releaseSlot releases one of the slots of a host.
func (s *slots) releaseSlot(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	if s.busy[host]--; s.busy[host] == 0 {
		delete(s.busy, host)
	}
}
