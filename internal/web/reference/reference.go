// Package reference serves the API reference at /docs: a page on which Swagger
// UI, embedded from the folder swagger-ui, shows /api/v2/openapi.json.
//
// The files in swagger-ui are unchanged copies from the npm package
// swagger-ui-dist. swagger-ui/VERSION contains the version of the package.
// "make swagger" downloads the files, and build/fresh compares them with the
// registry.
package reference

import (
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"sync"

	"atelier/internal/web/httpd"
)

//go:embed page.html page.js style.css swagger-ui
var files embed.FS

// policy is the Content-Security-Policy of the reference. It allows only files
// of this server: no inline script or style, no eval, no other host. Swagger
// UI uses data: URLs for its icons, and blob: URLs for pictures in API
// responses.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self'; connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// mediaTypes maps the extension of a file name to the Content-Type of the
// file.
var mediaTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".txt":  "text/plain; charset=utf-8",
	"":      "text/plain; charset=utf-8",
}

// New returns the handler for /docs and the paths under it. Every embedded file
// is served, including the licences, because serving Swagger UI to browsers
// counts as distributing it.
func New() (http.Handler, error) {
	mux := http.NewServeMux()
	mux.Handle("GET /docs/{$}", http.RedirectHandler("/docs", http.StatusPermanentRedirect))

	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		route := "/docs/" + name
		if name == "page.html" {
			route = "/docs"
		}
		mux.Handle("GET "+route, newFileHandler(route, mediaTypes[path.Ext(name)], content))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read embedded files: %w", err)
	}

	return mux, nil
}

// newFileHandler returns a handler that serves content, which never changes
// while the program runs. The content is compressed once, for the first client
// that accepts gzip.
func newFileHandler(route, mediaType string, content []byte) http.Handler {
	tag := httpd.ETag(content)
	compress := sync.OnceValue(func() []byte {
		zipped := httpd.Compress(content)
		return slices.Concat(zipped.StreamHead(), zipped.StreamTail(nil))
	})

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpd.RecordOf(r.Context()).Route = route

		h := w.Header()
		h.Set("Content-Type", mediaType)
		h.Set("Content-Security-Policy", policy)
		h.Set("Cache-Control", "no-cache")
		h.Set("Vary", "Accept-Encoding")
		if len(content) < httpd.MinGzipBytes || !httpd.AcceptsGzip(r) {
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
