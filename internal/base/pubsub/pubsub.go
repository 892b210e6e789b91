// Package pubsub tells those in this process who follow something that it has
// moved. It is a short cut: whoever follows looks now and then anyway, since
// other nodes move things too.
package pubsub

import "sync"

// Hub is for things with ids. It is safe for concurrent use.
type Hub struct {
	mu    sync.Mutex
	heard map[string]map[chan struct{}]bool // by id
}

// New makes a hub that nobody listens to.
func New() *Hub { return &Hub{heard: map[string]map[chan struct{}]bool{}} }

// Follow gives a channel that hears of one thing until stop is called. News that
// come while nobody listens count as one.
func (h *Hub) Follow(id string) (news <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.heard[id] == nil {
		h.heard[id] = map[chan struct{}]bool{}
	}
	h.heard[id][ch] = true
	return ch, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.heard[id], ch)
		if len(h.heard[id]) == 0 {
			delete(h.heard, id)
		}
	}
}

// Tell lets all who follow it look.
func (h *Hub) Tell(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ch := range h.heard[id] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
