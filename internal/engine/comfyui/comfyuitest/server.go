// Package comfyuitest is a stand-in for a ComfyUI server: its calls, its queue
// with one worker, its history, its sockets, uploads and files, and two dozen
// of its node classes. The real server is in no registry that Go code can
// depend on, and needs a GPU. This server speaks the same protocol, quirks
// included, and computes its pictures without a model: the saved files depend
// on the seed, the texts and the other inputs.
//
// Tests of several packages use it. It shows faults on demand.
package comfyuitest

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// Options configure a server. The zero value is a current version of ComfyUI.
type Options struct {
	// Step is the duration of a sampling step. 0: 2 ms.
	Step time.Duration
	// NoJobs leaves out the calls below /api/jobs, as versions before 0.26 do.
	NoJobs bool
	// GlobalInterrupt makes an interrupt stop the running prompt even if the
	// call names another one, as versions before September 2025 do.
	GlobalInterrupt bool
	// OwnIDs makes the server choose the id of every prompt.
	OwnIDs bool
	// MaxUpload limits the body of an upload. 0: 100 MB.
	MaxUpload int64
	// Wanted is the name and value of a header that every call must have, for
	// example for a proxy.
	Wanted [2]string
}

// Faults are the faults that the server shows. They can change at any time.
type Faults struct {
	Busy     bool   // every call answers 503
	Refuse   bool   // every prompt fails validation
	Fail     string // sampling raises this exception
	Stuck    bool   // sampling continues until it is interrupted
	Forget   bool   // a prompt is forgotten after sampling, as after a crash
	Garble   string // responses below this path are invalid JSON
	View     string // a download "breaks" off, never ends ("floods"), "drips" byte by byte, or is "missing"
	Nothing  bool   // prompts succeed without outputs
	NoStatus bool   // the status of a prompt in the history is null
	NoSocket bool   // there is no /ws
	Socket   string // sockets send "garbage", a "flood" of everything, or a "huge" message
	Deaf     bool   // calls for the queue, interrupts and jobs get no response
	// Slow is the delay before a prompt is accepted, even if its client has
	// disconnected.
	Slow time.Duration
}

// Prompt is an accepted prompt.
type Prompt struct {
	ID, ClientID string
	Graph        json.RawMessage
}

// Call is a received request.
type Call struct{ Method, Path, Body string }

// Server is a running server. Its methods may be called from any goroutine.
type Server struct {
	URL string

	o    Options
	addr string
	info map[string]classInfo

	mu      sync.Mutex
	faults  Faults
	calls   []Call
	prompts []Prompt
	sockets map[string]*socket // by client id
	open    map[*socket]bool
	files   map[string][]byte // by type/subfolder/name; they survive a restart
	counts  map[string]int    // number of saved files by name prefix
	world   *world
	life    *life
}

// life is the time between a start and a stop.
type life struct {
	server *http.Server
	stop   context.CancelFunc
	done   sync.WaitGroup
}

// Start runs a server until the test ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Step == 0 {
		o.Step = 2 * time.Millisecond
	}
	if o.MaxUpload == 0 {
		o.MaxUpload = 100 << 20
	}
	s := &Server{o: o, addr: "127.0.0.1:0", files: map[string][]byte{}, counts: map[string]int{}}
	if err := json.Unmarshal(objectInfo, &s.info); err != nil {
		t.Fatalf("object_info.json: %v", err)
	}
	if err := s.Resume(); err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Resume starts a stopped server at the same address. Only the files are kept.
func (s *Server) Resume() error {
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &life{server: &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}, stop: stop}
	s.mu.Lock()
	if s.URL == "" { // later starts keep the URL, which another goroutine may be reading
		s.addr = listener.Addr().String()
		s.URL = "http://" + s.addr
	}
	s.world = newWorld()
	s.sockets = map[string]*socket{}
	s.open = map[*socket]bool{}
	s.life = l
	w := s.world
	s.mu.Unlock()
	l.done.Go(func() { _ = l.server.Serve(listener) })
	l.done.Go(func() { s.work(ctx, w) })
	return nil
}

// Stop cuts every connection and waits until nothing runs any more. It may be
// called twice.
func (s *Server) Stop() {
	s.mu.Lock()
	l := s.life
	s.life = nil
	s.mu.Unlock()
	if l == nil {
		return
	}
	l.stop()
	l.server.Close()
	s.Hangup()
	l.done.Wait()
}

// Restart stops the server and starts it again without its state in memory.
func (s *Server) Restart() error {
	s.Stop()
	return s.Resume()
}

// Hangup closes every socket.
func (s *Server) Hangup() {
	s.mu.Lock()
	open := make([]*socket, 0, len(s.open))
	for k := range s.open {
		open = append(open, k)
	}
	s.mu.Unlock()
	for _, k := range open {
		k.conn.CloseNow()
	}
}

// Change changes the faults that the server shows from now on.
func (s *Server) Change(set func(*Faults)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set(&s.faults)
}

func (s *Server) fault() Faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults
}

// Prompts returns the accepted prompts, in order, over all restarts.
func (s *Server) Prompts() []Prompt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.prompts)
}

// Calls returns all requests so far, without the bodies of uploads.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Files returns the names of all files: type, subfolder and name.
func (s *Server) Files() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for name := range s.files {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// Idle reports whether no prompt runs or waits.
func (s *Server) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.world.current == nil && len(s.world.queue) == 0
}
