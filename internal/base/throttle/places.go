package throttle

import "sync"

// Places limits the number of slots that each key may use at the same time.
type Places struct {
	perKey int

	mu    sync.Mutex
	taken map[string]int
}

// NewPlaces returns a limit of perKey slots for each key.
func NewPlaces(perKey int) *Places { return &Places{perKey: perKey, taken: map[string]int{}} }

// Take uses a slot until release is called, once. ok is false where none is free.
func (p *Places) Take(key string) (release func(), ok bool) {
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
func (p *Places) Count(key string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken[key]
}
