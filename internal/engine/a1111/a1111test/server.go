// Package a1111test is a stand-in for AUTOMATIC1111's web UI with --api.
//
// The real one wants a GPU and a model of some gigabytes, so tests have this
// one. It is no model: its pictures are real files that show stripes. What
// matters to an engine follows the original's source: one lock for everybody,
// an interruption that hits whoever is at work and still answers 200, callers
// that go away without anything being stopped, tasks that can be asked after by
// name, and errors in its form. It goes wrong in every way that enginetest
// knows of.
package a1111test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"atelier/internal/engine/enginetest"
)

// Options are how a server behaves.
type Options struct {
	// User and Password are those of --api-auth; "" lets everybody in.
	User, Password string
	// Takes is how long a call works.
	Takes time.Duration
	// Extra is how many pictures a script adds after those that were asked for.
	Extra int
	// Grid puts one picture of all before them.
	Grid bool
	// NoProgress is an older server, which cannot be asked after a task.
	NoProgress bool
}

// Server is a running server.
type Server struct {
	URL string

	o       Options
	http    *httptest.Server
	closing chan struct{}
	lock    chan struct{} // holds one: whoever has taken it works

	mu          sync.Mutex
	fault       enginetest.Fault
	current     string
	pending     map[string]bool
	finished    []string
	working     bool
	interrupted bool
	step        int // of those that a task has
	interrupts  int
	requests    []map[string]any
}

// steps are what a task is made of.
const steps = 20

// Start runs a server until the test ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s := &Server{o: o, closing: make(chan struct{}), lock: make(chan struct{}, 1), pending: map[string]bool{}}
	s.lock <- struct{}{}
	s.http = httptest.NewServer(s.routes())
	s.URL = s.http.URL
	t.Cleanup(s.Stop)
	return s
}

// Stop has nobody reach the server any more.
func (s *Server) Stop() {
	s.mu.Lock()
	select {
	case <-s.closing:
		s.mu.Unlock()
		return
	default:
		close(s.closing)
	}
	s.mu.Unlock()
	s.http.CloseClientConnections()
	s.http.Close()
}

// Set has the server go wrong from now on; "" ends that.
func (s *Server) Set(f enginetest.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Working tells whether the server is at work.
func (s *Server) Working() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.working
}

// Current is the task that the server works on, "" for none.
func (s *Server) Current() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// Pending is how many tasks wait.
func (s *Server) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending)
}

// Interrupts is how often somebody interrupted the server.
func (s *Server) Interrupts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.interrupts
}

// Requests are the bodies of the calls that do work, in order.
func (s *Server) Requests() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Server) now() enginetest.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	api := func(pattern string, do http.HandlerFunc) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			user, password, _ := r.BasicAuth()
			if s.o.User != "" && (user != s.o.User || password != s.o.Password) {
				w.Header().Set("WWW-Authenticate", "Basic")
				complain(w, http.StatusUnauthorized, "HTTPException", "Incorrect username or password", "")
				return
			}
			do(w, r)
		})
	}
	api("POST /sdapi/v1/txt2img", s.work(s.draw))
	api("POST /sdapi/v1/img2img", s.work(s.draw))
	api("POST /sdapi/v1/extra-single-image", s.work(s.enlarge))
	api("POST /sdapi/v1/interrupt", s.interrupt)
	api("GET /sdapi/v1/samplers", func(w http.ResponseWriter, r *http.Request) {
		list := []any{}
		for _, name := range samplers {
			list = append(list, map[string]any{"name": name, "aliases": []any{}, "options": map[string]any{}})
		}
		answer(w, http.StatusOK, list)
	})
	if !s.o.NoProgress {
		mux.HandleFunc("POST /internal/progress", s.progress) // not part of the API, so without its credentials
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.now() == enginetest.Busy { // the server has no such answer; what stands before it does
			http.Error(w, "upstream is busy", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// work is a call that does something. It takes its turn and its time whether
// the caller is still there or not.
func (s *Server) work(do func(http.ResponseWriter, *http.Request, map[string]any, bool)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 256<<20)); err != nil || json.Unmarshal(b, &body) != nil {
			answer(w, http.StatusUnprocessableEntity, map[string]any{"detail": []any{map[string]any{"loc": []any{"body"}, "msg": "field required", "type": "value_error.missing"}}})
			return
		}
		s.mu.Lock()
		s.requests = append(s.requests, body)
		f := s.fault
		s.mu.Unlock()
		if name, ok := body["sampler_name"].(string); ok && !slices.Contains(samplers, name) || f == enginetest.Refuses {
			complain(w, http.StatusNotFound, "HTTPException", "Sampler not found", "")
			return
		}
		if f == enginetest.Garbles {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>Gradio</html>")
			return
		}
		name, _ := body["force_task_id"].(string)
		whole, ok := s.turn(r, name)
		if !ok {
			return
		}
		if f == enginetest.Fails {
			complain(w, http.StatusInternalServerError, "OutOfMemoryError", "", "CUDA out of memory. Tried to allocate 8.00 GiB (GPU 0; see /opt/webui/log)")
			return
		}
		do(w, r, body, whole)
	}
}

