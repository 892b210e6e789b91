package httpd

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Where the health pages are.
const (
	aliveRoute = "/healthz"
	readyRoute = "/readyz"
)

const (
	// checkTimeout bounds one look at what the service needs.
	checkTimeout = 3 * time.Second
	// checkMaxAge is how long a look counts. Anybody may ask, and looking writes
	// a file and asks the database.
	checkMaxAge = time.Second
)

// Health tells load balancers and operators how the process is.
type Health struct {
	// Pings are what the service needs, by name.
	Pings map[string]func(context.Context) error
	// Notes are words about the service by name, which do not decide whether it
	// is ready.
	Notes map[string]func() string
	Now   func() time.Time

	draining atomic.Bool

	mu        sync.Mutex
	checkedAt time.Time        // when the pings were last sent
	failures  map[string]error // what came of it
}

// Drain makes the process not ready for good.
func (h *Health) Drain() { h.draining.Store(true) }

// Check gives what is wrong by name, nothing when the process is ready.
func (h *Health) Check(ctx context.Context) map[string]error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.checkedAt.IsZero() && h.Now().Sub(h.checkedAt) < checkMaxAge {
		return h.failures
	}
	// The answer is for others too, so nobody calls it off by leaving.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()
	var group sync.WaitGroup
	var mu sync.Mutex
	wrong := map[string]error{}
	for name, ping := range h.Pings {
		group.Go(func() {
			if err := ping(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				wrong[name] = err
			}
		})
	}
	group.Wait()
	h.checkedAt = h.Now()
	h.failures = wrong
	return wrong
}

func (h *Health) serveAlive(w http.ResponseWriter, r *http.Request) {
	RecordOf(r.Context()).Route = aliveRoute
	writeJSON(w, http.StatusOK, map[string]any{"status": "alive"})
}

// serveReady says yes only when a request could be served in full. What is wrong is
// named, not described: the page is open to anybody.
func (h *Health) serveReady(w http.ResponseWriter, r *http.Request) {
	rec := RecordOf(r.Context())
	rec.Route = readyRoute
	if h.draining.Load() {
		writeJSON(w, http.StatusServiceUnavailable, map[string]any{"status": "stopping"})
		return
	}
	checks := map[string]string{}
	for name := range h.Pings {
		checks[name] = "ok"
	}
	for name, note := range h.Notes {
		checks[name] = note()
	}
	status := http.StatusOK
	word := "ready"
	for name, err := range h.Check(r.Context()) {
		checks[name] = "unreachable"
		status = http.StatusServiceUnavailable
		word = "not ready"
		rec.Err = err
	}
	writeJSON(w, status, map[string]any{"status": word, "checks": checks})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}
