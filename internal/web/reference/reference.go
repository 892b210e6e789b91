// Package reference serves a reference of the API for people, at /docs. The page is
// made from the OpenAPI document alone, once, when the program starts: what is
// added to the document appears without a change here.
//
// Words of the document are never trusted. All of them pass through the
// escaping of html/template, and none becomes a type that skips it.
package reference

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"atelier/internal/web/httpd"
)

//go:embed page.html
var pageText string

//go:embed style.css
var styleText []byte

// policy lets the page have its own style and icon and nothing else: it runs no
// script.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// New makes the handler for /docs from an OpenAPI 3.1 document in YAML or JSON.
func New(document []byte) (http.Handler, error) {
	p, err := newPage(document)
	if err != nil {
		return nil, fmt.Errorf("read openapi document: %w", err)
	}
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return nil, fmt.Errorf("parse page: %w", err)
	}
	var html bytes.Buffer
	if err := t.Execute(&html, p); err != nil {
		return nil, fmt.Errorf("render page: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /docs", file("/docs", "text/html; charset=utf-8", html.Bytes()))
	mux.Handle("GET /docs/{$}", http.RedirectHandler("/docs", http.StatusPermanentRedirect))
	mux.Handle("GET /docs/style.css", file("/docs/style.css", "text/css; charset=utf-8", styleText))
	return mux, nil
}

// file answers with content that never changes while the program runs. It is
// compressed once, when somebody first takes it so.
func file(route, mediaType string, content []byte) http.Handler {
	tag := httpd.ETag(content)
	compress := sync.OnceValue(func() []byte {
		zipped := httpd.Compress(content)
		return slices.Concat(zipped.Stream(), zipped.Finish(nil))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpd.RecordOf(r.Context()).Route = route
		h := w.Header()
		h.Set("Content-Type", mediaType)
		h.Set("Content-Security-Policy", policy)
		h.Set("Cache-Control", "no-cache")
		h.Set("Vary", "Accept-Encoding")
		if len(content) < httpd.MinGzip || !httpd.AcceptsGzip(r) {
			h.Set("ETag", tag)
			httpd.ServeBytes(w, r, content)
			return
		}

		compressed := compress()
		h.Set("ETag", httpd.GzipETag(tag))
		h.Set("Content-Encoding", "gzip")
		h.Set("Content-Length", strconv.Itoa(len(compressed)))
		httpd.ServeBytes(w, r, compressed)
	})
}
