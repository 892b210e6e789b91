package httpd

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
)

// StaticFile is a file in memory that does not change while the program runs.
type StaticFile struct {
	mediaType    string
	cacheControl string
	content      []byte
	tag          string
	compress     func() []byte
}

// NewStaticFile returns a file with the given Content-Type and Cache-Control
// headers.
func NewStaticFile(mediaType, cacheControl string, content []byte) *StaticFile {
	return &StaticFile{
		mediaType:    mediaType,
		cacheControl: cacheControl,
		content:      content,
		tag:          ETag(content),
		compress: sync.OnceValue(func() []byte {
			zipped := Compress(content)
			return slices.Concat(zipped.StreamHead(), zipped.StreamTail(nil))
		}),
	}
}

// ServeHTTP responds with the file, or with 304 if the client has it. The
// content is compressed once, for the first client that accepts gzip.
func (f *StaticFile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.mediaType)
	h.Set("Cache-Control", f.cacheControl)
	if len(f.content) < MinGzipBytes || !isCompressible[f.mediaType] {
		h.Set("ETag", f.tag)
		ServeBytes(w, r, f.content)
		return
	}

	h.Set("Vary", "Accept-Encoding")
	if !AcceptsGzip(r) {
		h.Set("ETag", f.tag)
		ServeBytes(w, r, f.content)
		return
	}
	compressed := f.compress()
	h.Set("ETag", GzipETag(f.tag))
	h.Set("Content-Encoding", "gzip")
	h.Set("Content-Length", strconv.Itoa(len(compressed)))
	ServeBytes(w, r, compressed)
}

// FileTypes maps the extension of a static file's name to its Content-Type.
var FileTypes = map[string]string{
	".css":         "text/css; charset=utf-8",
	".html":        "text/html; charset=utf-8",
	".ico":         "image/x-icon",
	".jpg":         "image/jpeg",
	".js":          "text/javascript; charset=utf-8",
	".json":        "application/json",
	".png":         "image/png",
	".svg":         "image/svg+xml",
	".txt":         "text/plain; charset=utf-8",
	".webmanifest": "application/manifest+json",
	".woff2":       "font/woff2",
}

// isCompressible has the types of FileTypes that are text. The others are
// compressed already.
var isCompressible = map[string]bool{
	FileTypes[".css"]:         true,
	FileTypes[".html"]:        true,
	FileTypes[".js"]:          true,
	FileTypes[".json"]:        true,
	FileTypes[".svg"]:         true,
	FileTypes[".txt"]:         true,
	FileTypes[".webmanifest"]: true,
}
