package idtoken

import (
	"crypto/sha256"
	"sync"
	"time"
)

// cacheSize is the number of tokens in one generation of the cache.
const cacheSize = 10_000

// cache holds tokens whose signatures were verified, because verification costs
// a hundred times as much as a lookup. It stores hashes, not tokens. Entries
// that are not used are dropped by replacing the older of two generations of
// maps, without timers.
type cache struct {
	mu         sync.Mutex
	young, old map[[sha256.Size]byte]verified
}

// verified has the claims of a token and the time until which they are valid.
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
