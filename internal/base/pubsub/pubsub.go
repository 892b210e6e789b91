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
	observers map[*func(id string)]bool         // functions that are called with every id
}

// New returns a hub without subscribers.
func New() *Hub {
	return &Hub{followers: map[string]map[chan struct{}]bool{}, observers: map[*func(id string)]bool{}}
}

// Follow returns a channel that receives a signal when Notify is called with
// one of the ids, until stop is called. Several signals that were not received
// yet are merged into one.
func (h *Hub) Follow(ids ...string) (changed <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		if h.followers[id] == nil {
			h.followers[id] = map[chan struct{}]bool{}
		}
		h.followers[id][ch] = true
	}
	return ch, func() { h.unfollow(ch, ids) }
}

func (h *Hub) unfollow(ch chan struct{}, ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		delete(h.followers[id], ch)
		if len(h.followers[id]) == 0 {
			delete(h.followers, id)
		}
	}
}

// Observe calls fn with the id of every Notify, until stop is called. fn must
// be quick and must not call the hub.
func (h *Hub) Observe(fn func(id string)) (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.observers[&fn] = true
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.observers, &fn)
	}
}

// Notify signals all subscribers of the ids.
func (h *Hub) Notify(ids ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		for ch := range h.followers[id] {
			select {
			case ch <- struct{}{}:
			default:
			}
		}
		for fn := range h.observers {
			(*fn)(id)
		}
	}
}
