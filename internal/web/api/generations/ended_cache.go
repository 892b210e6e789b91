package generations

import "sync"

// maxEnded bounds the entries of an EndedCache.
const maxEnded = 4096

// cacheKey names a run that has ended, in one account and for one viewer.
type cacheKey struct{ runID, accountID, viewerID string }

// EndedCache holds the encoded records of runs that have ended, for the current
// second: within it the signed addresses come out the same. The remaining
// changes of such a run (webhook deliveries, expired files) appear up to a second
// late.
type EndedCache struct {
	mu     sync.Mutex
	second int64
	bodies map[cacheKey][]byte
}

// findBody returns the record that was kept in this second, or nil.
func (c *EndedCache) findBody(key cacheKey, second int64) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.second != second {
		return nil
	}
	return c.bodies[key]
}

// keepBody keeps a record for this second.
func (c *EndedCache) keepBody(key cacheKey, second int64, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.second != second || len(c.bodies) >= maxEnded {
		c.second = second
		c.bodies = map[cacheKey][]byte{}
	}
	c.bodies[key] = body
}

// DropAll empties the cache. Callers use it after they changed a run that has ended.
func (c *EndedCache) DropAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies = map[cacheKey][]byte{}
}
