// Package pubsub is in-process publish and subscribe. Follow returns a channel
// that Notify signals. Signals are best effort: followers also poll, because
// other nodes make changes too.
package pubsub

import "sync"

// Hub has the followers by the ids that they follow. It is safe for concurrent
// use.
type Hub struct {
	mu        sync.Mutex
	followers map[string]map[chan struct{}]bool // by id
}

// New returns a hub without followers.
func New() *Hub { return &Hub{followers: map[string]map[chan struct{}]bool{}} }

// Follow returns a channel that receives a signal when Notify is called with the
// id, until stop is called. Signals that were not received yet count as one.
func (h *Hub) Follow(id string) (changed <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.followers[id] == nil {
		h.followers[id] = map[chan struct{}]bool{}
	}
	h.followers[id][ch] = true
	return ch, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.followers[id], ch)
		if len(h.followers[id]) == 0 {
			delete(h.followers, id)
		}
	}
}

// Notify signals all followers of an id.
func (h *Hub) Notify(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ch := range h.followers[id] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
