// Package httpd is the HTTP server that runs all handlers: the listener with
// its limits and timeouts, one log line and the metrics per request, trace
// ids, security headers, health checks and graceful shutdown.
package httpd

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"atelier/internal/base/sqldb"
)

// Options are the settings and dependencies of a Server.
type Options struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer
	// Tracer creates the spans of requests. If it is nil, no traces are
	// exported.
	Tracer trace.Tracer
	Health *Health
	Now    func() time.Time

	// HSTS sends Strict-Transport-Security, which makes browsers use HTTPS
	// only (RFC 6797).
	HSTS bool
	// TrustedProxies are the networks of the proxies whose X-Forwarded-For
	// header is used.
	TrustedProxies []netip.Prefix
	// Connections limits the connections and concurrent requests. The limit
	// per IP address does not apply to TrustedProxies.
	Connections ConnectionLimits
	// TLS is the TLS configuration for HTTPS; nil serves plain HTTP.
	TLS *tls.Config

	HeaderTimeout, BodyTimeout, WriteTimeout, IdleTimeout time.Duration
	HeaderBytes                                           int
	// ShutdownDelay is the time between the moment when the readiness check
	// begins to fail and the moment when the server stops accepting
	// connections. Until then requests are served as before, but each response
	// closes its connection, so that the next request goes to another node.
	// After that, running requests have ShutdownTimeout to finish.
	ShutdownDelay, ShutdownTimeout time.Duration
	// DatabaseBudget is the maximum time of all database operations of a
	// request. Default: sqldb.RequestBudget.
	DatabaseBudget time.Duration
}

// Server serves a handler until its context is cancelled.
type Server struct {
	options      Options
	handler      http.Handler
	draining     atomic.Bool   // set at the start of the shutdown
	stopping     chan struct{} // closed after the shutdown delay
	requestLimit *requestLimit
	requests     *prometheus.CounterVec
	seconds      *prometheus.HistogramVec
}

// New returns a server for handler, which gets every request except the health
// checks.
func New(handler http.Handler, o Options) *Server {
	o.DatabaseBudget = cmp.Or(o.DatabaseBudget, sqldb.RequestBudget)
	s := &Server{
		options:      o,
		handler:      handler,
		stopping:     make(chan struct{}),
		requestLimit: newRequestLimit(o.Connections, o.TrustedProxies),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atelier_http_requests_total", Help: "Requests by route, method and status.",
		}, []string{"route", "method", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "atelier_http_request_seconds", Help: "Time to respond by route.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route"}),
	}
	o.Metrics.MustRegister(s.requests, s.seconds)
	return s
}

// Run serves connections of l until ctx is cancelled and then shuts down
// gracefully: it reports not ready, closes each connection after its next
// response, stops accepting connections, asks the clients of event streams to
// reconnect, and waits for the running requests.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	limits := s.options.Connections
	limits.Proxies = s.options.TrustedProxies
	counted := NewListener(l, limits, s.options.Log, s.options.Now)
	counted.RegisterMetrics(s.options.Metrics)
	var listener net.Listener = counted
	if s.options.TLS != nil {
		listener = newSecureListener(counted, s.options.TLS, s.options.HeaderTimeout)
	}
	srv := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.options.HeaderTimeout,
		ReadTimeout:       s.options.BodyTimeout,
		WriteTimeout:      s.options.WriteTimeout,
		IdleTimeout:       s.options.IdleTimeout,
		MaxHeaderBytes:    s.options.HeaderBytes,
		ConnState:         counted.TrackState,
		HTTP2:             http2Config(s.options.WriteTimeout),
		ErrorLog:          slog.NewLogLogger(s.options.Log.Handler(), slog.LevelDebug), // errors of client connections
	}

	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
	}

	// Idle connections stay open during the delay: a proxy that has not yet
	// noticed the failing readiness check may be sending a request on one.
	s.draining.Store(true)
	s.options.Health.MarkDraining()
	time.Sleep(s.options.ShutdownDelay)
	close(s.stopping)
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.ShutdownTimeout)
	defer cancel()
	err := srv.Shutdown(shutdown)
	if errors.Is(err, context.DeadlineExceeded) {
		s.options.Log.Warn("running requests aborted at the shutdown timeout", "timeout", s.options.ShutdownTimeout)
		err = srv.Close()
	}
	if err != nil {
		return fmt.Errorf("stop serving: %w", err)
	}
	return nil
}

// Record collects the data about one request for the log, metrics and traces.
// Handlers set some of its fields.
type Record struct {
	TraceID string
	// Addr is the client's IP address, even behind trusted proxies.
	Addr netip.Addr
	// Route is the pattern of the route that matched. It is a label of
	// metrics, so it must have few different values.
	Route string
	// PersonID is the id of the authenticated person. It is "" before
	// authentication.
	PersonID string
	// Err is the error because of which the request failed, including the
	// cause that the client does not see.
	Err error
	// ClientLeft reports that the client disconnected before the response.
	ClientLeft bool
	// Stopping is closed when the server shuts down, which ends long-lived streams.
	Stopping <-chan struct{}
	// Reauthorize, if set, checks authorization again every
	// reauthorizeInterval while a response is being sent. An error aborts the
	// response.
	Reauthorize func(context.Context) error
}

type recordKey struct{}

// RecordOf returns the record of the request that ctx belongs to, or an empty
// record.
func RecordOf(ctx context.Context) *Record {
	if r, ok := ctx.Value(recordKey{}).(*Record); ok {
		return r
	}
	return &Record{}
}

