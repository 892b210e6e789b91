package idtoken

import (
	"crypto/sha256"
	"encoding/binary"
	"testing"
	"time"
)

// TestTheCacheIsBounded fills the cache several times over while one token is
// presented again and again.
func TestTheCacheIsBounded(t *testing.T) {
	t.Parallel()
	var c cache
	now := time.Unix(1_000_000, 0)
	sum := func(n int) (s [sha256.Size]byte) { binary.LittleEndian.PutUint64(s[:], uint64(n)); return s }
	busy := verified{Claims{PersonID: "busy"}, now.Add(time.Minute)}
	c.putClaims(sum(0), busy)
	for n := 1; n <= 5*cacheSize; n++ {
		c.putClaims(sum(n), verified{until: now.Add(time.Minute)})
		if got, ok := c.getClaims(sum(0), now); !ok || got != busy.claims {
			t.Fatalf("after %d others the busy one is gone", n)
		}
		if len(c.young) > cacheSize || len(c.old) > cacheSize {
			t.Fatalf("the cache has %d and %d tokens", len(c.young), len(c.old))
		}
	}
	if _, ok := c.getClaims(sum(1), now); ok {
		t.Error("one that nobody presented is still there")
	}
	if _, ok := c.getClaims(sum(0), busy.until); ok {
		t.Error("one is there after its time")
	}
}
