package webhook_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/notify/webhook"
	"atelier/internal/testkit/watch"
)

func TestMetrics(t *testing.T) {
	each(t, func(w fixture) {
		registry := prometheus.NewRegistry()
		r := newReceiver(w, status(200))
		o := w.options(r)
		o.Metrics = registry
		o.Schedule = nil // one attempt is all
		backlog := func() webhook.Backlog {
			return dbtest.Get(w.Fixture, func(tx *sqldb.Tx) (webhook.Backlog, error) { return webhook.ReadBacklog(w.Context(), tx) })
		}
		if b := backlog(); b != (webhook.Backlog{}) {
			w.Errorf("backlog of nothing = %+v", b)
		}
		delivered := w.run(r.at("a"))
		if b := backlog(); b.Waiting != 1 {
			w.Errorf("backlog = %+v, want one event", b)
		}
		_, stop := w.start(o)
		w.until(delivered, "delivered", 1)
		r.then(status(410))
		w.until(w.run(r.at("b")), "gone", 1)
		r.then(status(500))
		w.until(w.run(r.at("c")), "exhausted", 1)
		stop()
		if b := backlog(); b.Waiting != 0 || !b.Due.IsZero() {
			w.Errorf("backlog at the end = %+v", b)
		}

		want := `
			# HELP atelier_webhook_attempts_total Attempts of this node to deliver an event, by outcome.
			# TYPE atelier_webhook_attempts_total counter
		`
		for _, outcome := range []string{"blocked", "body", "delivered", "dns", "internal", "redirect", "refused", "status", "timeout", "tls"} {
			n := map[string]string{"delivered": "1", "status": "2"}[outcome]
			if n == "" {
				n = "0"
			}
			want += `atelier_webhook_attempts_total{outcome="` + outcome + `"} ` + n + "\n"
		}
		want += `
			# HELP atelier_webhook_events_ended_total Events that this node finished, by outcome.
			# TYPE atelier_webhook_events_ended_total counter
			atelier_webhook_events_ended_total{state="delivered"} 1
			atelier_webhook_events_ended_total{state="exhausted"} 1
			atelier_webhook_events_ended_total{state="gone"} 1
		`
		watch.Until(w.T, "the counts", func() bool {
			return testutil.GatherAndCompare(registry, strings.NewReader(want), "atelier_webhook_attempts_total", "atelier_webhook_events_ended_total") == nil
		})
		if n, err := testutil.GatherAndCount(registry, "atelier_webhook_attempt_seconds"); n != 1 || err != nil {
			w.Errorf("times = %d, %v", n, err)
		}
	})
}
