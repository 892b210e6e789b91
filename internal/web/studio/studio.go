// Package studio serves the files of the studio, the web app in web/ that
// people use in the browser: the start page index.html, the scripts, styles and
// fonts in assets/, and a few files at fixed addresses.
//
// Package pages decides who gets the start page. The other files contain no
// data of anyone and are served to everyone.
package studio

import (
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"

	"atelier/internal/web/httpd"
)

// Options are the files and settings of a Site.
type Options struct {
	// Files are the built files; see web.Dist.
	Files fs.FS
	// AppURL is the public URL of the studio, and MediaURL is the public URL
	// of media files. If their origins differ, the Content-Security-Policy
	// also allows media of the second.
	AppURL, MediaURL string
	// StoreURL is the URL of the file store to which requests for media files
	// are redirected. It is empty if they are not.
	StoreURL string
}

// Site is the studio: its files, ready to be sent.
type Site struct {
	policy string
	index  *httpd.StaticFile
	files  map[string]*httpd.StaticFile // by URL path
}

// indexName is the name of the start page among the files.
const indexName = "index.html"

// FilePatterns are the URL patterns of the files other than index.html.
// Built files at other addresses are not served.
var FilePatterns = []string{
	"/assets/{file}",
	"/icons/{file}",
	"/favicon.ico",
	"/manifest.webmanifest",
	"/sw.js",
}

const (
	// immutable is the Cache-Control of files in assets/, whose names change
	// with their content.
	immutable = "public, max-age=31536000, immutable"
	// revalidated is the Cache-Control of the other files.
	revalidated = "no-cache"
)

// permissions is the Permissions-Policy of the studio.
const permissions = "camera=(), microphone=(), geolocation=(), payment=()"

// New reads the files of the studio.
func New(o Options) (*Site, error) {
	policy, err := newPolicy(o.AppURL, o.MediaURL, o.StoreURL)
	if err != nil {
		return nil, err
	}
	s := &Site{policy: policy, files: map[string]*httpd.StaticFile{}}

	err = fs.WalkDir(o.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(o.Files, name)
		if err != nil {
			return err
		}
		s.addFile(name, content)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the studio's files: %w", err)
	}
	if s.index == nil {
		return nil, fmt.Errorf("the studio's files lack %s", indexName)
	}
	return s, nil
}

// addFile adds a file if it has an address.
func (s *Site) addFile(name string, content []byte) {
	address := "/" + name
	cacheControl := revalidated
	if strings.HasPrefix(address, "/assets/") {
		cacheControl = immutable
	}
	file := httpd.NewStaticFile(httpd.FileTypes[path.Ext(name)], cacheControl, content)
	switch {
	case name == indexName:
		s.index = file
	case hasAddress(address):
		s.files[address] = file
	}
}

// hasAddress reports whether one of FilePatterns matches address.
func hasAddress(address string) bool {
	return slices.ContainsFunc(FilePatterns, func(pattern string) bool {
		folder, ok := strings.CutSuffix(pattern, "{file}")
		return address == pattern || ok && path.Dir(address)+"/" == folder
	})
}

// newPolicy returns the Content-Security-Policy of the studio: files of this
// site only, no inline script or style, and no text that becomes script.
func newPolicy(appURL, mediaURL, storeURL string) (string, error) {
	addresses := []string{appURL, mediaURL}
	if storeURL != "" {
		addresses = append(addresses, storeURL)
	}
	media := "" // the origins of files other than the studio's own, each after a space
	for _, address := range addresses {
		origin := httpd.Origin(address)
		if origin == "" {
			return "", fmt.Errorf("the studio's address %q is not an http or https URL", address)
		}
		if origin != httpd.Origin(appURL) {
			media += " " + origin
		}
	}

	return strings.Join([]string{
		"default-src 'none'",
		"script-src 'self'",
		"style-src 'self'",
		"font-src 'self'",
		"connect-src 'self'" + media,
		"img-src 'self' blob:" + media,
		"media-src 'self' blob:" + media,
		"manifest-src 'self'",
		"form-action 'self'",
		"base-uri 'none'",
		"frame-ancestors 'none'",
		"require-trusted-types-for 'script'",
		"trusted-types 'none'",
	}, "; "), nil
}

// ServeIndex responds with the start page.
func (s *Site) ServeIndex(w http.ResponseWriter, r *http.Request) { s.serve(s.index, w, r) }

// ServeFile responds with the file at the request's path. It returns false,
// without a response, if there is none.
func (s *Site) ServeFile(w http.ResponseWriter, r *http.Request) bool {
	file, ok := s.files[r.URL.Path]
	if ok {
		s.serve(file, w, r)
	}
	return ok
}

// serve responds with a file. All files have the policy: it also applies to
// pictures that are opened on their own, and to the service worker.
func (s *Site) serve(file *httpd.StaticFile, w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", s.policy)
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Permissions-Policy", permissions)
	file.ServeHTTP(w, r)
}
