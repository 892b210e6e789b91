package studio_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"atelier/internal/web/httpd"
	"atelier/internal/web/studio"
	"atelier/web"
)

// script is a file that is large enough to be compressed.
var script = strings.Repeat("export const answer = 42\n", 200)

// built is a small built studio.
var built = fstest.MapFS{
	"index.html":             {Data: []byte("<!doctype html><title>Atelier</title>" + strings.Repeat("<p>studio</p>", 100))},
	"assets/index-a1b2.js":   {Data: []byte(script)},
	"assets/sans-c3d4.woff2": {Data: []byte(strings.Repeat("font", 1000))},
	"assets/deep/hidden.js":  {Data: []byte("hidden")},
	"icons/atelier-192.png":  {Data: []byte("picture")},
	"icons/atelier.svg":      {Data: []byte("<svg/>")},
	"manifest.webmanifest":   {Data: []byte("{}")},
	"sw.js":                  {Data: []byte("self")},
	"notes.txt":              {Data: []byte("not for everyone")},
	".vite/manifest.json":    {Data: []byte("{}")},
}

func open(t *testing.T, o studio.Options) *studio.Site {
	t.Helper()
	site, err := studio.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return site
}

func small(t *testing.T) *studio.Site {
	t.Helper()
	return open(t, studio.Options{Files: built, AppURL: "https://atelier.example", MediaURL: "https://atelier.example"})
}

// get requests a file; header are pairs of name and value.
func get(site *studio.Site, method, address string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, address, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	if address == "/" {
		site.ServeIndex(w, r)
	} else if !site.ServeFile(w, r) {
		w.WriteHeader(http.StatusNotFound)
	}
	return w
}

func TestFiles(t *testing.T) {
	t.Parallel()
	const forever = "public, max-age=31536000, immutable"
	site := small(t)
	for address, want := range map[string][2]string{
		"/":                       {"text/html; charset=utf-8", "no-cache"},
		"/assets/index-a1b2.js":   {"text/javascript; charset=utf-8", forever},
		"/assets/sans-c3d4.woff2": {"font/woff2", forever},
		"/icons/atelier-192.png":  {"image/png", "no-cache"},
		"/icons/atelier.svg":      {"image/svg+xml", "no-cache"},
		"/manifest.webmanifest":   {"application/manifest+json", "no-cache"},
		"/sw.js":                  {"text/javascript; charset=utf-8", "no-cache"},
	} {
		name := strings.TrimPrefix(address, "/")
		if name == "" {
			name = "index.html"
		}
		content := string(built[name].Data)
		w := get(site, "GET", address)
		if w.Code != 200 || w.Body.String() != content {
			t.Errorf("%s = %d %q", address, w.Code, w.Body)
		}
		if got := [2]string{w.Header().Get("Content-Type"), w.Header().Get("Cache-Control")}; got != want {
			t.Errorf("%s has %q, want %q", address, got, want)
		}
		if head := get(site, "HEAD", address); head.Code != 200 || head.Body.Len() != 0 || head.Header().Get("ETag") != w.Header().Get("ETag") {
			t.Errorf("HEAD %s = %d %q", address, head.Code, head.Body)
		}
	}
}

func TestOtherAddresses(t *testing.T) {
	t.Parallel()
	site := small(t)
	for _, address := range []string{
		"/assets/", "/assets", "/assets/none.js", "/assets/deep/hidden.js", "/assets/../notes.txt", "/icons/", "/notes.txt", "/index.html", "/.vite/manifest.json",
		"/favicon.ico", "/assets/index-a1b2.js/", "/assets//index-a1b2.js",
	} {
		if w := get(site, "GET", address); w.Code != 404 || w.Body.Len() != 0 {
			t.Errorf("%s = %d %q", address, w.Code, w.Body)
		}
	}
}

