package replicatetest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
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

// The models of the stand-in server.
const (
	Painter    = "acme/painter" // official model; returns a list of pictures
	Writer     = "acme/writer"  // official model; returns text as a list of parts
	Film       = "acme/film"    // official model; returns an object with a video and a picture
	Deployment = "acme/studio"  // a deployment of the painter model
	Community  = "acme/sketch"  // model that is not official, so it is run by its version
	Version    = "5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa"
)

func (s *Server) routes(own bool) http.Handler {
	api := http.NewServeMux()
	api.HandleFunc("GET /v1/account", func(w http.ResponseWriter, _ *http.Request) {
		s.reply(w, http.StatusOK, map[string]any{"type": "organization", "username": "acme", "name": "Acme"})
	})
	api.HandleFunc("POST /v1/predictions", func(w http.ResponseWriter, r *http.Request) { s.create(w, r, "", "") })
	api.HandleFunc("POST /v1/models/{owner}/{name}/predictions", func(w http.ResponseWriter, r *http.Request) {
		s.create(w, r, r.PathValue("owner")+"/"+r.PathValue("name"), "")
	})
	api.HandleFunc("POST /v1/deployments/{owner}/{name}/predictions", func(w http.ResponseWriter, r *http.Request) {
		s.create(w, r, Painter, r.PathValue("owner")+"/"+r.PathValue("name"))
	})
	api.HandleFunc("GET /v1/predictions", s.list)
	api.HandleFunc("GET /v1/predictions/{id}", s.get)
	api.HandleFunc("POST /v1/predictions/{id}/cancel", s.cancel)
	api.HandleFunc("POST /v1/files", s.upload)
	api.HandleFunc("GET /v1/files/{id}", s.getFile)
	api.HandleFunc("GET /v1/models/{owner}/{name}", s.model)
	api.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.problem(w, http.StatusNotFound, "The requested resource could not be found.")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if own && strings.HasPrefix(r.URL.Path, "/out/") {
			s.deliver(w, r)
			return
		}
		if r.Header.Get("Authorization") != "Bearer "+s.Token {
			s.problem(w, http.StatusUnauthorized, "You did not pass a valid authentication token")
			return
		}
		api.ServeHTTP(w, r)
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

func (s *Server) problem(w http.ResponseWriter, status int, detail string) {
	s.reply(w, status, map[string]any{"title": http.StatusText(status), "detail": detail, "status": status})
}

func (s *Server) create(w http.ResponseWriter, r *http.Request, model, deployment string) {
	var body struct {
		Version string         `json:"version"`
		Input   map[string]any `json:"input"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Input == nil {
		s.problem(w, http.StatusUnprocessableEntity, "- input is required")
		return
	}
	if model == "" {
		model = Painter
		if _, id, ok := strings.Cut(body.Version, ":"); ok {
			body.Version = id
		}
		if body.Version != Version {
			s.problem(w, http.StatusUnprocessableEntity, "The specified version does not exist (or perhaps you don't have permission to use it?)")
			return
		}
	}
	if !slices.Contains([]string{Painter, Writer, Film}, model) || deployment != "" && deployment != Deployment {
		s.problem(w, http.StatusNotFound, "The requested resource could not be found.")
		return
	}
	if after := r.Header.Get("Cancel-After"); after != "" {
		if d, err := time.ParseDuration(after); err != nil || d < 5*time.Second {
			s.problem(w, http.StatusBadRequest, "Cancel-After must be at least 5 seconds")
			return
		}
	}
	switch {
	case s.IsActive(Swallows):
		enginetest.DropConnection(w, r)
	case s.IsActive(Busy):
		w.Header().Set("Retry-After", "1")
		s.problem(w, http.StatusTooManyRequests, "Request was throttled. Expected available in 1 second.")
		return
	case s.IsActive(Unpaid):
		s.problem(w, http.StatusPaymentRequired, "You have insufficient credit to run this model. Go to https://replicate.com/account/billing#billing to purchase credit.")
		return
	case s.IsActive(Refuses):
		s.problem(w, http.StatusUnprocessableEntity, "- input.prompt: Invalid type. Expected: string, given: integer")
		return
	}
	if _, ok := body.Input["prompt"].(string); !ok {
		s.problem(w, http.StatusUnprocessableEntity, "- input: prompt is required")
		return
	}
	p := s.add(model, deployment, cmp.Or(body.Version, "hidden"), body.Input, r.Header)
	switch {
	case s.IsActive(Drops):
		enginetest.DropConnection(w, r)
	case s.IsActive(Stalls):
		s.hang(r.Context())
		return
	case s.IsActive(Ill):
		s.problem(w, http.StatusServiceUnavailable, "The service is unavailable.")
		return
	}
	s.wait(r.Context(), p, r.Header.Get("Prefer"))
	s.mu.Lock()
	answer := p.snapshot(s.URL, s.takes)
	s.mu.Unlock()
	s.reply(w, http.StatusCreated, answer)
}

// add creates a prediction and returns it.
func (s *Server) add(model, deployment, version string, input map[string]any, h http.Header) *prediction {
	p := &prediction{
		id:         strings.ToLower(rand.Text()),
		model:      model,
		version:    version,
		deployment: deployment,
		input:      input,
		created:    time.Now(),
	}
	for _, f := range []Fault{Fails, Flags, Interrupts} {
		if s.IsActive(f) {
			p.fault = f
		}
	}
	few := s.IsActive(Fewer)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range input {
		if ref, ok := v.(string); ok && (strings.HasPrefix(ref, "data:") || strings.HasPrefix(ref, "http")) && !s.readable(ref) {
			p.fault = Fails // a model that cannot load its input file fails
		}
	}
	base := s.delivery + "/out/" + p.id + "/"
	if model == Film {
		p.outputs = []string{base}
	} else if !few {
		n := 1
		if asked, ok := input["num_outputs"].(float64); ok {
			n = int(asked)
		}
		for i := range n {
			p.outputs = append(p.outputs, fmt.Sprintf("%s%d.png", base, i))
		}
	}
	s.creates++
	s.headers = append(s.headers, h.Clone())
	s.predictions = append(s.predictions, p)
	return p
}

// wait delays the response until the prediction is done, if the Prefer header
// requests it. It waits for the requested number of seconds, by default 60,
// but no longer than a prediction takes.
func (s *Server) wait(ctx context.Context, p *prediction, prefer string) {
	if !strings.HasPrefix(prefer, "wait") {
		return
	}
	most := 60
	if _, n, ok := strings.Cut(prefer, "="); ok {
		most, _ = strconv.Atoi(n)
	}
	timer := time.NewTimer(min(time.Duration(most)*time.Second, s.takes))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// list handles requests for the list of predictions, newest first. The cursor
// is the number of predictions before the page.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	const page = 100
	from, _ := strconv.Atoi(r.URL.Query().Get("cursor")) // without a cursor, the first page is returned
	s.mu.Lock()
	all := slices.Clone(s.predictions)
	slices.Reverse(all)
	answer := map[string]any{"previous": nil, "next": nil}
	if from+page < len(all) {
		answer["next"] = fmt.Sprintf("%s/predictions?cursor=%d", s.URL, from+page)
	}
	results := []any{}
	for _, p := range all[min(from, len(all)):min(from+page, len(all))] {
		results = append(results, p.snapshot(s.URL, s.takes))
	}
	answer["results"] = results
	s.mu.Unlock()
	s.reply(w, http.StatusOK, answer)
}

// known returns the prediction that the URL refers to. If there is none, it
// sends a 404 response and returns nil.
func (s *Server) known(w http.ResponseWriter, r *http.Request) *prediction {
	s.mu.Lock()
	var p *prediction
	if i := slices.IndexFunc(s.predictions, func(p *prediction) bool { return p.id == r.PathValue("id") }); i >= 0 {
		p = s.predictions[i]
	}
	s.mu.Unlock()
	if p == nil || s.IsActive(Loses) {
		s.problem(w, http.StatusNotFound, "The requested resource could not be found.")
		return nil
	}
	return p
}

func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	switch {
	case s.IsActive(Hangs):
		s.hang(r.Context())
		return
	case s.IsActive(Hiccups):
		s.problem(w, http.StatusBadGateway, "Bad gateway")
		return
	}
	p := s.known(w, r)
	if p == nil {
		return
	}
	s.mu.Lock()
	answer := p.snapshot(s.URL, s.takes)
	s.mu.Unlock()
	if answer["status"] == "succeeded" && s.IsActive(Removes) {
		answer["data_removed"] = true
		answer["input"] = map[string]any{}
		answer["output"] = nil
		answer["logs"] = ""
	}
	s.reply(w, http.StatusOK, answer)
}

func (s *Server) cancel(w http.ResponseWriter, r *http.Request) {
	p := s.known(w, r)
	if p == nil {
		return
	}
	s.mu.Lock()
	p.cancel(s.takes)
	answer := p.snapshot(s.URL, s.takes)
	s.mu.Unlock()
	s.reply(w, http.StatusOK, answer)
}

func (s *Server) upload(w http.ResponseWriter, r *http.Request) {
	parts, err := r.MultipartReader()
	if err != nil {
		s.problem(w, http.StatusBadRequest, "Missing content")
		return
	}
	f := &file{id: strings.ToLower(rand.Text()), metadata: json.RawMessage("{}")}
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			s.problem(w, http.StatusBadRequest, "Malformed multipart data")
			return
		}
		b, err := io.ReadAll(part)
		if err != nil {
			s.problem(w, http.StatusBadRequest, "Malformed multipart data")
			return
		}
		switch part.FormName() {
		case "content":
			f.content = b
			f.name = part.FileName()
			f.kind = cmp.Or(f.kind, part.Header.Get("Content-Type"))
		case "filename":
			f.name = string(b)
		case "type":
			f.kind = string(b)
		case "metadata":
			f.metadata = b
		}
	}
	if f.content == nil {
		s.problem(w, http.StatusBadRequest, "Missing content")
		return
	}
	s.mu.Lock()
	s.files[f.id] = f
	s.mu.Unlock()
	s.reply(w, http.StatusCreated, s.about(f))
}

func (s *Server) about(f *file) map[string]any {
	return map[string]any{
		"id": f.id, "name": f.name, "content_type": f.kind, "size": len(f.content), "etag": f.id, "metadata": f.metadata,
		"checksums":  map[string]any{"sha256": fmt.Sprintf("%x", sha256.Sum256(f.content))},
		"created_at": time.Now().UTC().Format(time.RFC3339), "expires_at": time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339),
		"urls": map[string]any{"get": s.URL + "/files/" + f.id},
	}
}

func (s *Server) getFile(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	f := s.files[r.PathValue("id")]
	s.mu.Unlock()
	if f == nil {
		s.problem(w, http.StatusNotFound, "The requested resource could not be found.")
		return
	}
	s.reply(w, http.StatusOK, s.about(f))
}

// deliver handles requests to the host that serves outputs. They need no access
// token.
func (s *Server) deliver(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/out/"), "/")
	s.mu.Lock()
	if r.Header.Get("Authorization") != "" {
		s.leaks++
	}
	i := slices.IndexFunc(s.predictions, func(p *prediction) bool { return p.id == parts[0] })
	if i < 0 || len(parts) != 2 {
		s.mu.Unlock()
		http.NotFound(w, r)
		return
	}
	number, _ := strconv.Atoi(strings.TrimSuffix(parts[1], ".png")) // the picture of a video has number 0
	content := picture(s.predictions[i].input, number)
	s.mu.Unlock()
	if strings.HasSuffix(parts[1], ".mp4") {
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
		http.ServeContent(w, r, parts[1], time.Time{}, bytes.NewReader(content))
	}
}
