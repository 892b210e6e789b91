package faltest

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"atelier/internal/engine/enginetest"
)

// The model endpoints of the stand-in server.
const (
	Painter = "fal-ai/painter/dev" // returns pictures
	Writer  = "fal-ai/writer"      // returns text
	Film    = "fal-ai/film"        // returns a video and a thumbnail of it
)

// app returns an endpoint without its sub-path, such as fal-ai/painter for
// fal-ai/painter/dev.
func app(endpoint string) string {
	return strings.Join(strings.SplitN(endpoint, "/", 3)[:2], "/")
}

// known wraps a handler so that requests without the API key get status 401.
func (s *Server) known(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Key "+s.Key && !strings.HasPrefix(r.URL.Path, "/files/") {
			s.reply(w, http.StatusUnauthorized, map[string]any{"detail": "Authentication is required to access this application."})
			return
		}
		h.ServeHTTP(w, r)
	})
}

func (s *Server) reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	if s.IsActive(Garbles) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		io.WriteString(w, "<html><body>Just a moment…</body></html>")
		return
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // an error is ignored, because the client may have disconnected
}

func (s *Server) queue(own bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{owner}/{alias}/requests/{id}/status", s.look)
	mux.HandleFunc("GET /{owner}/{alias}/requests/{id}", s.result)
	mux.HandleFunc("PUT /{owner}/{alias}/requests/{id}/cancel", s.cancel)
	mux.HandleFunc("POST /", s.create)
	if own {
		mux.HandleFunc("GET /files/{id}/{name}", s.deliver)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { // handles paths that do not exist, such as the status of a request below an endpoint's sub-path
		s.reply(w, http.StatusMethodNotAllowed, map[string]any{"detail": "Method Not Allowed"})
	})
	return mux
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	endpoint := strings.Trim(r.URL.Path, "/")
	input := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&input); err != nil {
		s.reply(w, http.StatusUnprocessableEntity, map[string]any{"detail": detail("JSON decode error", "json_invalid", "body")})
		return
	}
	if !slices.Contains([]string{Painter, Writer, Film}, endpoint) {
		s.reply(w, http.StatusNotFound, map[string]any{"detail": fmt.Sprintf("Application %q not found", endpoint)})
		return
	}
	if limit := r.Header.Get("X-Fal-Request-Timeout"); limit != "" {
		if n, err := strconv.ParseFloat(limit, 64); err != nil || n <= 1 {
			s.reply(w, http.StatusBadRequest, map[string]any{"detail": "Invalid timeout", "error_type": "bad_request"})
			return
		}
	}
	switch {
	case s.IsActive(Swallows):
		enginetest.DropConnection(w, r)
	case s.IsActive(Busy):
		s.reply(w, http.StatusTooManyRequests, map[string]any{"detail": "Too many requests"})
		return
	case s.IsActive(Locked):
		s.reply(w, http.StatusForbidden, map[string]any{"detail": "User is locked. Reason: Exhausted balance. Top up your balance at fal.ai/dashboard/billing."})
		return
	}
	one := s.add(endpoint, input, r.Header)
	switch {
	case s.IsActive(Drops):
		enginetest.DropConnection(w, r)
	case s.IsActive(Stalls):
		s.hang(r.Context())
		return
	case s.IsActive(Ill):
		s.reply(w, http.StatusServiceUnavailable, map[string]any{"detail": "Service Unavailable"})
		return
	}
	base := s.URL
	if s.IsActive(Strays) {
		base = s.host
	}
	s.reply(w, http.StatusOK, s.about(one, base))
}

