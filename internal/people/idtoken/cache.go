package idtoken

import (
	"crypto/sha256"
	"sync"
	"time"
)

// cacheSize is how many tokens a generation of the cache holds.
const cacheSize = 10_000

// cache remembers tokens whose signatures were checked, which costs a hundred
// times as much as finding one here. It keeps their hashes, not the tokens. Two
// generations of maps forget what nobody presents, without timers.
type cache struct {
	mu         sync.Mutex
	young, old map[[sha256.Size]byte]verified
}

// verified is what a token said, and until when that may be believed.
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
