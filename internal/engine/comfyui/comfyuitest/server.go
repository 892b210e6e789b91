// Package comfyuitest is a stand-in for a ComfyUI server: its API endpoints,
// its queue with one worker, its history, its WebSockets, uploads and files,
// and two dozen of its node classes. The real server cannot be a dependency of
// Go code, and needs a GPU. This server has the same protocol, quirks included,
// and computes its pictures without a model: the saved files depend on the
// seed, the prompts and the other inputs.
//
// Tests of several packages use it. It simulates faults on request.
package comfyuitest

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Options configure a server. The zero value imitates a current version of
// ComfyUI.
type Options struct {
	// Step is the duration of a sampling step. Default: 2 ms.
	Step time.Duration
	// NoJobs leaves out the endpoints below /api/jobs, as versions before 0.26
	// do.
	NoJobs bool
	// GlobalInterrupt makes an interrupt stop the running prompt even if the
	// request names another one, as versions before September 2025 do.
	GlobalInterrupt bool
	// OwnIDs makes the server ignore the prompt ids of clients and choose its
	// own.
	OwnIDs bool
	// MaxUpload is the maximum size of an upload's body, in bytes. Default:
	// 100 MiB.
	MaxUpload int64
	// CachedPrompts is the number of prompts whose results stay in the cache,
	// as with the option --cache-lru of the real server. Default: 1, the last
	// prompt, as with the real server's default caches.
	CachedPrompts int
	// Previews makes the server send previews of every prompt, as if it was
	// started with a preview method. Otherwise it sends them only for prompts
	// that request them.
	Previews bool
	// Wanted is the name and value of a header that every request must have,
	// as if a proxy required it.
	Wanted [2]string
}

// Faults are the faults that the server simulates. They can be changed at any
// time.
type Faults struct {
	Busy     bool   // every request gets status 503
	Refuse   bool   // every prompt fails validation
	Fail     string // if not empty, sampling fails with this exception
	Stuck    bool   // sampling continues until it is interrupted
	Paused   bool   // sampling waits until this is false again
	Forget   bool   // the server forgets a prompt while sampling, as after a crash
	Garble   string // responses below this path are invalid JSON
	View     string // a download "breaks" off, "floods" the client without end, "drips" byte by byte, or is "missing"
	Nothing  bool   // prompts succeed without outputs
	NoStatus bool   // the status of a prompt in the history is null
	NoSocket bool   // the server has no WebSocket endpoint /ws
	Socket   string // WebSockets send "garbage", a "flood" of messages, or a "huge" message
	// Stale is the number of further prompts that get cached results even if
	// file name prefixes, or inputs that a node class does not define, have
	// changed.
	Stale int
	Deaf  bool // requests to the queue, interrupt and jobs endpoints get no response
	// Slow is the delay before a prompt is accepted. The prompt is accepted
	// even if its client disconnects during the delay.
	Slow time.Duration
}

// Prompt is a prompt that the server has accepted.
type Prompt struct {
	ID, ClientID string
	Graph        json.RawMessage
	ExtraData    json.RawMessage
}

// Call is an HTTP request that the server has received.
type Call struct{ Method, Path, Body string }

// Server is a running stand-in for a ComfyUI server. It is safe for concurrent
// use.
type Server struct {
	URL string

	o    Options
	addr string
	info map[string]classInfo

	mu      sync.Mutex
	faults  Faults
	calls   []Call
	prompts []Prompt
	sockets map[string]*socket // open WebSockets, by client id
	open    map[*socket]bool
	files   map[string][]byte // content of files by type/subfolder/name; files survive a restart
	memory  *memory
	life    *life
}

// life is the state of the server between a start and a stop.
type life struct {
	server *http.Server
	stop   context.CancelFunc
	done   sync.WaitGroup
}

// Start starts a server and stops it when the test ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Step == 0 {
		o.Step = 2 * time.Millisecond
	}
	if o.MaxUpload == 0 {
		o.MaxUpload = 100 << 20
	}
	if o.CachedPrompts == 0 {
		o.CachedPrompts = 1
	}
	s := &Server{o: o, addr: "127.0.0.1:0", files: map[string][]byte{}}
	if err := json.Unmarshal(objectInfo, &s.info); err != nil {
		t.Fatalf("object_info.json: %v", err)
	}
	if err := s.Resume(); err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Resume starts a stopped server at the same URL. It keeps only its files.
func (s *Server) Resume() error {
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &life{server: &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}, stop: stop}
	s.mu.Lock()
	if s.URL == "" { // set only at the first start, because another goroutine may be reading it later
		s.addr = listener.Addr().String()
		s.URL = "http://" + s.addr
	}
	s.memory = newMemory()
	s.sockets = map[string]*socket{}
	s.open = map[*socket]bool{}
	s.life = l
	w := s.memory
	s.mu.Unlock()
	l.done.Go(func() { _ = l.server.Serve(listener) })
	l.done.Go(func() { s.work(ctx, w) })
	return nil
}

// Stop closes every connection and waits until all goroutines have ended. It
// may be called twice.
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

// Restart stops the server and starts it again. The queue, the history and the
// cache are lost.
func (s *Server) Restart() error {
	s.Stop()
	return s.Resume()
}

// Hangup closes every WebSocket.
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

// Change changes the faults that the server simulates, by calling set.
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

// Prompts returns the accepted prompts, in order, including prompts before a
// restart.
func (s *Server) Prompts() []Prompt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.prompts)
}

// Calls returns all requests received so far, without the bodies of uploads.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Files returns the sorted names of all files, in the form
// type/subfolder/name.
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

// EmptyOutputs deletes all saved files, as an operator whose disk is full would
// do. The server then numbers new files from 1 again.
func (s *Server) EmptyOutputs() {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.files, func(name string, _ []byte) bool { return strings.HasPrefix(name, "output/") })
}

// Waiting returns the ids of the prompts that wait, in the order in which they
// will run.
func (s *Server) Waiting() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for _, p := range s.memory.queue {
		ids = append(ids, p.id)
	}
	return ids
}

// Idle reports whether no prompt is running or waiting.
func (s *Server) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory.current == nil && len(s.memory.queue) == 0
}
