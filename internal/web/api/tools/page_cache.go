package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"atelier/internal/catalog/catalog"
	"atelier/internal/web/api/wire"
	"atelier/internal/web/httpd"
)

// pages keeps encoded pages of tools, so that a page costs its encoding once
// per catalog and view.
type pages struct {
	mu   sync.RWMutex
	of   *catalog.Snapshot
	page map[pageKey]page
	size int // bytes of all bodies
}

// pageKey names a page. start is where it begins in the list of the view and
// tag.
type pageKey struct {
	view         *catalog.View
	tag          string
	start, limit int
}

// page is an encoded page. Where more follow, the body ends where the cursor
// goes, since every caller gets a cursor of their own.
type page struct {
	body []byte
	tag  string
	last *catalog.Key // nil on the last page
}

// maxPageBytes bounds the memory of the pages; beyond it they are encoded anew.
const maxPageBytes = 16 << 20

// get gives the page after a key, from the start for nil.
func (c *pages) get(s *Server, audience catalog.Audience, tag string, after *catalog.Key, limit int) (page, error) {
	snap := s.Catalog.Snapshot()
	key := pageKey{view: snap.View(audience), tag: tag, limit: limit}
	tools := key.view.Tools
	if tag != "" {
		tools = key.view.Tagged(tag)
	}
	if after != nil {
		key.start, _ = slices.BinarySearchFunc(tools, *after, func(t *catalog.Tool, k catalog.Key) int {
			if t.Key().Compare(k) <= 0 {
				return -1
			}
			return 1
		})
	}
	if p, ok := c.find(snap, key); ok {
		return p, nil
	}
	p, err := s.encodePage(key.view, tools[key.start:], limit)
	if err == nil {
		c.keep(snap, key, p)
	}
	return p, err
}

func (c *pages) find(snap *catalog.Snapshot, key pageKey) (page, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.of != snap {
		return page{}, false
	}
	p, ok := c.page[key]
	return p, ok
}

func (c *pages) keep(snap *catalog.Snapshot, key pageKey, p page) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of != snap || c.size+len(p.body) > maxPageBytes {
		c.of = snap
		c.page = map[pageKey]page{}
		c.size = 0
	}
	c.page[key] = p
	c.size += len(p.body)
}

func (s *Server) encodePage(view *catalog.View, rest []*catalog.Tool, limit int) (page, error) {
	list := wire.ToolList{Data: []wire.Tool{}, HasMore: len(rest) > limit}
	for _, t := range rest[:min(limit, len(rest))] {
		list.Data = append(list.Data, s.asTool(view, t))
	}
	body, err := json.Marshal(list)
	if err != nil {
		return page{}, fmt.Errorf("encode page: %w", err)
	}
	p := page{body: body, tag: httpd.ETag(body)}
	if list.HasMore {
		const end = `null}` // of next_cursor, which comes last
		p.body = append(body[:len(body)-len(end)], '"')
		last := rest[limit-1].Key()
		p.last = &last
	}
	return p, nil
}
