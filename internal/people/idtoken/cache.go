package idtoken

import (
	"crypto/sha256"
	"sync"
	"time"
)

// cacheSize is the maximum number of tokens in each of the cache's two maps.
const cacheSize = 10_000

// cache contains the claims of tokens whose signatures were verified, because
// verifying a signature costs a hundred times as much as a lookup. The keys are
// hashes of the tokens. When the map young is full, it replaces the map old.
// This drops entries that were not used recently, without timers.
type cache struct {
	mu         sync.Mutex
	young, old map[[sha256.Size]byte]verified
}

// verified contains the claims of a token and the expiry time of the cache
// entry.
type verified struct {
	claims Claims
	until  time.Time
}

func (c *cache) getClaims(sum [sha256.Size]byte, now time.Time) (Claims, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.young[sum]
	if !ok {
		if v, ok = c.old[sum]; ok {
			c.addEntry(sum, v)
		}
	}
	return v.claims, ok && now.Before(v.until)
}

func (c *cache) putClaims(sum [sha256.Size]byte, v verified) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addEntry(sum, v)
}

func (c *cache) addEntry(sum [sha256.Size]byte, v verified) {
	if c.young == nil || len(c.young) >= cacheSize {
		c.old = c.young
		c.young = map[[sha256.Size]byte]verified{}
	}
	c.young[sum] = v
}
