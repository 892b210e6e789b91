package comfyuitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

type dict = map[string]any

// handler serves every route at its path and below /api, as the real server
// does.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	both := func(pattern string, do http.HandlerFunc) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(pattern, do)
		mux.HandleFunc(method+" /api"+path, do)
	}
	both("GET /system_stats", s.stats)
	both("GET /features", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, dict{"supports_preview_metadata": true, "max_upload_size": 104857600})
	})
	both("GET /object_info", s.objectInfo)
	both("GET /object_info/{class}", s.objectInfo)
	both("POST /prompt", s.postPrompt)
	both("GET /queue", s.getQueue)
	both("POST /queue", s.postQueue)
	both("POST /interrupt", s.interrupt)
	both("GET /history/{id}", s.getHistory)
	both("POST /history", s.postHistory)
	both("POST /upload/image", s.upload)
	both("GET /view", s.view)
	both("GET /ws", s.ws)
	if !s.o.NoJobs {
		mux.HandleFunc("GET /api/jobs/{id}", s.getJob)
		mux.HandleFunc("POST /api/jobs/{id}/cancel", s.cancelJob)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet { // only GET requests for files are supported below this path
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	})
	return s.guard(mux)
}

// guard wraps a handler. It records each request, performs the checks that all
// requests need, and applies the active faults.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := Call{Method: r.Method, Path: r.URL.Path}
		if r.Method == http.MethodPost && !strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
			body, err := io.ReadAll(io.LimitReader(r.Body, 8<<20))
			if err != nil {
				return
			}
			c.Body = string(body)
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		s.mu.Lock()
		s.calls = append(s.calls, c)
		f := s.faults
		s.mu.Unlock()
		path := strings.TrimPrefix(r.URL.Path, "/api")
		switch {
		case s.o.Wanted[0] != "" && r.Header.Get(s.o.Wanted[0]) != s.o.Wanted[1]:
			w.WriteHeader(http.StatusUnauthorized)
		case foreign(r):
			w.WriteHeader(http.StatusForbidden)
		case f.Busy:
			w.WriteHeader(http.StatusServiceUnavailable)
		case f.Garble != "" && strings.HasPrefix(path, f.Garble):
			_, _ = io.WriteString(w, "<html>Welcome</html>")
		case f.Deaf && (strings.HasPrefix(path, "/queue") || strings.HasPrefix(path, "/interrupt") || strings.HasPrefix(path, "/jobs")):
			<-r.Context().Done()
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// foreign reports whether a request to a server on localhost comes from a web
// page of another origin.
func foreign(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(host)
	if host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || !strings.EqualFold(u.Host, r.Host)
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (s *Server) stats(w http.ResponseWriter, _ *http.Request) {
	reply(w, 200, dict{
		"system":  dict{"os": "linux", "comfyui_version": "0.26.0", "python_version": "3.12", "ram_total": 64 << 30},
		"devices": []dict{{"name": "cuda:0", "type": "cuda", "index": 0, "vram_total": 24 << 30, "vram_free": 20 << 30}},
	})
}

func (s *Server) objectInfo(w http.ResponseWriter, r *http.Request) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(objectInfo, &all); err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if class := r.PathValue("class"); class != "" {
		one := map[string]json.RawMessage{}
		if info, ok := all[class]; ok {
			one[class] = info
		}
		all = one
	}
	reply(w, 200, all)
}

func (s *Server) postPrompt(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Prompt   json.RawMessage `json:"prompt"`
		ClientID string          `json:"client_id"`
		PromptID *string         `json:"prompt_id"`
		Front    bool            `json:"front"`
		Extra    json.RawMessage `json:"extra_data"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	id := uuid.NewString()
	if body.PromptID != nil && !s.o.OwnIDs {
		u, err := uuid.Parse(*body.PromptID)
		if err != nil || u.String() != *body.PromptID {
			refuse(w, "invalid_prompt_id", "prompt_id must be a valid UUID", "prompt_id must be a UUID string in canonical lowercase hyphenated form", nil)
			return
		}
		id = u.String()
	}
	if len(body.Prompt) == 0 {
		refuse(w, "no_prompt", "No prompt provided", "No prompt provided", nil)
		return
	}
	v := s.validate(body.Prompt)
	f := s.fault()
	time.Sleep(f.Slow)
	if f.Refuse {
		v = verdict{kind: "prompt_outputs_failed_validation", message: "Prompt outputs failed validation", details: "Value not in list: ckpt_name: 'gone.safetensors' not in []"}
	}
	if v.kind != "" {
		refuse(w, v.kind, v.message, v.details, v.nodeErrors)
		return
	}
	s.mu.Lock()
	p := &prompt{
		id:       id,
		number:   s.memory.number,
		clientID: body.ClientID,
		raw:      body.Prompt,
		nodes:    v.nodes,
		outputs:  v.outputs,
		previews: s.o.Previews || asksForPreviews(body.Extra),
	}
	if s.faults.Stale > 0 {
		s.faults.Stale--
		p.stale = true
	}
	s.memory.number++
	if body.Front {
		p.number = -p.number
	}
	s.memory.enqueue(p)
	s.prompts = append(s.prompts, Prompt{id, body.ClientID, body.Prompt, body.Extra})
	s.memory.wake()
	s.mu.Unlock()
	errors := v.nodeErrors
	if errors == nil {
		errors = dict{}
	}
	reply(w, 200, dict{"prompt_id": id, "number": p.number, "node_errors": errors})
}

// asksForPreviews reports whether the extra data of a prompt selects a preview
// method.
func asksForPreviews(extra json.RawMessage) bool {
	var data struct {
		Method string `json:"preview_method"`
	}
	_ = json.Unmarshal(extra, &data) // a prompt without extra data requests no previews
	return data.Method != "" && data.Method != "none"
}

func refuse(w http.ResponseWriter, kind, message, details string, nodeErrors dict) {
	if nodeErrors == nil {
		nodeErrors = dict{}
	}
	reply(w, 400, dict{"error": dict{"type": kind, "message": message, "details": details, "extra_info": dict{}}, "node_errors": nodeErrors})
}

func (s *Server) getQueue(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := []any{}
	waiting := []any{}
	if p := s.memory.current; p != nil {
		at = append(at, p.item())
	}
	for _, p := range slices.Backward(s.memory.queue) { // the real server does not sort this list
		waiting = append(waiting, p.item())
	}
	reply(w, 200, dict{"queue_running": at, "queue_pending": waiting})
}

func (s *Server) postQueue(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Clear  bool     `json:"clear"`
		Delete []string `json:"delete"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if body.Clear {
		s.memory.queue = nil
	}
	for _, id := range body.Delete {
		s.memory.dequeue(id)
	}
}

func (s *Server) interrupt(_ http.ResponseWriter, r *http.Request) {
	var body struct {
		PromptID string `json:"prompt_id"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body) // without a body, any running prompt is interrupted
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.memory.current
	if p != nil && (body.PromptID == "" || s.o.GlobalInterrupt || p.id == body.PromptID) {
		p.interrupt()
	}
}

func (s *Server) getHistory(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := r.PathValue("id")
	if e, ok := s.memory.history[id]; ok {
		reply(w, 200, dict{id: e})
		return
	}
	reply(w, 200, dict{})
}

func (s *Server) postHistory(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Clear  bool     `json:"clear"`
		Delete []string `json:"delete"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if body.Clear {
		clear(s.memory.history)
	}
	for _, id := range body.Delete {
		delete(s.memory.history, id)
	}
}

func (s *Server) getJob(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := r.PathValue("id")
	state := ""
	if p := s.memory.current; p != nil && p.id == id {
		state = "in_progress"
	}
	for _, p := range s.memory.queue {
		if p.id == id {
			state = "pending"
		}
	}
	if e, ok := s.memory.history[id]; ok {
		state = "completed"
		if st, ok := e["status"].(dict); ok && st["status_str"] == "error" {
			state = "failed"
		}
	}
	if state == "" {
		reply(w, 404, dict{"error": "Job not found"})
		return
	}
	reply(w, 200, dict{"id": id, "status": state})
}

func (s *Server) cancelJob(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := r.PathValue("id")
	done := s.memory.dequeue(id)
	if p := s.memory.current; p != nil && p.id == id {
		p.interrupt()
		done = true
	}
	reply(w, 200, dict{"cancelled": done})
}

func (p *prompt) item() []any {
	outputs := p.outputs
	return []any{p.number, p.id, p.raw, dict{"client_id": p.clientID}, outputs}
}

func printed(v any) string { return fmt.Sprint(v) }