// add adds a request to the queue and returns it.
func (s *Server) add(endpoint string, input map[string]any, h http.Header) *request {
	id := strings.ToLower(rand.Text())
	one := &request{
		id:       fmt.Sprintf("%s-%s-4%s-8%s-%s", id[:8], id[8:12], id[12:15], id[15:18], id[14:26]),
		app:      app(endpoint),
		endpoint: endpoint,
		input:    input,
		created:  time.Now(),
	}
	for _, f := range []Fault{Refuses, Flags, Blackens, Fails, Interrupts, Fewer} {
		if s.IsActive(f) {
			one.fault = f
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range input {
		if ref, ok := v.(string); ok && (strings.HasPrefix(ref, "data:") || strings.HasPrefix(ref, "http")) && !s.readable(ref) {
			one.fault = Refuses // a model that cannot load its input file refuses the request
		}
	}
	s.creates++
	s.headers = append(s.headers, h.Clone())
	s.requests = append(s.requests, one)
	return one
}

// about returns the JSON of the queue's response about a request.
func (s *Server) about(r *request, base string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := base + "/" + r.app + "/requests/" + r.id
	all := map[string]any{
		"status": r.status(s.takes), "request_id": r.id, "response_url": at, "status_url": at + "/status", "cancel_url": at + "/cancel",
	}
	switch all["status"] {
	case "IN_QUEUE":
		all["queue_position"] = s.ahead
	case "COMPLETED":
		all["metrics"] = map[string]any{"inference_time": s.takes.Seconds()}
		if status, body := r.answer(s.host); status != http.StatusOK {
			all["error"] = body["detail"]
			all["error_type"] = body["error_type"]
			if _, flat := body["detail"].(string); !flat {
				all["error"] = "The request failed"
			}
		}
	}
	return all
}

// find returns the request in the queue that the URL refers to. If there is
// none, it sends a 404 response and returns nil.
func (s *Server) find(w http.ResponseWriter, r *http.Request) *request {
	s.mu.Lock()
	var one *request
	for _, q := range s.requests {
		if q.id == r.PathValue("id") && q.app == r.PathValue("owner")+"/"+r.PathValue("alias") {
			one = q
		}
	}
	s.mu.Unlock()
	if one == nil || s.IsActive(Loses) {
		s.reply(w, http.StatusNotFound, map[string]any{"detail": "Request not found", "status": "NOT_FOUND"})
		return nil
	}
	return one
}

func (s *Server) look(w http.ResponseWriter, r *http.Request) {
	switch {
	case s.IsActive(Hangs):
		s.hang(r.Context())
		return
	case s.IsActive(Hiccups):
		s.reply(w, http.StatusBadGateway, map[string]any{})
		return
	}
	one := s.find(w, r)
	if one == nil {
		return
	}
	answer := s.about(one, s.URL)
	status := http.StatusAccepted
	if answer["status"] == "COMPLETED" {
		status = http.StatusOK
	}
	if answer["status"] != "IN_QUEUE" && r.URL.Query().Get("logs") == "1" {
		s.mu.Lock()
		answer["logs"] = one.logs(s.takes)
		s.mu.Unlock()
	}
	s.reply(w, status, answer)
}

func (s *Server) result(w http.ResponseWriter, r *http.Request) {
	one := s.find(w, r)
	if one == nil {
		return
	}
	s.mu.Lock()
	done := one.status(s.takes) == "COMPLETED"
	status, answer := one.answer(s.host)
	s.mu.Unlock()
	if !done {
		status = http.StatusBadRequest
		answer = map[string]any{"detail": "Request is still in progress"}
	}
	w.Header().Set("X-Fal-Request-Id", one.id)
	if kind, ok := answer["error_type"].(string); ok {
		w.Header().Set("X-Fal-Error-Type", kind)
	}
	s.reply(w, status, answer)
}

func (s *Server) cancel(w http.ResponseWriter, r *http.Request) {
	one := s.find(w, r)
	if one == nil {
		return
	}
	s.mu.Lock()
	status, word := one.cancel(s.takes)
	s.mu.Unlock()
	s.reply(w, status, map[string]any{"status": word})
}

// storage serves fal's storage API, which returns URLs for uploads.
func (s *Server) storage() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /storage/upload/initiate", func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			ContentType string `json:"content_type"`
			FileName    string `json:"file_name"`
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.ContentType == "" || asked.FileName == "" || r.URL.Query().Get("storage_type") != "fal-cdn-v3" {
			s.reply(w, http.StatusUnprocessableEntity, map[string]any{"detail": detail("Field required", "missing", "body")})
			return
		}
		at := s.host + "/uploads/" + rand.Text()
		s.reply(w, http.StatusOK, map[string]any{"upload_url": at + "?signature=x", "file_url": at})
	})
	return mux
}

// files serves results and uploads. Requests need no API key.
func (s *Server) files() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /files/{id}/{name}", s.deliver)
	mux.HandleFunc("PUT /uploads/{id}", func(w http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Query().Get("signature") != "x" {
			s.reply(w, http.StatusForbidden, map[string]any{"detail": "Forbidden"})
			return
		}
		s.mu.Lock()
		s.uploads[r.PathValue("id")] = content
		s.mu.Unlock()
		s.reply(w, http.StatusOK, map[string]any{})
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			s.mu.Lock()
			s.leaks++
			s.mu.Unlock()
		}
		mux.ServeHTTP(w, r)
	})
}

func (s *Server) deliver(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	i := slices.IndexFunc(s.requests, func(q *request) bool { return q.id == r.PathValue("id") })
	if i < 0 {
		s.mu.Unlock()
		http.NotFound(w, r)
		return
	}
	name := r.PathValue("name")
	number, _ := strconv.Atoi(strings.TrimSuffix(name, ".png")) // the thumbnail of a video has number 0
	content := picture(s.requests[i].input, number)
	s.mu.Unlock()
	if strings.HasSuffix(name, ".mp4") {
		content = []byte("a film")
	}
	switch {
	case s.IsActive(Breaks):
		enginetest.SendTruncated(w, content)
	case s.IsActive(Floods):
		enginetest.SendEndless(w, r, "")
	case s.IsActive(Drips):
		enginetest.SendSlowly(w, r, content)
	default:
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
	}
}
