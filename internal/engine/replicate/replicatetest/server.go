// Package replicatetest stands in for Replicate's HTTP API, which is hosted and
// cannot be run: it answers as the API is documented to and as its own client
// understands, which a test proves with that client. It has three models, keeps
// time, and can go wrong in every way that tests need.
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

// Fault is a way in which the server goes wrong.
type Fault string

// The faults.
const (
	Drops      Fault = "drops"      // it creates, and drops the connection
	Swallows   Fault = "swallows"   // it drops the connection without creating
	Stalls     Fault = "stalls"     // it creates, and answers when nobody waits any more
	Busy       Fault = "busy"       // 429
	Ill        Fault = "ill"        // 503, although it creates
	Unpaid     Fault = "unpaid"     // 402
	Refuses    Fault = "refuses"    // 422
	Fails      Fault = "fails"      // predictions fail
	Flags      Fault = "flags"      // predictions fail for their content
	Interrupts Fault = "interrupts" // predictions fail for the provider's machines
	Loses      Fault = "loses"      // it does not know predictions any more
	Hiccups    Fault = "hiccups"    // 502 to who looks at a prediction
	Garbles    Fault = "garbles"    // it answers what is no JSON
	Breaks     Fault = "breaks"     // files end in the middle
	Floods     Fault = "floods"     // files have no end
	Drips      Fault = "drips"      // files come byte by byte
	Hangs      Fault = "hangs"      // who looks at a prediction gets no answer
	Fewer      Fault = "fewer"      // predictions succeed without output
	Removes    Fault = "removes"    // outputs are deleted already
)

// Options are how the server behaves.
type Options struct {
	Token string        // that it wants to see: r8_test
	Takes time.Duration // how long a prediction takes: 40 ms
	Own   bool          // it serves outputs itself, and not another host
}

// Server is a provider.
type Server struct {
	enginetest.FaultSwitch[Fault]
	URL   string // where the API begins
	Token string

	takes    time.Duration
	delivery string
	closed   chan struct{}

	mu          sync.Mutex
	predictions []*prediction
	files       map[string]*file
	creates     int
	leaks       int // calls to the files' host with credentials
	headers     []http.Header
}

// Start starts a server that lasts as long as the test.
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

// Restart has the server forget everything.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.predictions = nil
	s.files = map[string]*file{}
}

// Creates is how many predictions were ever created.
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

// Headers are those of every create that was made.
func (s *Server) Headers() []http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.headers
}

// Running is how many predictions have not ended.
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

// Inputs are those of all predictions, oldest first.
func (s *Server) Inputs() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]map[string]any, len(s.predictions))
	for i, p := range s.predictions {
		all[i] = p.input
	}
	return all
}

// Cancel cancels every prediction, as another worker would.
func (s *Server) Cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.predictions {
		p.cancel(s.takes)
	}
}

// hang waits until nobody waits for the answer.
func (s *Server) hang(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.closed:
	}
}
