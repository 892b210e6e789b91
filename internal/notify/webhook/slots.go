package webhook

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// spacing lies between two attempts for one host. It is a little more than a
// tenth of a second, so that a receiver never counts eleven in one.
const spacing = 110 * time.Millisecond

// slots bound what this process sends at once, so that one receiver keeps
// nobody waiting for another:
//
//   - a host has perHost of them, and one only while it fails;
//   - a host that has one gets a second from the first half of them alone: the
//     other half is for hosts that have none.
type slots struct {
	parallel, perHost int

	mu    sync.Mutex
	total int
	busy  map[string]int           // by host
	pace  map[string]*rate.Limiter // of hosts that were sent to just now
}

func newSlots(parallel, perHost int) *slots {
	return &slots{parallel: parallel, perHost: perHost, busy: map[string]int{}, pace: map[string]*rate.Limiter{}}
}

// fullHosts gives the hosts that get nothing now, and whether some of them do so soon
// without anybody giving a slot back.
func (s *slots) fullHosts(now time.Time) (hosts []string, soon bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for host, l := range s.pace {
		if l.TokensAt(now) >= 1 {
			delete(s.pace, host) // as good as none
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

// hasFree tells whether anything can be sent at all.
func (s *slots) hasFree() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total < s.parallel
}

// takeSlots gives slots to events, those of hosts that have the fewest first, and
// says which have one now, and whether others only came too soon.
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

// releaseSlot gives a slot back.
func (s *slots) releaseSlot(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	if s.busy[host]--; s.busy[host] == 0 {
		delete(s.busy, host)
	}
}
