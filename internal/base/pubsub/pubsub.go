// Package pubsub notifies subscribers in the same process. Follow returns a
// channel that receives a signal after each Notify. Subscribers must also poll
// the database, because changes made by other nodes cause no signal in this
// process.
package pubsub

import "sync"

// Hub has the subscribers by the id of the object that they follow. It is safe
// for concurrent use.
type Hub struct {
	mu        sync.Mutex
	followers map[string]map[chan struct{}]bool // channels of the subscribers, by id
}

// New returns a hub without subscribers.
func New() *Hub { return &Hub{followers: map[string]map[chan struct{}]bool{}} }

// Follow returns a channel that receives a signal when Notify is called with
// the same id, until stop is called. Several signals that were not received yet
// are merged into one.
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

// Notify signals all subscribers of an id.
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
