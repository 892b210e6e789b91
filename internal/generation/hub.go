package generation

import "sync"

// Hub tells those in this process who follow a run that it has moved. It is a
// short cut: whoever follows looks at the run now and then anyway, since other
// nodes move runs too.
type Hub struct {
	mu    sync.Mutex
	heard map[string]map[chan struct{}]bool // by run
}

// NewHub makes a hub that nobody listens to.
func NewHub() *Hub { return &Hub{heard: map[string]map[chan struct{}]bool{}} }

// Follow gives a channel that hears of a run until stop is called. News that
// come while nobody listens count as one.
func (h *Hub) Follow(runID string) (news <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.heard[runID] == nil {
		h.heard[runID] = map[chan struct{}]bool{}
	}
	h.heard[runID][ch] = true
	return ch, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.heard[runID], ch)
		if len(h.heard[runID]) == 0 {
			delete(h.heard, runID)
		}
	}
}

// Tell lets all who follow the run look at it.
func (h *Hub) Tell(runID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ch := range h.heard[runID] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
