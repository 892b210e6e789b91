package generations

import "sync"

// maxEnded is the maximum number of entries of an EndedCache.
const maxEnded = 4096

// cacheKey identifies the response about an ended run for one account and one
// viewer.
type cacheKey struct {
	runID, accountID, viewerID string
	withInputs                 bool
}

// EndedCache caches the encoded responses about runs that have ended, for the
// current second, in which the signed URLs stay the same. Later changes of
// such a run (webhook deliveries, expired files) appear up to a second late.
type EndedCache struct {
	mu     sync.Mutex
	second int64
	bodies map[cacheKey][]byte
}

// findBody returns the response that was cached in this second, or nil.
func (c *EndedCache) findBody(key cacheKey, second int64) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.second != second {
		return nil
	}
	return c.bodies[key]
}

// keepBody caches a response for this second.
func (c *EndedCache) keepBody(key cacheKey, second int64, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.second != second || len(c.bodies) >= maxEnded {
		c.second = second
		c.bodies = map[cacheKey][]byte{}
	}
	c.bodies[key] = body
}

// DropAll empties the cache. Call it after changing a run that has ended.
func (c *EndedCache) DropAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies = map[cacheKey][]byte{}
}
