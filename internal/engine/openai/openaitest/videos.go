package openaitest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"atelier/internal/engine/enginetest"
)

// speak handles requests for speech: it sends a sound in the requested format.
func (s *Server) speak(w http.ResponseWriter, r *http.Request, q Request) {
	if !s.check(w, q, "input") {
		return
	}
	if len(q.text("input")) > 4096 || s.o.Dialect == OpenAI && q.text("voice") == "" {
		s.complain(w, http.StatusBadRequest, "invalid_value", "Invalid input or voice.")
		return
	}
	switch format := cmp.Or(q.text("response_format"), "mp3"); format {
	case "mp3":
		s.send(w, r, "audio/mpeg", tone)
	case "wav":
		s.send(w, r, "audio/wav", sound(220+float64(len(q.text("input")))))
	case "pcm":
		s.send(w, r, "audio/pcm", sound(220)[44:])
	default:
		s.complain(w, http.StatusBadRequest, "invalid_value", "Invalid response_format '"+format+"'.")
	}
}

// video is a video job on the stand-in server.
type video struct {
	id, status, origin    string
	model, seconds, size  string
	looks, waited         int
	at                    string // the URL of the video on another host
	progress              int
	complaint, complained string
}

func (v *video) wire() map[string]any {
	out := map[string]any{
		"id": v.id, "object": "video", "model": v.model, "status": v.status, "progress": v.progress, "created_at": made,
		"completed_at": nil, "expires_at": nil, "seconds": v.seconds, "size": v.size, "error": nil, "remixed_from_video_id": nil,
	}
	if v.at != "" && v.status == "completed" {
		out["url"] = v.at
	}
	if v.complaint != "" {
		out["error"] = map[string]any{"code": v.complaint, "message": v.complained}
	}
	return out
}

func (s *Server) createVideo(w http.ResponseWriter, r *http.Request, q Request) {
	form := r.MultipartForm != nil
	if s.o.Dialect == VLLMOmni && !form {
		answer(w, http.StatusUnprocessableEntity, map[string]any{"detail": []any{map[string]any{"type": "missing", "loc": []any{"body", "prompt"}, "msg": "Field required", "input": nil}}})
		return
	}
	if !s.check(w, q, "prompt") {
		return
	}
	seconds := q.text("seconds")
	if _, isText := q.Values["seconds"].(string); seconds != "" && (!isText || s.o.Dialect == OpenAI && !slices.Contains([]string{"4", "8", "12"}, seconds)) {
		s.complain(w, http.StatusBadRequest, "invalid_value", "Invalid 'seconds'.")
		return
	}
	if picture, there := q.Values["input_reference"]; there {
		if text, isText := picture.(string); !isText || !strings.HasPrefix(text, "data:image/") {
			s.complain(w, http.StatusBadRequest, "invalid_value", "Invalid request body: input_reference: Input should be a valid string")
			return
		}
	}
	origin := s.origin(q, 0)
	at := ""
	if s.o.Elsewhere {
		at = s.keep("/bucket/*.mp4", "video/mp4", movie(origin))
	}
	s.mu.Lock()
	s.count++
	v := &video{
		id:      fmt.Sprintf("video_%06d", s.count),
		status:  "queued",
		origin:  origin,
		at:      at,
		model:   q.text("model"),
		seconds: cmp.Or(seconds, "4"),
		size:    cmp.Or(q.text("size"), "720x1280"),
	}
	s.videos[v.id] = v
	out := v.wire()
	s.mu.Unlock()
	answer(w, http.StatusOK, out)
}

// getVideo handles polls of a video's state. Each poll also advances the
// video's progress.
func (s *Server) getVideo(w http.ResponseWriter, r *http.Request) {
	if s.now() == enginetest.Restarts {
		s.restart()
	}
	s.mu.Lock()
	v, ok := s.videos[r.PathValue("id")]
	if ok && v.looks > 0 && s.fault == enginetest.Loses {
		delete(s.videos, v.id)
		ok = false
	}
	var out map[string]any
	if ok {
		s.forward(v)
		out = v.wire()
	}
	s.mu.Unlock()
	if !ok {
		s.complain(w, http.StatusNotFound, "not_found", "Video not found.")
		return
	}
	answer(w, http.StatusOK, out)
}

func (s *Server) forward(v *video) {
	if v.status == "completed" || v.status == "failed" || s.fault == enginetest.Hangs || s.fault == enginetest.TimeIsUp {
		return
	}
	if v.waited < s.o.Queue {
		v.waited++
		return
	}
	v.looks++
	v.status = "in_progress"
	v.progress = v.looks * 100 / s.o.Polls
	switch {
	case s.fault == enginetest.Fails && v.looks > 1:
		v.status = "failed"
		v.complaint = "video_generation_failed"
		v.complained = "Generation failed, see /var/log/sora.log"
	case v.looks >= s.o.Polls:
		v.status = "completed"
		v.progress = 100
	}
}

func (s *Server) videoContent(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	v, ok := s.videos[r.PathValue("id")]
	ready := ok && v.status == "completed" && s.fault != enginetest.Fewer
	s.mu.Unlock()
	if ready && v.at != "" {
		s.complain(w, http.StatusBadRequest, "invalid_request_error", "Video has been uploaded to cloud storage. Please use the cloud URL.")
		return
	}
	if !ready {
		s.complain(w, http.StatusNotFound, "not_found", "Video is not ready.")
		return
	}
	s.send(w, r, "video/mp4", movie(v.origin))
}

func (s *Server) deleteVideo(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	s.mu.Lock()
	v, ok := s.videos[id]
	if ok && s.o.Dialect == SGLang && v.status != "completed" && v.status != "failed" {
		s.stray++
	}
	delete(s.videos, id)
	s.deleted = append(s.deleted, id)
	s.mu.Unlock()
	if !ok {
		s.complain(w, http.StatusNotFound, "not_found", "Video not found.")
		return
	}
	answer(w, http.StatusOK, map[string]any{"id": id, "deleted": true, "object": "video.deleted"})
}

// videoSync handles requests to LocalAI's /video, which block until the video
// is done.
func (s *Server) videoSync(w http.ResponseWriter, r *http.Request, q Request) {
	for _, side := range []string{"width", "height"} {
		if v, ok := q.Values[side]; ok {
			if n, ok := v.(float64); !ok || n < 1 {
				s.complain(w, http.StatusBadRequest, "invalid_value", "Invalid "+side+".")
				return
			}
		}
	}
	if q.text("model") == "" {
		s.complain(w, http.StatusBadRequest, "invalid_value", "Bad Request")
		return
	}
	if _, err := strconv.ParseInt(cmp.Or(q.text("seed"), "0"), 10, 32); err != nil {
		s.complain(w, http.StatusBadRequest, "invalid_value", "Invalid seed.")
		return
	}
	if _, isText := q.Values["seconds"].(string); q.Values["seconds"] != nil && !isText {
		s.complain(w, http.StatusBadRequest, "invalid_value", "Invalid seconds.")
		return
	}
	s.results(w, r, q.text("response_format") == "b64_json", "video/mp4", "/generated-videos/*.mp4", [][]byte{movie(s.origin(q, 0))})
}
