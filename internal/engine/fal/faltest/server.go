// Package faltest stands in for fal, which is hosted and cannot be run: the
// queue, the storage, the catalog and the host of files. It answers as they are
// documented to and as fal's own client understands, which a test proves with
// that client. It has three models, keeps time, and can go wrong in every way
// that tests need.
package faltest

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"atelier/internal/engine/enginetest"
)

// Fault is a way in which the servers go wrong.
type Fault string

// The faults.
const (
	Drops      Fault = "drops"      // it takes a request, and drops the connection
	Swallows   Fault = "swallows"   // it drops the connection without taking it
	Stalls     Fault = "stalls"     // it takes a request, and answers when nobody waits any more
	Strays     Fault = "strays"     // it says that a request is found on another host
	Busy       Fault = "busy"       // 429
	Ill        Fault = "ill"        // 503, although it takes the request
	Locked     Fault = "locked"     // 403: nobody paid
	Refuses    Fault = "refuses"    // the model does not understand its inputs
	Flags      Fault = "flags"      // the model does not want to
	Blackens   Fault = "blackens"   // the model paints over what it made
	Fails      Fault = "fails"      // the model breaks down
	Interrupts Fault = "interrupts" // the runner does
	Loses      Fault = "loses"      // it does not know requests any more
	Hiccups    Fault = "hiccups"    // 502 to who looks at a request
	Garbles    Fault = "garbles"    // it answers what is no JSON
	Breaks     Fault = "breaks"     // files end in the middle
	Floods     Fault = "floods"     // files have no end
	Drips      Fault = "drips"      // files come byte by byte
	Hangs      Fault = "hangs"      // who looks at a request gets no answer
	Fewer      Fault = "fewer"      // requests succeed without output
)

// Options are how the servers behave.
type Options struct {
	Key   string        // that they want to see: id:secret
	Takes time.Duration // how long a request takes: 40 ms
	Own   bool          // the queue serves outputs itself, and not another host
}

// Server is a provider.
type Server struct {
	enginetest.FaultSwitch[Fault]
	URL     string // of the queue
	Storage string // where uploads are asked for
	Catalog string // where schemas are
	Key     string

	takes  time.Duration
	host   string // of files
	closed chan struct{}

	mu       sync.Mutex
	requests []*request
	uploads  map[string][]byte
	creates  int
	leaks    int // calls to the files' host with credentials
	headers  []http.Header
}

// Start starts the servers, which last as long as the test.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s := &Server{
		Key: cmp.Or(o.Key, "id:secret"), takes: cmp.Or(o.Takes, 40*time.Millisecond),
		closed: make(chan struct{}), uploads: map[string][]byte{},
	}
	queue := httptest.NewServer(s.known(s.queue(o.Own)))
	storage := httptest.NewServer(s.known(s.storage()))
	host := httptest.NewServer(s.files())
	catalog := httptest.NewServer(s.catalog())
	s.URL = queue.URL
	s.Storage = storage.URL
	s.Catalog = catalog.URL + "/api"
	s.host = host.URL
	if o.Own {
		s.host = queue.URL
	}
	t.Cleanup(func() {
		close(s.closed)
		for _, one := range []*httptest.Server{queue, storage, host, catalog} {
			one.Close()
		}
	})
	return s
}

// Restart has the queue forget everything.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// Creates is how many requests were ever taken.
func (s *Server) Creates() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.creates
}

// Leaks is how many calls to the host of files came with credentials.
func (s *Server) Leaks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaks
}

// Headers are those of every request that was taken.
func (s *Server) Headers() []http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.headers
}

// Running is how many requests have not ended.
func (s *Server) Running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.requests {
		if r.status(s.takes) != "COMPLETED" {
			n++
		}
	}
	return n
}

// Inputs are those of all requests, oldest first.
func (s *Server) Inputs() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]map[string]any, len(s.requests))
	for i, r := range s.requests {
		all[i] = r.input
	}
	return all
}

// Cancel cancels every request, as another worker would.
func (s *Server) Cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		r.cancel(s.takes)
	}
}

// hang waits until nobody waits for the answer.
func (s *Server) hang(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.closed:
	}
}
