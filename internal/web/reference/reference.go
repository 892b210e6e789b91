// Package reference serves the API reference at /docs/api: a page on which Swagger
// UI, embedded from the folder swagger-ui, shows /api/v2/openapi.json.
//
// The files in swagger-ui are unchanged copies from the npm package
// swagger-ui-dist. swagger-ui/VERSION contains the version of the package.
// "make swagger" downloads the files, and build/fresh compares them with the
// registry.
package reference

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"path"

	"atelier/internal/web/httpd"
)

//go:embed page.html page.js style.css swagger-ui
var files embed.FS

// root is the URL path of the reference.
const root = "/docs/api"

// policy is the Content-Security-Policy of the reference. It allows only files
// of this server: no inline script or style, no eval, no other host. Swagger
// UI uses data: URLs for its icons, and blob: URLs for pictures in API
// responses.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self'; connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// New returns the handler for /docs/api and the paths under it. Every embedded file
// is served, including the licences, because serving Swagger UI to browsers
// counts as distributing it.
func New() (http.Handler, error) {
	mux := http.NewServeMux()
	mux.Handle("GET "+root+"/{$}", http.RedirectHandler(root, http.StatusPermanentRedirect))

	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		route := root + "/" + name
		if name == "page.html" {
			route = root
		}
		mux.Handle("GET "+route, newFileHandler(route, name, content))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read embedded files: %w", err)
	}

	return mux, nil
}

// newFileHandler returns a handler that serves an embedded file. Files without
// an extension are plain text.
func newFileHandler(route, name string, content []byte) http.Handler {
	mediaType := httpd.FileTypes[cmp.Or(path.Ext(name), ".txt")]
	file := httpd.NewStaticFile(mediaType, "no-cache", content)

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpd.RecordOf(r.Context()).Route = route
		w.Header().Set("Content-Security-Policy", policy)
		file.ServeHTTP(w, r)
	})
}
