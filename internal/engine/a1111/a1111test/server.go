// Package a1111test is a stand-in for AUTOMATIC1111's web UI with --api.
//
// The real server needs a GPU and a model of several gigabytes, so tests use
// this server. It has no model: its pictures are real files that show stripes.
// The behaviour that matters to an engine follows the source of the original: a
// single lock for all callers; an interrupt that stops the current task, of any
// caller, and whose call still answers 200; tasks that continue after their
// caller has disconnected; progress of a task by its name; and the original's
// form of errors. The server can show every fault of enginetest.
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

// Options configure a server.
type Options struct {
	// User and Password are the credentials of --api-auth. "": no credentials
	// are required.
	User, Password string
	// Takes is the duration of a call's work.
	Takes time.Duration
	// Extra is the number of pictures that a script adds after the requested
	// ones.
	Extra int
	// Grid adds a picture of all results before the results.
	Grid bool
	// NoProgress imitates an older server, which has no progress of single
	// tasks.
	NoProgress bool
}

// Server is a running server.
type Server struct {
	URL string

	o       Options
	http    *httptest.Server
	closing chan struct{}
	lock    chan struct{} // holds one token; the call that has taken it works

	mu          sync.Mutex
	fault       enginetest.Fault
	current     string
	pending     map[string]bool
	finished    []string
	working     bool
	interrupted bool
	step        int // completed steps of the current task
	interrupts  int
	requests    []map[string]any
}

// steps is the number of steps of a task.
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

// Stop makes the server unreachable.
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

// Set activates a fault; "" ends the active one.
func (s *Server) Set(f enginetest.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Working reports whether a task is running.
func (s *Server) Working() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.working
}

// Current returns the running task, "" for none.
func (s *Server) Current() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// Pending returns the number of waiting tasks.
func (s *Server) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending)
}

// Interrupts returns the number of interrupt calls.
func (s *Server) Interrupts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.interrupts
}

// Requests returns the bodies of the calls that do work, in order.
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
		mux.HandleFunc("POST /internal/progress", s.progress) // not part of the API, so it needs no credentials
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.now() == enginetest.Busy { // the response of a proxy; the server itself has none like it
			http.Error(w, "upstream is busy", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// work returns the handler of a call that does work. The call waits for its
// turn and works to the end even if the caller has disconnected.
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

// turn waits for the lock and works. whole is false if the work was
// interrupted; ok is false if the server stopped or lost the call.
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

// steps works through the steps of a task until it is interrupted. With stuck
// it never finishes by itself.
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

// lose works for a moment and then forgets the task. The connection stays open,
// as after a restart behind a proxy.
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

// interrupt stops the running task, of any caller.
func (s *Server) interrupt(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.interrupted = true
	s.interrupts++
	s.mu.Unlock()
	answer(w, http.StatusOK, map[string]any{})
}

// progress returns the progress of one task.
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

// complain sends an error in the original's form.
func complain(w http.ResponseWriter, status int, kind, detail, errors string) {
	answer(w, status, map[string]any{"error": kind, "detail": detail, "body": "", "errors": errors})
}