// turn waits for the lock and works. whole is false where somebody interrupted
// it, ok where the server ended or lost the call.
func (s *Server) turn(r *http.Request, name string) (whole, ok bool) {
	if name != "" {
		s.mu.Lock()
		s.pending[name] = true
		s.mu.Unlock()
	}
	select {
	case <-s.lock:
	case <-s.closing:
		return false, false
	}
	defer func() { s.lock <- struct{}{} }()
	s.mu.Lock()
	delete(s.pending, name)
	s.current = name
	s.working = true
	s.interrupted = false
	s.step = 0
	f := s.fault
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.current, s.working = "", false; name != "" && s.fault != enginetest.Loses {
			s.finished = append(s.finished, name)
		}
	}()
	switch f {
	case enginetest.Restarts:
		s.Set("")
		panic(http.ErrAbortHandler)
	case enginetest.Loses:
		s.lose(r)
		return false, false
	}
	return s.steps(f == enginetest.Hangs || f == enginetest.TimeIsUp)
}

// steps works, for ever where it is stuck, until it is interrupted.
func (s *Server) steps(stuck bool) (whole, ok bool) {
	tick := time.NewTicker(max(s.o.Takes/steps, time.Millisecond))
	defer tick.Stop()
	for {
		s.mu.Lock()
		step := s.step
		interrupted := s.interrupted
		if !stuck || step < steps/2 {
			s.step++
		}
		s.mu.Unlock()
		if interrupted {
			return false, true
		}
		if step >= steps || s.o.Takes == 0 && !stuck {
			return true, true
		}
		select {
		case <-tick.C:
		case <-s.closing:
			return false, false
		}
	}
}

// lose works a moment, and then knows nothing of the task while the connection
// stays, as after a restart behind a proxy.
func (s *Server) lose(r *http.Request) {
	for range 10 {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-s.closing:
			return
		}
	}
	s.mu.Lock()
	s.current = ""
	s.working = false
	s.mu.Unlock()
	select {
	case <-r.Context().Done():
	case <-s.closing:
	}
}

// interrupt stops whatever runs, whoever it is for.
func (s *Server) interrupt(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.interrupted = true
	s.interrupts++
	s.mu.Unlock()
	answer(w, http.StatusOK, map[string]any{})
}

// progress tells about one task.
func (s *Server) progress(w http.ResponseWriter, r *http.Request) {
	var q struct {
		ID      string `json:"id_task"`
		Preview *bool  `json:"live_preview"`
		Before  int    `json:"id_live_preview"`
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		answer(w, http.StatusUnprocessableEntity, map[string]any{"detail": []any{}})
		return
	}
	s.mu.Lock()
	active := q.ID != "" && q.ID == s.current
	queued := s.pending[q.ID]
	finished := slices.Contains(s.finished, q.ID)
	step := s.step
	s.mu.Unlock()
	out := map[string]any{
		"active": active, "queued": queued, "completed": finished, "progress": nil, "eta": nil,
		"live_preview": nil, "id_live_preview": -1, "textinfo": "Waiting...",
	}
	if active {
		out["progress"] = float64(step) / steps
		out["textinfo"] = nil
		out["id_live_preview"] = q.Before
		if id := step / 5; id != q.Before && step > 0 && (q.Preview == nil || *q.Preview) {
			out["live_preview"] = "data:image/png;base64," + encoded(enginetest.StripedPNG(32, 32, fmt.Sprint("preview ", step)))
			out["id_live_preview"] = id
		}
	}
	answer(w, http.StatusOK, out)
}

func answer(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(b)
}

// complain answers with an error in the server's form.
func complain(w http.ResponseWriter, status int, kind, detail, errors string) {
	answer(w, status, map[string]any{"error": kind, "detail": detail, "body": "", "errors": errors})
}
