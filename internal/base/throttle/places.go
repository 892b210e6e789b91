package throttle

import "sync"

// Slots limits the number of slots that each key may use at the same time.
type Slots struct {
	perKey int

	mu    sync.Mutex
	taken map[string]int
}

// NewSlots returns a limit of perKey slots for each key.
func NewSlots(perKey int) *Slots { return &Slots{perKey: perKey, taken: map[string]int{}} }

// Take uses a slot until release is called, once. ok is false if no slot is
// free.
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

// Count returns the number of slots of a key in use.
func (p *Slots) Count(key string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken[key]
}
