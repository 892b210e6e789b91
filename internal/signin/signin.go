// Package signin serves the pages that people open in a browser.
package signin

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"

	"atelier/internal/httpd"
	"atelier/internal/person"
	"atelier/internal/sqldb"
)

//go:embed pages/*.html
var files embed.FS

//go:embed style.css
var style []byte

var pages = template.Must(template.ParseFS(files, "pages/*.html"))

// New makes the handler of the pages. baseURL is where the API is.
func New(db *sqldb.DB, baseURL string) http.Handler {
	s := &server{db, baseURL}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /setup", s.setup)
	mux.HandleFunc("GET /style.css", s.style)
	return mux
}

type server struct {
	db      *sqldb.DB
	baseURL string
}

// setup shows how to make the first person to whoever has the link that the
// first start printed. Anybody else learns nothing, not even whether there is
// something to set up.
func (s *server) setup(w http.ResponseWriter, r *http.Request) {
	rec := httpd.RecordOf(r.Context())
	rec.Route = "/setup"
	var ok bool
	err := s.db.Read(r.Context(), func(tx *sqldb.Tx) (err error) {
		ok, err = person.MaySetup(r.Context(), tx, r.URL.Query().Get("token"))
		return err
	})
	switch {
	case err != nil:
		rec.Err = err
		show(w, http.StatusServiceUnavailable, "away.html", nil)
	case !ok:
		show(w, http.StatusNotFound, "missing.html", nil)
	default:
		show(w, http.StatusOK, "setup.html", s.baseURL)
	}
}

func (s *server) style(w http.ResponseWriter, r *http.Request) {
	httpd.RecordOf(r.Context()).Route = "/style.css"
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.Write(style)
}

// show renders a page whole before any of it is sent.
func show(w http.ResponseWriter, status int, page string, data any) {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, page, data); err != nil {
		panic(fmt.Errorf("render %s: %w", page, err)) // httpd answers and logs it
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	w.WriteHeader(status)
	w.Write(b.Bytes())
}
