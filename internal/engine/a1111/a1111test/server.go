// Package a1111test is a stand-in for AUTOMATIC1111's web UI with --api, and
// for servers that have the same API but behave differently.
//
// The real server needs a GPU and a model of several gigabytes, so tests use
// this server. It has no model: its pictures are real files that show stripes.
// Like the original, the server processes one request at a time, for all
// clients together. An interrupt stops the current task of any client, and the
// interrupted request still ends with status 200. Tasks continue after their
// client has disconnected. Clients query the progress of a task by its name.
// Errors have the original's format. The server can simulate every fault of
// enginetest.
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

// Dialect is the server product that the stand-in imitates.
type Dialect string

// The server products that the stand-in can imitate.
const (
	A1111 Dialect = ""
	Forge Dialect = "forge" // errors have no message
	// SDNext does not treat API requests as tasks, so it can neither report
	// their progress nor interrupt them. It replaces unknown samplers.
	SDNext Dialect = "sd.next"
	// SDCpp is the server of stable-diffusion.cpp: one model, no tasks, no
	// n_iter, no upscaling, and img2img keeps the size of the picture.
	SDCpp Dialect = "sd.cpp"
)

// Options configure the stand-in server.
type Options struct {
	Dialect Dialect
	// Models are the titles of the server's models. Default: sd15 and sdxl, or
	// only sd15 for SDCpp. The server uses the first one for requests without a
	// known model.
	Models []string
	// Added are the titles of models that the server finds only when it
	// refreshes its list.
	Added []string
	// User and Password are the credentials of --api-auth. If they are empty,
	// no credentials are required.
	User, Password string
	// Takes is how long the server works on one request.
	Takes time.Duration
	// Extra is the number of pictures that the server adds after the requested
	// ones, as scripts of the web UI do.
	Extra int
	// Grid makes the server insert, before the results, one picture that shows
	// all of them.
	Grid bool
	// NoProgress imitates an older server, which cannot report the progress of
	// a single task.
	NoProgress bool
}

// Server is a running stand-in for the web UI's server.
type Server struct {
	URL string

	o       Options
	http    *httptest.Server
	closing chan struct{}
	lock    chan struct{} // a mutex: a request receives the channel's only value while it is processed

	mu          sync.Mutex
	fault       enginetest.Fault
	current     string
	pending     map[string]bool
	finished    []string
	working     bool
	interrupted bool
	step        int // number of completed steps of the current task
	interrupts  int
	models      []string
	requests    []map[string]any
}

// steps is the number of sampling steps of every task.
const steps = 20

// Start starts a server and stops it when the test ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s := &Server{o: o, closing: make(chan struct{}), lock: make(chan struct{}, 1), pending: map[string]bool{}, models: o.Models}
	if s.models == nil {
		s.models = []string{"sd15.safetensors [6ce0161689]", "xl/sdxl.safetensors [31e35c80fc]"}
	}
	if o.Models == nil && o.Dialect == SDCpp {
		s.models = []string{"sd15"}
	}
	s.lock <- struct{}{}
	s.http = httptest.NewServer(s.routes())
	s.URL = s.http.URL
	t.Cleanup(s.Stop)
	return s
}

// Stop closes all connections and makes the server unreachable.
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

// Set activates a fault. An empty fault restores normal behaviour.
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

// Current returns the name of the running task. It returns "" if no task is
// running.
func (s *Server) Current() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// Pending returns the number of tasks that wait for the running one.
func (s *Server) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending)
}

// Interrupts returns the number of interrupt requests received.
func (s *Server) Interrupts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.interrupts
}

// Requests returns the bodies of the requests that make or enlarge pictures,
// in order of arrival.
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
	if s.o.Dialect != SDCpp {
		api("POST /sdapi/v1/extra-single-image", s.work(s.enlarge))
		api("POST /sdapi/v1/interrupt", s.interrupt)
		api("POST /sdapi/v1/refresh-checkpoints", s.refresh)
	}
	api("GET /sdapi/v1/sd-models", s.listModels)
	api("GET /sdapi/v1/upscalers", func(w http.ResponseWriter, _ *http.Request) {
		list := []any{}
		for _, name := range upscalers {
			list = append(list, map[string]any{"name": name, "model_name": nil, "model_path": nil, "model_url": nil, "scale": 4})
		}
		answer(w, http.StatusOK, list)
	})
	api("GET /sdapi/v1/options", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		answer(w, http.StatusOK, map[string]any{"samples_format": "png", "sd_model_checkpoint": s.models[0]})
	})
	api("GET /sdapi/v1/samplers", func(w http.ResponseWriter, r *http.Request) {
		list := []any{}
		for _, name := range samplers {
			list = append(list, map[string]any{"name": name, "aliases": []any{}, "options": map[string]any{}})
		}
		answer(w, http.StatusOK, list)
	})
	if !s.o.NoProgress && s.o.Dialect != SDCpp {
		mux.HandleFunc("POST /internal/progress", s.progress) // not part of the API, so it needs no credentials
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.now() == enginetest.Busy { // a response that a proxy would send; the original server never sends it
			http.Error(w, "upstream is busy", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// work returns the handler of a request that makes pictures. The request waits
// until earlier ones are done, and is processed to the end even if the client
// has disconnected.
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
		if name, ok := body["sampler_name"].(string); ok && !slices.Contains(samplers, name) && s.o.Dialect == A1111 || f == enginetest.Refuses {
			complain(w, http.StatusNotFound, "HTTPException", "Sampler not found", "")
			return
		}
		if f == enginetest.Garbles {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>Gradio</html>")
			return
		}
		name, _ := body["force_task_id"].(string)
		if s.o.Dialect == SDNext {
			name = "" // SD.Next treats only requests of its web page as tasks
		}
		whole, ok := s.turn(r, name)
		if !ok {
			return
		}
		if f == enginetest.Fails && s.o.Dialect == Forge {
			http.Error(w, "Internal Server Error", http.StatusInternalServerError)
			return
		}
		if f == enginetest.Fails {
			complain(w, http.StatusInternalServerError, "OutOfMemoryError", "", "CUDA out of memory. Tried to allocate 8.00 GiB (GPU 0; see /opt/webui/log)")
			return
		}
		do(w, r, body, whole)
	}
}

// turn waits until no other request is processed, and then processes r. whole
// is false if the work was interrupted; ok is false if the server stopped or
// lost the task.
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

// steps counts the steps of a task until the task is complete or interrupted.
// If stuck is true, the task stops half-way and never completes by itself.
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

// lose imitates a server that works for 100 ms and then forgets the task. The
// connection stays open, as it does when a server behind a proxy restarts.
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

// interrupt stops the running task, even if another client started it.
func (s *Server) interrupt(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.interrupted = true
	s.interrupts++
	s.mu.Unlock()
	answer(w, http.StatusOK, map[string]any{})
}

// progress handles requests for the progress of one task.
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
	if s.o.Dialect == SDNext {
		out["progress"] = float64(step) / steps // progress of the running task, even if the client queried another one
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

// complain sends an error response in AUTOMATIC1111's format.
func complain(w http.ResponseWriter, status int, kind, detail, errors string) {
	answer(w, status, map[string]any{"error": kind, "detail": detail, "body": "", "errors": errors})
}
