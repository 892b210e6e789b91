package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"atelier/test/program"
)

// sink receives events, and fails at times until it is calm.
type sink struct {
	*httptest.Server
	roots string // file with who vouches for it

	mu     sync.Mutex
	chance *rand.Rand
	calm   bool
	events []delivery
}

// delivery is one attempt to tell the receiver something.
type delivery struct {
	at     time.Time
	id     string // webhook-id
	header http.Header
	raw    []byte
	status int // that it answered; 0: it hung up
	body   struct {
		Type string
		Data map[string]any
	}
}

func newSink(t *testing.T, seed uint64) *sink {
	s := &sink{chance: rand.New(rand.NewPCG(seed, 1<<32))}
	s.Server, s.roots = program.Receiver(t, s.hear)
	return s
}

func (s *sink) hear(w http.ResponseWriter, r *http.Request) {
	d := delivery{at: time.Now(), id: r.Header.Get("webhook-id"), header: r.Header, status: http.StatusOK}
	var err error
	if d.raw, err = io.ReadAll(r.Body); err != nil {
		return // the sender died in the middle
	}
	if err := json.Unmarshal(d.raw, &d.body); err != nil {
		d.body.Type = "no JSON: " + err.Error()
	}
	s.mu.Lock()
	wait := time.Duration(0)
	switch n := s.chance.IntN(20); {
	case s.calm:
	case n < 2:
		d.status = http.StatusInternalServerError
	case n == 2:
		d.status = 0
	case n == 3:
		d.status, wait = http.StatusServiceUnavailable, 200*time.Millisecond
	case n < 10:
		wait = between(s.chance, 0, 200*time.Millisecond)
	}
	s.events = append(s.events, d)
	s.mu.Unlock()
	if wait > 0 {
		<-time.After(wait)
	}
	if d.status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(d.status)
}

// calmDown ends the failures of the receiver.
func (s *sink) calmDown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calm = true
}

// heard are the deliveries so far.
func (s *sink) heard() []delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]delivery(nil), s.events...)
}

func (s *sink) summary() string {
	ids, good := map[string]bool{}, 0
	all := s.heard()
	for _, d := range all {
		ids[d.id] = true
		if d.status == http.StatusOK {
			good++
		}
	}
	return fmt.Sprintf("%d events, %d deliveries, %d answered with 200", len(ids), len(all), good)
}
