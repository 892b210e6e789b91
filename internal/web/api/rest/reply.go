package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"atelier/internal/web/httpd"
)

// Header values that many responses use. They must not be modified.
var (
	contentJSON   = []string{"application/json"}
	varies        = []string{"Authorization"}
	variesEncoded = []string{"Authorization, Accept-Encoding"}
	encodingGzip  = []string{"gzip"}
)

// Reply responds with v as JSON.
func Reply(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode response: %w", err)
	}
	VaryByCaller(w.Header())
	Send(w, status, body)
	return nil
}

// NoContent responds with 204 and no body.
func NoContent(w http.ResponseWriter) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// Send responds with JSON that is already encoded, in one or more parts.
func Send(w http.ResponseWriter, status int, body ...[]byte) {
	length := 0
	for _, part := range body {
		length += len(part)
	}

	header := w.Header()
	header["Content-Type"] = contentJSON
	header["Content-Length"] = []string{strconv.Itoa(length)}
	w.WriteHeader(status)
	for _, part := range body {
		if len(part) > 0 {
			w.Write(part)
		}
	}
}

// ReplyCompressed responds with v as JSON, compressed if it is large and the
// client accepts gzip. Use it only for responses without credentials, signed
// URLs and other secrets: an attacker who can insert text into the response
// and see its compressed length can guess a secret in it (BREACH).
func ReplyCompressed(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode response: %w", err)
	}

	header := w.Header()
	AddVary(header, variesEncoded)
	if len(body) >= httpd.MinGzipBytes && httpd.AcceptsGzip(r) {
		header["Content-Encoding"] = encodingGzip
		body = httpd.CompressOnce(body)
	}
	Send(w, http.StatusOK, body)
	return nil
}

// ReplyTagged responds with v as JSON and an ETag, or with 304 if the client
// already has that version. The response is compressed, so it must contain no
// secret (see ReplyCompressed).
func (c *GzipCache) ReplyTagged(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode response: %w", err)
	}
	c.SendTagged(w, r, httpd.ETag(body), body, nil)
	return nil
}

// SendTagged responds like ReplyTagged with JSON that is already encoded. tag
// is the ETag of body, whose compressed form is cached under it. end is
// appended to body and differs between callers.
func (c *GzipCache) SendTagged(w http.ResponseWriter, r *http.Request, tag string, body, end []byte) {
	isCompressed := len(body) >= httpd.MinGzipBytes && httpd.AcceptsGzip(r)
	if isCompressed {
		tag = httpd.GzipETag(tag)
	}

	header := w.Header()
	header["Etag"] = []string{tag}
	AddVary(header, variesEncoded)
	if known := r.Header.Get("If-None-Match"); known != "" && matchesTag(known, tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}

	if isCompressed {
		header["Content-Encoding"] = encodingGzip
		form := c.compressBody(tag, body)
		body = form.StreamHead()
		end = form.StreamTail(end)
	}
	Send(w, http.StatusOK, body, end)
}

// matchesTag reports whether an If-None-Match header contains the ETag (RFC
// 9110 section 13.1.2, weak comparison).
func matchesTag(header, tag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		one = strings.TrimSpace(one)
		if one == "*" || strings.TrimPrefix(one, "W/") == tag {
			return true
		}
	}
	return false
}

// VaryByCaller declares in the Vary header that a response depends on the
// caller, so that HTTP caches do not serve it to other callers.
func VaryByCaller(header http.Header) { AddVary(header, varies) }

// AddVary adds the names of request headers that the response depends on to
// the Vary header.
func AddVary(header http.Header, names []string) {
	if len(header["Vary"]) == 0 {
		header["Vary"] = names
		return
	}
	header["Vary"] = slices.Concat(header["Vary"], names)
}