func TestCompression(t *testing.T) {
	t.Parallel()
	site := small(t)
	plain := get(site, "GET", "/assets/index-a1b2.js")
	w := get(site, "GET", "/assets/index-a1b2.js", "Accept-Encoding", "br, gzip")
	if w.Header().Get("Content-Encoding") != "gzip" || w.Header().Get("Vary") != "Accept-Encoding" || w.Body.Len() >= len(script)/2 {
		t.Fatalf("headers = %v, %d bytes", w.Header(), w.Body.Len())
	}
	r, err := gzip.NewReader(bytes.NewReader(w.Body.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != script {
		t.Errorf("content = %q, %v", text, err)
	}
	if tag := w.Header().Get("ETag"); tag == plain.Header().Get("ETag") || tag == "" {
		t.Errorf("both forms have the ETag %s", tag)
	}
	if font := get(site, "GET", "/assets/sans-c3d4.woff2", "Accept-Encoding", "gzip"); font.Header().Get("Content-Encoding") != "" {
		t.Error("a font is compressed twice")
	}
}

func TestUnchangedFiles(t *testing.T) {
	t.Parallel()
	site := small(t)
	for _, address := range []string{"/", "/assets/index-a1b2.js", "/icons/atelier.svg"} {
		for _, encoding := range []string{"identity", "gzip"} {
			tag := get(site, "GET", address, "Accept-Encoding", encoding).Header().Get("ETag")
			w := get(site, "GET", address, "Accept-Encoding", encoding, "If-None-Match", tag)
			if w.Code != 304 || w.Body.Len() != 0 {
				t.Errorf("%s with %s = %d, %d bytes", address, tag, w.Code, w.Body.Len())
			}
			if w := get(site, "GET", address, "Accept-Encoding", encoding, "If-None-Match", `"another"`); w.Code != 200 {
				t.Errorf("%s with another ETag = %d", address, w.Code)
			}
		}
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	const start = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
	const end = "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
	const own = start + "connect-src 'self'; img-src 'self' blob:; media-src 'self' blob:; " + end
	const other = start + "connect-src 'self' https://media.example:8443; img-src 'self' blob: https://media.example:8443; media-src 'self' blob: https://media.example:8443; " + end
	const store = start + "connect-src 'self' https://s3.example; img-src 'self' blob: https://s3.example; media-src 'self' blob: https://s3.example; " + end
	for _, tt := range []struct{ app, media, store, want string }{
		{"https://atelier.example", "https://atelier.example", "", own},
		{"https://atelier.example", "https://atelier.example/files", "", own},
		{"https://atelier.example/studio", "https://atelier.example", "", own},
		{"https://atelier.example", "https://media.example:8443/files", "", other},
		{"https://atelier.example", "https://atelier.example", "https://s3.example", store},
	} {
		site := open(t, studio.Options{Files: built, AppURL: tt.app, MediaURL: tt.media, StoreURL: tt.store})
		for _, address := range []string{"/", "/assets/index-a1b2.js", "/sw.js"} {
			h := get(site, "GET", address).Header()
			if got := h.Get("Content-Security-Policy"); got != tt.want {
				t.Errorf("%s of %s with media at %s:\n%s\nwant\n%s", address, tt.app, tt.media, got, tt.want)
			}
			if h.Get("Referrer-Policy") != "same-origin" || h.Get("Permissions-Policy") != "camera=(), microphone=(), geolocation=(), payment=()" {
				t.Errorf("%s: headers = %v", address, h)
			}
		}
	}
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	const at = "https://atelier.example"
	for name, o := range map[string]studio.Options{
		"no start page": {Files: fstest.MapFS{"sw.js": {}}, AppURL: at, MediaURL: at},
		"no app_url":    {Files: built, MediaURL: at},
		"no media.url":  {Files: built, AppURL: at},
		"another kind":  {Files: built, AppURL: at, MediaURL: "ftp://media.example"},
	} {
		if _, err := studio.New(o); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// TestBuiltFiles checks that every file of the built studio has an address and
// a type.
func TestBuiltFiles(t *testing.T) {
	t.Parallel()
	site := open(t, studio.Options{Files: web.Dist(), AppURL: "https://atelier.example", MediaURL: "https://atelier.example"})
	files := 0
	err := fs.WalkDir(web.Dist(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == "index.html" {
			return err
		}
		files++
		if httpd.FileTypes[path.Ext(name)] == "" {
			t.Errorf("%s has no media type", name)
		}
		if w := get(site, "GET", "/"+name); w.Code != 200 {
			t.Errorf("/%s = %d", name, w.Code)
		}
		return nil
	})
	if err != nil || files < 8 {
		t.Errorf("%d files, %v", files, err)
	}
	for _, name := range []string{"favicon.ico", "manifest.webmanifest", "icons/atelier.svg", "icons/atelier-192.png", "icons/atelier-512.png", "icons/atelier-maskable-192.png", "icons/atelier-maskable-512.png"} {
		if w := get(site, "GET", "/"+name); w.Code != 200 {
			t.Errorf("/%s = %d", name, w.Code)
		}
	}
}
