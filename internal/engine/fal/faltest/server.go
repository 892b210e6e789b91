// Package faltest is a stand-in for fal, which is a hosted service: for its
// queue, storage, catalog and file host. Its responses follow fal's
// documentation, and a test with fal's own client verifies them. It has three
// models, whose requests take time, and can simulate every fault that tests
// need.
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

// Fault is a kind of failure of the stand-in servers.
type Fault string

// The faults that the stand-in servers can simulate.
const (
	Drops      Fault = "drops"      // the queue accepts a request and drops the connection
	Swallows   Fault = "swallows"   // the queue drops the connection without accepting the request
	Stalls     Fault = "stalls"     // the queue accepts a request and does not respond until the client has disconnected
	Strays     Fault = "strays"     // the response contains a URL of the request on another host
	Busy       Fault = "busy"       // requests get status 429
	Ill        Fault = "ill"        // create requests get status 503 although they are accepted
	Locked     Fault = "locked"     // requests get status 403, because the account has no credit left
	Refuses    Fault = "refuses"    // the model refuses its inputs as invalid
	Flags      Fault = "flags"      // the model refuses the content
	Blackens   Fault = "blackens"   // the model returns a black picture instead of its result
	Fails      Fault = "fails"      // the model crashes
	Interrupts Fault = "interrupts" // the machine that runs the model disconnects
	Loses      Fault = "loses"      // the queue has lost all requests
	Hiccups    Fault = "hiccups"    // queries of a request get status 502
	Garbles    Fault = "garbles"    // responses are invalid JSON
	Breaks     Fault = "breaks"     // files are truncated
	Floods     Fault = "floods"     // files never end
	Drips      Fault = "drips"      // files are sent byte by byte
	Hangs      Fault = "hangs"      // queries of a request get no response
	Fewer      Fault = "fewer"      // requests succeed without output
)

// Options configure the stand-in servers.
type Options struct {
	Key   string        // required API key; default: id:secret
	Takes time.Duration // duration of a request; default: 40 ms
	Own   bool          // the queue's host also serves results, instead of another host
	Ahead int           // number of requests that are served before a request that waits
}

// Server is the stand-in for fal.
type Server struct {
	enginetest.FaultSwitch[Fault]
	URL     string // base URL of the queue
	Storage string // base URL of the storage API
	Catalog string // base URL of the catalog
	Key     string

	takes  time.Duration
	ahead  int
	host   string // base URL of the file host
	closed chan struct{}

	mu       sync.Mutex
	requests []*request
	uploads  map[string][]byte
	creates  int
	leaks    int // number of requests to the file host that contained the API key
	headers  []http.Header
}

// Start starts the servers and stops them when the test ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s := &Server{
		Key: cmp.Or(o.Key, "id:secret"), takes: cmp.Or(o.Takes, 40*time.Millisecond), ahead: o.Ahead,
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

// Restart makes the queue lose all requests.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// Creates returns the number of requests that the queue has accepted since the
// start.
func (s *Server) Creates() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.creates
}

// Leaks returns the number of requests to the file host that contained the API
// key, which must not be sent to this host.
func (s *Server) Leaks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaks
}

// Headers returns the HTTP headers of every accepted request, in order.
func (s *Server) Headers() []http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.headers
}

// Running returns the number of requests in the queue that have not ended.
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

// Inputs returns the model inputs of all requests in the queue, oldest first.
func (s *Server) Inputs() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]map[string]any, len(s.requests))
	for i, r := range s.requests {
		all[i] = r.input
	}
	return all
}

// Cancel cancels every request in the queue, as another worker might do.
func (s *Server) Cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		r.cancel(s.takes)
	}
}

// hang blocks until the client disconnects or the server stops.
func (s *Server) hang(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.closed:
	}
}
