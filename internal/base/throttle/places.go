package throttle

import "sync"

// Slots limits how many operations each key may run at the same time.
type Slots struct {
	perKey int

	mu    sync.Mutex
	taken map[string]int
}

// NewSlots returns a limit of perKey slots for each key.
func NewSlots(perKey int) *Slots { return &Slots{perKey: perKey, taken: map[string]int{}} }

// Take occupies a slot of the key until release is called. release must be
// called exactly once. ok is false if all slots of the key are in use.
func (p *Slots) Take(key string) (release func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[key] >= p.perKey {
		return nil, false
	}
	p.taken[key]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.taken[key]--; p.taken[key] == 0 {
			delete(p.taken, key)
		}
	}, true
}

// Count returns the number of slots of a key that are in use.
func (p *Slots) Count(key string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken[key]
}
