package api

import (
	"sync"

	"atelier/internal/web/httpd"
)

// zipped keeps the compressed forms of tagged answers, so that each is
// compressed once.
type zipped struct {
	mu   sync.RWMutex
	form map[string]*httpd.Gzip // by tag
	size int                    // bytes of all forms
}

// maxZippedBytes bounds the memory of the forms; beyond it they are made anew.
const maxZippedBytes = 4 << 20

// get gives the compressed form of what tag names.
func (z *zipped) get(tag string, body []byte) *httpd.Gzip {
	z.mu.RLock()
	form, ok := z.form[tag]
	z.mu.RUnlock()
	if ok {
		return form
	}

	form = httpd.Compress(body)
	size := len(form.Stream())
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.form == nil || z.size+size > maxZippedBytes {
		z.form = map[string]*httpd.Gzip{}
		z.size = 0
	}
	if _, ok := z.form[tag]; !ok {
		z.form[tag] = form
		z.size += size
	}
	return form
}
