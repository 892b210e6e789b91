// Package openaitest is a stand-in for servers with OpenAI's API for media:
// OpenAI itself, vLLM-Omni, SGLang, LocalAI and stable-diffusion.cpp, each with
// its deviations.
//
// The real servers need a contract with the provider or a large GPU, so tests
// use this server. It has no model: pictures, sounds and videos are real files
// without meaningful content. Accepted parameters, refusals and responses
// follow the documentation and source code of the servers, and a test with
// OpenAI's own client for Node.js verifies them. The server can simulate every
// fault of enginetest.
package openaitest

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/engine/enginetest"
)

// Dialect is the server product that the stand-in imitates.
type Dialect string

// The server products that the stand-in can imitate.
const (
	OpenAI   Dialect = "openai"    // the hosted API: refuses unknown parameters, returns base64, supports streams
	VLLMOmni Dialect = "vllm-omni" // returns errors as {"detail"}, supports seeds, accepts video requests only as forms
	// SGLang lists task types of models. Edited pictures are downloaded from
	// the server. JSON requests contain pictures as strings, and deleting a
	// video does not stop its work.
	SGLang Dialect = "sglang"
	// LocalAI lets clients download all results from the server. It splits
	// prompts at a vertical bar, uses one seed for all pictures of a request,
	// refuses large seeds and blocks requests to /video until the video is done.
	LocalAI Dialect = "localai"
	// SDCpp is the server of stable-diffusion.cpp, which uses the seed 42 for
	// every request, ignores most parameters, and reads parameters in a prompt.
	SDCpp Dialect = "sd.cpp"
)

// Options configure the stand-in server.
type Options struct {
	Dialect Dialect // default: OpenAI
	// Key is the required API key. If it is empty, no key is required.
	Key string
	// Models are the models of the server. If Models is nil, the server has
	// typical models of the dialect.
	Models []string
	// Takes is how long the server works on a blocking request.
	Takes time.Duration
	// Polls is the number of polls after which a video is done. Default: 3.
	Polls int
	// Queue is the number of polls for which a video waits in the server's
	// queue before the server works on it.
	Queue int
	// Elsewhere makes another host serve the results, as with OpenAI's older
	// models and with SGLang's cloud storage.
	Elsewhere bool
	// Most is the maximum number of results per request, even if more are
	// requested. 0 means no limit.
	Most int
}

// Server is a running stand-in server.
type Server struct {
	// URL is the base URL of the API. It ends with /v1.
	URL string

	o       Options
	main    *httptest.Server
	store   *httptest.Server // the second host, which serves results
	closing chan struct{}

	mu       sync.Mutex
	fault    enginetest.Fault
	working  int
	count    int
	videos   map[string]*video
	deleted  []string        // ids of deleted videos
	stray    int             // number of deleted videos that the server still works on
	files    map[string]file // files for download, by path
	requests []Request
	visits   []http.Header // headers of the requests to the second host
}

// Request is an HTTP request that the server has received.
type Request struct {
	Method, Path string
	Header       http.Header
	Values       map[string]any      // parameters in the body
	Files        map[string][]string // names of uploaded files, by parameter
}

type file struct {
	kind string
	data []byte
}

// Start starts a server and stops it when the test ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Dialect == "" {
		o.Dialect = OpenAI
	}
	if o.Polls == 0 {
		o.Polls = 3
	}
	if o.Models == nil {
		o.Models = models[o.Dialect]
	}
	s := &Server{o: o, closing: make(chan struct{}), videos: map[string]*video{}, files: map[string]file{}}
	s.main = httptest.NewServer(s.routes())
	s.store = httptest.NewServer(http.HandlerFunc(s.elsewhere))
	s.URL = s.main.URL + "/v1"
	t.Cleanup(s.Stop)
	return s
}

var models = map[Dialect][]string{
	OpenAI:   {"gpt-image-1", "dall-e-3", "gpt-4o-mini-tts", "tts-1", "sora-2"},
	VLLMOmni: {"Qwen/Qwen-Image"},
	SGLang:   {"Wan-AI/Wan2.1-T2V-1.3B-Diffusers"},
	LocalAI:  {"flux.1-schnell", "kokoro", "ltx-video"},
	SDCpp:    {"sd-cpp-local"},
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
	for _, one := range []*httptest.Server{s.main, s.store} {
		one.CloseClientConnections()
		one.Close()
	}
}

// Set activates a fault. An empty fault restores normal behaviour.
func (s *Server) Set(f enginetest.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Forget imitates a restart of the server: videos and files are lost.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.videos)
	clear(s.files)
}

// Working returns the number of requests and videos in progress.
func (s *Server) Working() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.working + s.stray
	for _, v := range s.videos {
		if v.status == "queued" || v.status == "in_progress" {
			n++
		}
	}
	return n
}

// Deleted returns the ids of deleted videos, in order.
func (s *Server) Deleted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.deleted)
}

