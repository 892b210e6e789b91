package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"atelier/internal/catalog/catalog"
	"atelier/internal/web/api/wire"
	"atelier/internal/web/httpd"
)

// pageCache caches encoded pages of the list of tools, so that each page is
// encoded once for all callers with the same view of the catalog.
type pageCache struct {
	mu       sync.RWMutex
	snapshot *catalog.Snapshot
	pages    map[pageKey]encodedPage
	size     int // total size of the bodies in bytes
}

// pageKey identifies a page of the list of tools with a tag. start is the
// index of the first tool on the page.
type pageKey struct {
	view  *catalog.View
	tag   string
	start int
	limit int
}

// encodedPage is an encoded page of tools. If more pages follow, body ends
// before the value of next_cursor, because each caller gets a different
// cursor.
type encodedPage struct {
	body []byte
	tag  string           // ETag of body
	last *catalog.SortKey // sort key of the last tool on the page; nil if no page follows
}

// maxPageBytes is the maximum size of the cache in bytes. A full cache is
// emptied.
const maxPageBytes = 16 << 20

// encodedPage returns the page that begins after a sort key, or the first page
// if after is nil. It encodes the page if it is not cached.
func (h *Handler) encodedPage(view *catalog.View, tag string, after *catalog.SortKey, limit int) (encodedPage, error) {
	snapshot := h.Catalog.CurrentSnapshot()
	key := pageKey{view: view, tag: tag, limit: limit}
	tools := key.view.Tools
	if tag != "" {
		tools = key.view.ToolsByTag(tag)
	}
	if after != nil {
		key.start, _ = slices.BinarySearchFunc(tools, *after, func(t *catalog.Tool, k catalog.SortKey) int {
			if t.SortKey().Compare(k) <= 0 {
				return -1
			}
			return 1
		})
	}

	if page, ok := h.encoded.findPage(snapshot, key); ok {
		return page, nil
	}
	page, err := h.encodePage(key.view, tools[key.start:], limit)
	if err == nil {
		h.encoded.keepPage(snapshot, key, page)
	}
	return page, err
}

func (c *pageCache) findPage(snapshot *catalog.Snapshot, key pageKey) (encodedPage, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.snapshot != snapshot {
		return encodedPage{}, false
	}
	page, ok := c.pages[key]
	return page, ok
}

func (c *pageCache) keepPage(snapshot *catalog.Snapshot, key pageKey, page encodedPage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.snapshot != snapshot || c.size+len(page.body) > maxPageBytes {
		c.snapshot = snapshot
		c.pages = map[pageKey]encodedPage{}
		c.size = 0
	}
	c.pages[key] = page
	c.size += len(page.body)
}

func (h *Handler) encodePage(view *catalog.View, rest []*catalog.Tool, limit int) (encodedPage, error) {
	list := wire.ToolList{Data: []wire.Tool{}, HasMore: len(rest) > limit}
	for _, t := range rest[:min(limit, len(rest))] {
		list.Data = append(list.Data, h.asTool(view, t))
	}
	body, err := json.Marshal(list)
	if err != nil {
		return encodedPage{}, fmt.Errorf("encode page: %w", err)
	}

	page := encodedPage{body: body, tag: httpd.ETag(body)}
	if list.HasMore {
		const end = `null}` // the value of next_cursor, which is the last member
		page.body = append(body[:len(body)-len(end)], '"')
		last := rest[limit-1].SortKey()
		page.last = &last
	}
	return page, nil
}
