package httpd

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// The URL paths of the health checks.
const (
	aliveRoute = "/healthz"
	readyRoute = "/readyz"
)

const (
	// checkTimeout is the time limit for running all readiness checks once.
	checkTimeout = 3 * time.Second
	// checkMaxAge is the time for which the result of the readiness checks is
	// reused. The endpoint is public, and the checks write a file and query
	// the database.
	checkMaxAge = time.Second
)

// Health serves the liveness and readiness checks of the process.
type Health struct {
	// Checks are the checks of the service's dependencies, by name.
	Checks map[string]func(context.Context) error
	// Details return short strings about the service that the readiness
	// response shows, by name. They do not decide whether the service is
	// ready.
	Details map[string]func() string
	Now     func() time.Time

	draining atomic.Bool

	mu        sync.Mutex
	checkedAt time.Time        // when Checks last ran
	failures  map[string]error // errors of the checks at that time, by name
}

// MarkDraining makes the readiness check fail from now on.
func (h *Health) MarkDraining() { h.draining.Store(true) }

// CheckDependencies runs Checks, or reuses a recent result, and returns the
// errors by the name of the check. The map is empty if all checks passed.
func (h *Health) CheckDependencies(ctx context.Context) map[string]error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.checkedAt.IsZero() && h.Now().Sub(h.checkedAt) < checkMaxAge {
		return h.failures
	}
	// A client that disconnects must not cancel the checks, because other
	// callers reuse their result.
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

// serveAlive serves GET /healthz.
func (h *Health) serveAlive(w http.ResponseWriter, r *http.Request) {
	RecordOf(r.Context()).Route = aliveRoute
	writeJSON(w, http.StatusOK, map[string]any{"status": "alive"})
}

// serveReady serves GET /readyz. The status is 200 if every check passes. The
// response names failed checks without their errors, because the endpoint is
// public.
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
