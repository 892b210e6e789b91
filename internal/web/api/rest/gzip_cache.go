package rest

import (
	"sync"

	"atelier/internal/web/httpd"
)

// GzipCache caches the compressed forms of responses by their ETag, so that
// each is compressed only once.
type GzipCache struct {
	mu    sync.RWMutex
	forms map[string]*httpd.Gzip // by ETag
	size  int                    // total size in bytes
}

// maxGzipCacheBytes is the maximum size of the cache in bytes. A full cache is
// emptied.
const maxGzipCacheBytes = 4 << 20

// compressBody returns the compressed form of the body with this ETag, from
// the cache if possible.
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
