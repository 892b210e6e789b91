package webhook

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the Prometheus metrics of a sender. They have no label for the
// receiver, because the number of receivers is unbounded.
type metrics struct {
	attempts *prometheus.CounterVec
	seconds  prometheus.Histogram
	ended    *prometheus.CounterVec
}

// outcomes are the values of the label "outcome".
var outcomes = []string{Delivered, failTimeout, failRefused, failDNS, failTLS, failBlocked, failRedirect, failStatus, failBody, failInternal}

func newMetrics(to prometheus.Registerer) *metrics {
	m := &metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atelier_webhook_attempts_total", Help: "Attempts of this node to deliver an event, by outcome.",
		}, []string{"outcome"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "atelier_webhook_attempt_seconds", Help: "Duration of attempts to deliver an event.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15},
		}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atelier_webhook_events_ended_total", Help: "Events that this node finished, by outcome.",
		}, []string{"state"}),
	}
	for _, o := range outcomes {
		m.attempts.WithLabelValues(o)
	}
	for _, state := range []string{Delivered, Exhausted, Gone} {
		m.ended.WithLabelValues(state)
	}
	if to != nil {
		to.MustRegister(m.attempts, m.seconds, m.ended)
	}
	return m
}

// countAttempt counts an attempt in the metrics.
func (m *metrics) countAttempt(o outcome) {
	word := o.word
	if o.isDelivered() {
		word = Delivered
	}
	m.attempts.WithLabelValues(word).Inc()
	m.seconds.Observe(o.took.Seconds())
}