// Requests returns the requests received so far, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Visits returns the headers of the requests to the second host, which serves
// results.
func (s *Server) Visits() []http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.visits)
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", s.listModels)
	mux.HandleFunc("POST /v1/images/generations", s.work(s.generate))
	if s.o.Dialect != LocalAI {
		mux.HandleFunc("POST /v1/images/edits", s.work(s.edit))
	}
	if s.o.Dialect != SDCpp {
		mux.HandleFunc("POST /v1/audio/speech", s.work(s.speak))
	}
	switch s.o.Dialect {
	case SDCpp:
		mux.HandleFunc("GET /sdcpp/v1/capabilities", func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusOK, map[string]any{"supported_modes": []any{"img_gen"}})
		})
	case LocalAI:
		mux.HandleFunc("POST /video", s.work(s.videoSync))
		mux.HandleFunc("GET /system", func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusOK, map[string]any{"backends": []any{"stablediffusion-ggml"}, "loaded_models": []any{}})
		})
	default:
		mux.HandleFunc("POST /v1/videos", s.work(s.createVideo))
		mux.HandleFunc("GET /v1/videos/{id}", s.getVideo)
		mux.HandleFunc("GET /v1/videos/{id}/content", s.videoContent)
		mux.HandleFunc("DELETE /v1/videos/{id}", s.deleteVideo)
	}
	mux.HandleFunc("GET /", s.getFile)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.knows(r) {
			s.complain(w, http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided.")
			return
		}
		if s.now() == enginetest.Busy {
			w.Header().Set("Retry-After", "1")
			if s.o.Dialect == LocalAI {
				answer(w, http.StatusTooManyRequests, map[string]any{"error": map[string]any{"message": "quota exceeded", "type": "quota_exceeded", "code": 429}})
				return
			}
			s.complain(w, http.StatusTooManyRequests, "rate_limit_exceeded", "Too many requests.")
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (s *Server) knows(r *http.Request) bool {
	return s.o.Key == "" || subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+s.o.Key)) == 1
}

func (s *Server) now() enginetest.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

func (s *Server) listModels(w http.ResponseWriter, r *http.Request) {
	list := []map[string]any{}
	for _, id := range s.o.Models {
		m := map[string]any{"id": id, "object": "model", "created": made, "owned_by": "system"}
		if s.o.Dialect == SGLang {
			m["task_type"] = task(id)
		}
		list = append(list, m)
	}
	answer(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}

func task(model string) string {
	for _, kind := range []string{"I2V", "T2V"} {
		if strings.Contains(model, kind) {
			return kind
		}
	}
	if strings.Contains(model, "Edit") {
		return "TI2I"
	}
	return "T2I"
}

// made is the creation time in all responses, in Unix seconds. No test depends
// on it.
const made = 1_760_000_000

// work returns the handler of a request that makes media. It records the
// request, waits for the configured duration, and applies the active fault.
func (s *Server) work(do func(http.ResponseWriter, *http.Request, Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q, err := read(r)
		if err != nil {
			s.complain(w, http.StatusBadRequest, "invalid_body", err.Error())
			return
		}
		s.mu.Lock()
		s.requests = append(s.requests, q)
		s.working++
		f := s.fault
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			s.working--
			s.mu.Unlock()
		}()
		video := r.URL.Path == "/v1/videos" // faults of a video apply later, when it is polled
		switch {
		case f == enginetest.Refuses:
			s.complain(w, http.StatusBadRequest, "moderation_blocked", "Your request was rejected by the safety system.")
			return
		case f == enginetest.Fails && !video:
			s.complain(w, http.StatusInternalServerError, "server_error", "CUDA error in /opt/models/run.py on http://10.0.0.7:8091/.")
			return
		case f == enginetest.Garbles:
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>Welcome to the coffee machine</html>")
			return
		case f == enginetest.Loses && !video:
			panic(http.ErrAbortHandler)
		case f == enginetest.Restarts && !video:
			s.restart()
		case (f == enginetest.Hangs || f == enginetest.TimeIsUp) && !video:
			s.wait(r, time.Hour)
			return
		}
		if s.wait(r, s.o.Takes) {
			do(w, r, q)
		}
	}
}

// restart imitates a restart of the server: all state is lost and the
// connection of the current request is closed.
func (s *Server) restart() {
	s.Forget()
	s.Set("")
	panic(http.ErrAbortHandler)
}

// wait waits for d. It returns false if the client disconnects or the server
// stops first.
func (s *Server) wait(r *http.Request, d time.Duration) bool {
	if d == 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
	case <-s.closing:
	}
	return false
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

// complain sends an error response in the dialect's format.
func (s *Server) complain(w http.ResponseWriter, status int, code, message string) {
	if s.o.Dialect == VLLMOmni && code != "moderation_blocked" {
		answer(w, status, map[string]any{"detail": message})
		return
	}
	answer(w, status, map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error", "param": nil, "code": code}})
}
