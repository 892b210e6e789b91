package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"atelier/internal/httpd"
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
		w.Write(part)
	}
}

// Header values that many answers share. Nothing may change them.
var (
	contentJSON = []string{"application/json"}
	varies      = []string{"Authorization"}
)

// replyTagged writes a 200 answer with an ETag, or 304 where the caller has it
// already.
func replyTagged(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	sendTagged(w, r, httpd.ETag(body), body)
	return nil
}

func sendTagged(w http.ResponseWriter, r *http.Request, tag string, body ...[]byte) {
	h := w.Header()
	h["Etag"] = []string{tag}
	addVary(h)
	if known := r.Header.Get("If-None-Match"); known != "" && matches(known, tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	send(w, http.StatusOK, body...)
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
	addVary(w.Header())
	send(w, status, body)
	return nil
}

// done answers what has nothing to say.
func done(w http.ResponseWriter) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}
