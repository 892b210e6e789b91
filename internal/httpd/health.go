package httpd

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"
)

// pingTimeout bounds one look at what the service needs.
const pingTimeout = 3 * time.Second

// Health tells load balancers and operators how the process is.
type Health struct {
	// Pings are what the service needs, by name.
	Pings map[string]func(context.Context) error

	draining atomic.Bool
}

// Drain makes the process not ready for good.
func (h *Health) Drain() { h.draining.Store(true) }

// Check gives what is wrong by name, nothing when the process is ready.
func (h *Health) Check(ctx context.Context) map[string]error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	wrong := map[string]error{}
	for name, ping := range h.Pings {
		if err := ping(ctx); err != nil {
			wrong[name] = err
		}
	}
	return wrong
}

func (h *Health) alive(w http.ResponseWriter, r *http.Request) {
	RecordOf(r.Context()).Route = "/healthz"
	report(w, http.StatusOK, map[string]any{"status": "alive"})
}

// ready says yes only when a request could be served in full. What is wrong is
// named, not described: the page is open to anybody.
func (h *Health) ready(w http.ResponseWriter, r *http.Request) {
	rec := RecordOf(r.Context())
	rec.Route = "/readyz"
	if h.draining.Load() {
		report(w, http.StatusServiceUnavailable, map[string]any{"status": "stopping"})
		return
	}
	checks := map[string]string{}
	for name := range h.Pings {
		checks[name] = "ok"
	}
	status, word := http.StatusOK, "ready"
	for name, err := range h.Check(r.Context()) {
		checks[name] = "unreachable"
		status, word = http.StatusServiceUnavailable, "not ready"
		rec.Err = err
	}
	report(w, status, map[string]any{"status": word, "checks": checks})
}

func report(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}
