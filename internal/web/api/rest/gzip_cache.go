package rest

import (
	"sync"

	"atelier/internal/web/httpd"
)

// GzipCache keeps the compressed forms of responses with an ETag, so that each
// is compressed once.
type GzipCache struct {
	mu    sync.RWMutex
	forms map[string]*httpd.Gzip // by ETag
	size  int                    // bytes of all forms
}

// maxGzipCacheBytes bounds the size of the cache. A full cache is emptied.
const maxGzipCacheBytes = 4 << 20

// compressBody returns the compressed form of the body with this ETag.
func (c *GzipCache) compressBody(tag string, body []byte) *httpd.Gzip {
	c.mu.RLock()
	form, ok := c.forms[tag]
	c.mu.RUnlock()
	if ok {
		return form
	}

	form = httpd.Compress(body)
	size := len(form.StreamHead())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forms == nil || c.size+size > maxGzipCacheBytes {
		c.forms = map[string]*httpd.Gzip{}
		c.size = 0
	}
	if _, ok := c.forms[tag]; !ok {
		c.forms[tag] = form
		c.size += size
	}
	return form
}
