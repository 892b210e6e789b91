package httpd

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// The paths of the health checks.
const (
	aliveRoute = "/healthz"
	readyRoute = "/readyz"
)

const (
	// checkTimeout limits one round of checks.
	checkTimeout = 3 * time.Second
	// checkMaxAge is how long the result of a round is reused. The paths are public,
	// and a round writes a file and queries the database.
	checkMaxAge = time.Second
)

// Health serves the liveness and readiness checks of the process.
type Health struct {
	// Checks check the dependencies of the service, by name.
	Checks map[string]func(context.Context) error
	// Details add a short text about the service to the readiness check, by
	// name. They do not decide whether the service is ready.
	Details map[string]func() string
	Now     func() time.Time

	draining atomic.Bool

	mu        sync.Mutex
	checkedAt time.Time        // when Checks last ran
	failures  map[string]error // of that round, by name
}

// MarkDraining makes the process not ready, permanently.
func (h *Health) MarkDraining() { h.draining.Store(true) }

// CheckDependencies runs Checks, or reuses a recent result, and returns the
// errors by name. The map is empty when the process is ready.
func (h *Health) CheckDependencies(ctx context.Context) map[string]error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.checkedAt.IsZero() && h.Now().Sub(h.checkedAt) < checkMaxAge {
		return h.failures
	}
	// Other callers reuse the result, so a client that disconnects does not cancel it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()

	var group sync.WaitGroup
	var mu sync.Mutex
	wrong := map[string]error{}
	for name, ping := range h.Checks {
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

// serveAlive answers GET /healthz.
func (h *Health) serveAlive(w http.ResponseWriter, r *http.Request) {
	RecordOf(r.Context()).Route = aliveRoute
	writeJSON(w, http.StatusOK, map[string]any{"status": "alive"})
}

// serveReady answers GET /readyz with 200 when every check passes. Failed checks are
// named without their error, because the path is public.
func (h *Health) serveReady(w http.ResponseWriter, r *http.Request) {
	rec := RecordOf(r.Context())
	rec.Route = readyRoute
	if h.draining.Load() {
		writeJSON(w, http.StatusServiceUnavailable, map[string]any{"status": "stopping"})
		return
	}
	checks := map[string]string{}
	for name := range h.Checks {
		checks[name] = "ok"
	}
	for name, note := range h.Details {
		checks[name] = note()
	}
	status := http.StatusOK
	word := "ready"
	for name, err := range h.CheckDependencies(r.Context()) {
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
	_ = json.NewEncoder(w).Encode(v)
}
