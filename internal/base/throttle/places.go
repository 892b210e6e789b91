package throttle

import "sync"

// Places bounds how much of something each key may have at the same time.
type Places struct {
	most int

	mu    sync.Mutex
	taken map[string]int
}

// NewPlaces gives every key the same number of places.
func NewPlaces(most int) *Places { return &Places{most: most, taken: map[string]int{}} }

// Take uses a place until leave is called, once. ok is false where none is
// left.
func (p *Places) Take(key string) (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[key] >= p.most {
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

// Count tells how many places of a key are taken.
func (p *Places) Count(key string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken[key]
}
