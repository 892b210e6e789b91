// Package telemetry sets up logging, the Prometheus registry and tracing.
package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Logger returns a logger that writes to w in the format text or json. The
// format auto is text if w is a terminal, and otherwise json.
func Logger(w io.Writer, format, level string) (*slog.Logger, error) {
	var o slog.HandlerOptions
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log level: %w", err)
	}
	o.Level = l
	if format == "text" || format == "auto" && isTerminal(w) {
		return slog.New(slog.NewTextHandler(w, &o)), nil
	}
	return slog.New(slog.NewJSONHandler(w, &o)), nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Registry returns a Prometheus registry with the metrics of the Go runtime and
// the process, and the version of the program.
func Registry(version string) *prometheus.Registry {
	r := prometheus.NewRegistry()
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "atelier_build_info", Help: "Always 1; the label version is the version of the program.", ConstLabels: prometheus.Labels{"version": version}})
	build.Set(1)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build)
	return r
}

// Document is a JSON document that ServeMetrics serves beside the metrics.
type Document struct {
	Path string
	// Read returns a value for the document. ok is false if the value is
	// unavailable at the moment.
	Read func() (value any, ok bool)
}

// ServeHTTP implements http.Handler.
func (d Document) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	value, ok := d.Read()
	status := http.StatusOK
	if !ok {
		status = http.StatusServiceUnavailable
		value = map[string]string{"error": "The database does not respond."}
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Errorf("encode %s: %w", d.Path, err)) // the values of documents are plain structs
	}

	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // the client may have disconnected
}

// ServeMetrics serves /metrics and other documents on a listener until ctx ends.
// track is called when the state of a connection changes (see
// http.Server.ConnState).
func ServeMetrics(ctx context.Context, l net.Listener, track func(net.Conn, http.ConnState), r *prometheus.Registry, documents ...Document) error {
	mux := http.NewServeMux()
	for _, d := range documents {
		mux.Handle("GET "+d.Path, d)
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second}))
	srv := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ConnState:         track,
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve metrics: %w", err)
	case <-ctx.Done():
		return srv.Close()
	}
}

// Tracer returns a tracer that exports to an OTLP endpoint over HTTP. sample is
// the fraction of traces that are recorded, from 0 to 1. stop exports the
// remaining spans and shuts the tracer down.
func Tracer(ctx context.Context, endpoint, version string, sample float64) (t trace.Tracer, stop func(context.Context) error, err error) {
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint))
	if err != nil {
		return nil, nil, fmt.Errorf("trace exporter: %w", err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(sample))),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "atelier"), attribute.String("service.version", version))),
	)
	return provider.Tracer("atelier"), provider.Shutdown, nil
}
