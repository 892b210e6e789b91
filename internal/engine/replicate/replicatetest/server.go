// Package replicatetest is a stand-in for Replicate's HTTP API, which is a
// hosted service. Its responses follow the documentation, and a test with
// Replicate's own client verifies them. It has three models, whose predictions
// take time, and can simulate every fault that tests need.
package replicatetest

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

// Fault is a kind of failure of the stand-in server.
type Fault string

// The faults that the stand-in server can simulate.
const (
	Drops      Fault = "drops"      // the API creates the prediction and drops the connection
	Swallows   Fault = "swallows"   // the API drops the connection without creating the prediction
	Stalls     Fault = "stalls"     // the API creates the prediction and does not respond until the client has disconnected
	Busy       Fault = "busy"       // create requests get status 429
	Ill        Fault = "ill"        // create requests get status 503 although the prediction is created
	Unpaid     Fault = "unpaid"     // create requests get status 402
	Refuses    Fault = "refuses"    // create requests get status 422
	Fails      Fault = "fails"      // the model fails
	Flags      Fault = "flags"      // predictions fail because their content is refused
	Interrupts Fault = "interrupts" // predictions fail because of the provider's machines
	Loses      Fault = "loses"      // the API has lost all predictions
	Hiccups    Fault = "hiccups"    // queries of a prediction get status 502
	Garbles    Fault = "garbles"    // responses are invalid JSON
	Breaks     Fault = "breaks"     // files are truncated
	Floods     Fault = "floods"     // files never end
	Drips      Fault = "drips"      // files are sent byte by byte
	Hangs      Fault = "hangs"      // queries of a prediction get no response
	Fewer      Fault = "fewer"      // predictions succeed without output
	Removes    Fault = "removes"    // outputs have already been deleted
)

// Options configure the stand-in server.
type Options struct {
	Token string        // required access token; default: r8_test
	Takes time.Duration // duration of a prediction; default: 40 ms
	Own   bool          // the API's host also serves outputs, instead of another host
}

// Server is the stand-in for Replicate.
type Server struct {
	enginetest.FaultSwitch[Fault]
	URL   string // base URL of the API
	Token string

	takes    time.Duration
	delivery string
	closed   chan struct{}

	mu          sync.Mutex
	predictions []*prediction
	files       map[string]*file
	creates     int
	leaks       int // number of requests to the output host that contained the access token
	headers     []http.Header
}

// Start starts a server and stops it when the test ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s := &Server{
		Token: cmp.Or(o.Token, "r8_test"), takes: cmp.Or(o.Takes, 40*time.Millisecond),
		closed: make(chan struct{}), files: map[string]*file{},
	}
	api := httptest.NewServer(s.routes(o.Own))
	host := httptest.NewServer(http.HandlerFunc(s.deliver))
	s.URL = api.URL + "/v1"
	s.delivery = host.URL
	if o.Own {
		s.delivery = api.URL
	}
	t.Cleanup(func() {
		close(s.closed)
		api.Close()
		host.Close()
	})
	return s
}

// Restart makes the server lose all predictions and uploads.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.predictions = nil
	s.files = map[string]*file{}
}

// Creates returns the number of predictions created since the start.
func (s *Server) Creates() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.creates
}

// Leaks returns the number of requests to the output host that contained the
// access token, which must not be sent to this host.
func (s *Server) Leaks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaks
}

// Headers returns the HTTP headers of every request that created a prediction,
// in order.
func (s *Server) Headers() []http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.headers
}

// Running returns the number of predictions that have not ended.
func (s *Server) Running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, p := range s.predictions {
		if !ended(p.status(s.takes)) {
			n++
		}
	}
	return n
}

// Inputs returns the model inputs of all predictions, oldest first.
func (s *Server) Inputs() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]map[string]any, len(s.predictions))
	for i, p := range s.predictions {
		all[i] = p.input
	}
	return all
}

// Cancel cancels every prediction, as another worker might do.
func (s *Server) Cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.predictions {
		p.cancel(s.takes)
	}
}

// hang blocks until the client disconnects or the server stops.
func (s *Server) hang(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.closed:
	}
}
