package runner

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"atelier/internal/engine"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
)

// metrics are the Prometheus metrics of a runner. They are labelled by engine,
// because the number of engines is small.
type metrics struct {
	running *prometheus.GaugeVec
	ended   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	servers *prometheus.GaugeVec
	places  *prometheus.GaugeVec
}

// elsewhere is the label for the outcome of a run that another worker
// continues.
const elsewhere = "elsewhere"

// newMetrics returns the metrics of a node with these slots. All series are
// created with the value zero, because rates and alerts miss the first value of
// a series that appears later.
func newMetrics(to prometheus.Registerer, slots map[string]engine.Slots) *metrics {
	m := &metrics{
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "atelier_runs_running", Help: "Runs that this node is executing, by engine.",
		}, []string{"engine"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atelier_runs_ended_total", Help: "Attempts of runs that this node executed, by engine and outcome.",
		}, []string{"engine", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "atelier_run_seconds", Help: "Duration of successful runs, by engine.",
			Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 25, 60, 150, 300, 600},
		}, []string{"engine"}),
		servers: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "atelier_engine_away", Help: "1 while an engine's server cannot be reached from this node.",
		}, []string{"engine"}),
		places: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "atelier_engine_places", Help: "Runs that this node may execute at the same time, by engine.",
		}, []string{"engine"}),
	}
	for name, one := range slots {
		m.places.WithLabelValues(name).Set(float64(one.Parallel))
		m.running.WithLabelValues(name)
		m.seconds.WithLabelValues(name)
		m.servers.WithLabelValues(name)
		for _, outcome := range []string{string(run.Succeeded), string(run.Failed), string(run.Cancelled), elsewhere} {
			m.ended.WithLabelValues(name, outcome)
		}
	}
	if to != nil {
		to.MustRegister(m.running, m.ended, m.seconds, m.servers, m.places)
	}
	return m
}

// countRun counts a run as running until end is called with its outcome. An
// outcome without a state means that another worker continues the run.
func (m *metrics) countRun(engine string) (end func(e generation.Outcome, took time.Duration)) {
	m.running.WithLabelValues(engine).Inc()
	return func(e generation.Outcome, took time.Duration) {
		m.running.WithLabelValues(engine).Dec()
		outcome := string(e.State)
		if outcome == "" {
			outcome = elsewhere
		}
		m.ended.WithLabelValues(engine, outcome).Inc()
		if e.State == run.Succeeded {
			m.seconds.WithLabelValues(engine).Observe(took.Seconds())
		}
	}
}

// setUnavailable sets the metric that says whether the server of an engine is
// unavailable.
func (m *metrics) setUnavailable(engine string, is bool) {
	n := 0.0
	if is {
		n = 1
	}
	m.servers.WithLabelValues(engine).Set(n)
}
