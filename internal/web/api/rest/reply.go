package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"atelier/internal/web/httpd"
)

// send writes a JSON answer whose bytes are ready, in one or more parts.
func send(w http.ResponseWriter, status int, body ...[]byte) {
	length := 0
	for _, part := range body {
		length += len(part)
	}
	h := w.Header()
	h["Content-Type"] = contentJSON
	h["Content-Length"] = []string{strconv.Itoa(length)}
	w.WriteHeader(status)
	for _, part := range body {
		if len(part) > 0 {
			w.Write(part)
		}
	}
}

// Header values that many answers share. Nothing may change them.
var (
	contentJSON   = []string{"application/json"}
	varies        = []string{"Authorization"}
	variesEncoded = []string{"Authorization, Accept-Encoding"}
	encodingGzip  = []string{"gzip"}
)

// replyTagged writes a 200 answer with an ETag, or 304 where the caller has it
// already. It is compressed where the caller takes that, so it must hold nothing
// secret (see replyCompressed).
func (s *Server) replyTagged(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	s.sendTagged(w, r, httpd.ETag(body), body, nil)
	return nil
}

// sendTagged is replyTagged for bytes that are ready: body, which tag names and
// whose compressed form is kept under it, and an end that is the caller's own.
func (s *Server) sendTagged(w http.ResponseWriter, r *http.Request, tag string, body, end []byte) {
	isCompressed := len(body) >= httpd.MinGzip && httpd.AcceptsGzip(r)
	if isCompressed {
		tag = httpd.GzipETag(tag)
	}
	h := w.Header()
	h["Etag"] = []string{tag}
	addVary(h, variesEncoded)
	if known := r.Header.Get("If-None-Match"); known != "" && matches(known, tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}

	if isCompressed {
		h["Content-Encoding"] = encodingGzip
		form := s.zipped.get(tag, body)
		body = form.Stream()
		end = form.Finish(end)
	}
	send(w, http.StatusOK, body, end)
}

// replyCompressed writes a JSON answer, compressed where it is large and the
// caller takes that. It is for pages that hold no credential, no signed address
// and nothing else that is secret: how far a text shrinks tells about a secret
// beside it to whoever can write some of the text and see the length (BREACH).
func replyCompressed(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	h := w.Header()
	addVary(h, variesEncoded)
	if len(body) >= httpd.MinGzip && httpd.AcceptsGzip(r) {
		h["Content-Encoding"] = encodingGzip
		body = httpd.CompressOnce(body)
	}
	send(w, http.StatusOK, body)
	return nil
}

// matches tells whether an If-None-Match header names the tag (RFC 9110
// section 13.1.2, weak comparison).
func matches(header, tag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		one = strings.TrimSpace(one)
		if one == "*" || strings.TrimPrefix(one, "W/") == tag {
			return true
		}
	}
	return false
}

// reply writes a JSON answer.
func reply(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	addVary(w.Header(), varies)
	send(w, status, body)
	return nil
}

// done answers what has nothing to say.
func done(w http.ResponseWriter) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}