// securityHeaders are sent with every response unless a handler replaces them.
// The names are in canonical form. All responses use the same slices: replace
// one with Set, never modify it.
var securityHeaders = map[string][]string{
	"X-Content-Type-Options":       {"nosniff"},
	"X-Frame-Options":              {"DENY"},
	"Referrer-Policy":              {"no-referrer"},
	"Content-Security-Policy":      {"default-src 'none'; frame-ancestors 'none'"},
	"Cross-Origin-Opener-Policy":   {"same-origin"},
	"Cross-Origin-Resource-Policy": {"same-origin"},
	"Cache-Control":                {"no-store"},
}

// ServeHTTP serves one request with its trace, log line and metrics.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := s.options.Now()
	rec := &Record{Addr: clientAddr(r, s.options.TrustedProxies), Stopping: s.stopping}
	ctx := r.Context()
	var span trace.Span
	if s.options.Tracer != nil {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
		ctx, span = s.options.Tracer.Start(ctx, "http "+methodLabel(r.Method), trace.WithSpanKind(trace.SpanKindServer))
		rec.TraceID = span.SpanContext().TraceID().String()
	} else {
		rec.TraceID = newTraceID()
	}

	a := &recordedResponse{ResponseWriter: w, record: rec, now: s.options.Now}
	h := w.Header()
	h["X-Trace-Id"] = []string{rec.TraceID}
	for name, value := range securityHeaders {
		h[name] = value
	}
	if s.draining.Load() {
		h.Set("Connection", "close") // on HTTP/2, net/http sends GOAWAY instead
	}
	if s.options.HSTS {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}

	defer func() {
		p := recover()
		why, _ := p.(error)
		aborted := errors.Is(why, http.ErrAbortHandler)
		if p != nil && !aborted {
			rec.Err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			if a.status == 0 {
				http.Error(a, "An internal error occurred. Quote "+rec.TraceID+" when you ask for help.", http.StatusInternalServerError)
			}
		}
		s.recordRequest(r, rec, a, span, s.options.Now().Sub(start))
		if aborted {
			panic(p) // makes net/http close the connection, so that the client notices that the response is incomplete
		}
	}()

	ctx, a.budget = sqldb.WithBudget(ctx, s.options.DatabaseBudget)
	r = r.WithContext(context.WithValue(ctx, recordKey{}, rec))
	a.ctx = r.Context()

	release, ok := s.requestLimit.acquireSlot(r)
	if !ok {
		h.Set("Retry-After", "1")
		http.Error(a, "Too many requests at once.", http.StatusServiceUnavailable)
		return
	}
	defer release()

	switch {
	case r.URL.Path == aliveRoute && r.Method == http.MethodGet:
		s.options.Health.serveAlive(a, r)
	case r.URL.Path == readyRoute && r.Method == http.MethodGet:
		s.options.Health.serveReady(a, r)
	default:
		s.handler.ServeHTTP(a, r)
	}
}

// statusClientLeft is the status in the log and metrics of a request whose
// client disconnected before the response. It is never sent.
const statusClientLeft = 499

// recordRequest adds a finished request to the metrics, the trace and the log.
func (s *Server) recordRequest(r *http.Request, rec *Record, a *recordedResponse, span trace.Span, took time.Duration) {
	status := a.status
	switch {
	case rec.ClientLeft:
		status = statusClientLeft
	case status == 0:
		status = http.StatusOK
	}
	route := rec.Route
	if route == "" {
		route = "other"
	}
	s.requests.WithLabelValues(route, methodLabel(r.Method), strconv.Itoa(status)).Inc()
	s.seconds.WithLabelValues(route).Observe(took.Seconds())
	if span != nil {
		span.SetName(methodLabel(r.Method) + " " + route)
		span.SetAttributes(attribute.String("http.request.method", methodLabel(r.Method)), attribute.String("http.route", route), attribute.Int("http.response.status_code", status))
		if status >= 500 {
			span.SetStatus(codes.Error, http.StatusText(status))
		}
		span.End()
	}

	level := slog.LevelInfo
	switch {
	case status >= 500:
		level = slog.LevelError
	case rec.Route == aliveRoute || rec.Route == readyRoute:
		level = slog.LevelDebug // load balancers request the health checks every few seconds
	}
	if !s.options.Log.Enabled(r.Context(), level) {
		return
	}

	attrs := append(make([]slog.Attr, 0, 11),
		slog.String("method", methodLabel(r.Method)), slog.String("route", route), slog.String("path", redactPath(r.URL.EscapedPath(), route)), slog.Int("status", status), slog.Int64("bytes", a.bytes),
		slog.Int64("us", took.Microseconds()), slog.String("addr", rec.Addr.String()), slog.String("trace_id", rec.TraceID))
	if r.URL.RawQuery != "" {
		attrs = append(attrs, slog.String("query", redactQuery(r.URL.RawQuery)))
	}
	if rec.PersonID != "" {
		attrs = append(attrs, slog.String("person", rec.PersonID))
	}
	if rec.Err != nil {
		attrs = append(attrs, slog.Any("error", rec.Err))
	}
	s.options.Log.LogAttrs(r.Context(), level, "request", attrs...)
}

// newTraceID returns a random trace id in hexadecimal. It is unique, but not
// unpredictable.
func newTraceID() string {
	var b [16]byte
	hi := rand.Uint64()
	lo := rand.Uint64()
	for i := range 8 {
		b[i] = byte(hi >> (8 * i))
		b[8+i] = byte(lo >> (8 * i))
	}
	return hex.EncodeToString(b[:])
}

// methodLabel returns the request method as a label for metrics. Unknown
// methods, which clients can invent, become "other".
func methodLabel(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "other"
}
