package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// starvedLimit is how long a thread may wait for a processor before the wait
// counts as a fault. The service gives a database that does not respond as long.
const starvedLimit = time.Second

// starvation watches how long the threads of the service and of its database
// wait for a processor: on a machine that is busy elsewhere, a process can stand
// still as if it were stopped. On systems that do not tell, it sees nothing.
type starvation struct {
	mu     sync.Mutex
	pids   []int // of the servers
	waited map[string]time.Duration
	faults []fault
}

// follow adds a process.
func (s *starvation) follow(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pids = append(s.pids, pid)
}

// watch looks at the threads until stop is closed.
func (s *starvation) watch(w *installation, stop <-chan struct{}) {
	for tick := time.Tick(500 * time.Millisecond); ; {
		select {
		case <-stop:
			return
		case <-tick:
		}
		s.mu.Lock()
		pids := append([]int(nil), s.pids...)
		s.mu.Unlock()
		if w.postgres != nil {
			pids = append(pids, w.postgres.Processes()...)
		}
		s.look(pids)
	}
}

// look compares how long each thread has waited with the last time. Waiting is
// added up when the thread runs again.
func (s *starvation) look(pids []int) {
	now := time.Now()
	waited := map[string]time.Duration{}
	longest := time.Duration(0)
	for _, pid := range pids {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		for _, path := range threads {
			text, err := os.ReadFile(path)
			var ran, delayed time.Duration
			if err != nil {
				continue // it has ended
			}
			if _, err := fmt.Sscan(string(text), &ran, &delayed); err != nil {
				continue
			}
			waited[path] = delayed
			if before, ok := s.waited[path]; ok {
				longest = max(longest, delayed-before)
			}
		}
	}
	s.waited = waited
	if longest >= starvedLimit {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults = append(s.faults, fault{from: now.Add(-longest - time.Second), to: now, everywhere: true})
	}
}
