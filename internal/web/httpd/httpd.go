// Package httpd is the plumbing that every edge is served through: the
// listener and its timeouts, one log line and one set of metrics per request,
// trace ids, security headers, the health pages, and the way down.
package httpd

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
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
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"atelier/internal/base/sqldb"
)

// Options are what a Server is made of.
type Options struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer
	// Tracer is nil where no traces are wanted.
	Tracer trace.Tracer
	Health *Health
	Now    func() time.Time

	// HSTS tells browsers to come back by HTTPS only.
	HSTS           bool
	TrustedProxies []netip.Prefix
	// Connections bound those of the listener. TrustedProxies have no limit
	// per address.
	Connections ConnectionLimits
	// TLS has the certificates to serve HTTPS with; nil serves plain HTTP.
	TLS *tls.Config

	HeaderTimeout, BodyTimeout, WriteTimeout, IdleTimeout time.Duration
	HeaderBytes                                           int
	// Delay is the time between not ready and closed, Timeout how long the
	// requests that are left may take.
	Delay, Timeout time.Duration
}

// Server serves a handler until it is told to stop.
type Server struct {
	options      Options
	handler      http.Handler
	stopping     chan struct{}
	requestLimit *requestLimit
	requests     *prometheus.CounterVec
	seconds      *prometheus.HistogramVec
}

// New makes a server for the handler, which answers everything but the health
// pages.
func New(handler http.Handler, o Options) *Server {
	s := &Server{
		options:      o,
		handler:      handler,
		stopping:     make(chan struct{}),
		requestLimit: newRequestLimit(o.Connections, o.TrustedProxies),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atelier_http_requests_total", Help: "Requests by route, method and status.",
		}, []string{"route", "method", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "atelier_http_request_seconds", Help: "Time to answer by route.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route"}),
	}
	o.Metrics.MustRegister(s.requests, s.seconds)
	return s
}

// Run serves until ctx ends and then lets go in order: not ready first, then
// no new connections, then the rest of the requests.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	limits := s.options.Connections
	limits.Proxies = s.options.TrustedProxies
	counted := NewListener(l, limits, s.options.Log, s.options.Now)
	counted.Register(s.options.Metrics)
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
		ConnState:         counted.Track,
		HTTP2:             http2Config(s.options.WriteTimeout),
		ErrorLog:          slog.NewLogLogger(s.options.Log.Handler(), slog.LevelDebug), // clients' broken connections
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	s.options.Health.Drain()
	time.Sleep(s.options.Delay)
	close(s.stopping)
	left, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.Timeout)
	defer cancel()
	err := srv.Shutdown(left)
	if errors.Is(err, context.DeadlineExceeded) {
		s.options.Log.Warn("requests were cut off after the time to finish", "timeout", s.options.Timeout)
		err = srv.Close()
	}
	if err != nil {
		return fmt.Errorf("stop serving: %w", err)
	}
	return nil
}

// Record is what is known about a request; edges add to it for the log.
type Record struct {
	TraceID string
	// Addr is the client's address, through trusted proxies.
	Addr netip.Addr
	// Route is the pattern that matched, with few values, for metrics.
	Route string
	// PersonID is who asked, once that is known.
	PersonID string
	// Err is why the request failed, cause included.
	Err error
	// Left is whether the client went away before there was an answer.
	Left bool
	// Stopping is closed when the server goes down: answers that could last for
	// ever end then.
	Stopping <-chan struct{}
	// Reauthorize, where it is set, is asked before more of an answer is sent that
	// began some seconds ago (authorizedFor). What it returns cuts the answer short.
	Reauthorize func(context.Context) error
}

type recordKey struct{}

// RecordOf gives the record of the request that ctx belongs to.
func RecordOf(ctx context.Context) *Record {
	if r, ok := ctx.Value(recordKey{}).(*Record); ok {
		return r
	}
	return &Record{}
}

// securityHeaders is on every answer unless an edge replaces it. The names are in
// canonical form and the slices are shared: Set replaces one, nothing may
// change it.
var securityHeaders = map[string][]string{
	"X-Content-Type-Options":       {"nosniff"},
	"X-Frame-Options":              {"DENY"},
	"Referrer-Policy":              {"no-referrer"},
	"Content-Security-Policy":      {"default-src 'none'; frame-ancestors 'none'"},
	"Cross-Origin-Opener-Policy":   {"same-origin"},
	"Cross-Origin-Resource-Policy": {"same-origin"},
	"Cache-Control":                {"no-store"},
}

// ServeHTTP answers one request.
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
				http.Error(a, "Something went wrong. Quote "+rec.TraceID+" when you ask for help.", http.StatusInternalServerError)
			}
		}
		s.recordRequest(r, rec, a, span, s.options.Now().Sub(start))
		if aborted {
			panic(p) // net/http closes the connection: the client must not take a part for the whole
		}
	}()
	ctx, a.budget = sqldb.WithBudget(ctx, sqldb.RequestBudget)
	r = r.WithContext(context.WithValue(ctx, recordKey{}, rec))
	a.ctx = r.Context()
	leave, ok := s.requestLimit.acquireSlot(r)
	if !ok {
		h.Set("Retry-After", "1")
		http.Error(a, "Too many requests at once.", http.StatusServiceUnavailable)
		return
	}
	defer leave()
	switch {
	case r.URL.Path == aliveRoute && r.Method == http.MethodGet:
		s.options.Health.serveAlive(a, r)
	case r.URL.Path == readyRoute && r.Method == http.MethodGet:
		s.options.Health.serveReady(a, r)
	default:
		s.handler.ServeHTTP(a, r)
	}
}

// statusClientLeft stands for the status of an answer that nobody waited for. Logs and
// metrics have it, clients never do.
const statusClientLeft = 499

// recordRequest counts and logs a request that was answered.
func (s *Server) recordRequest(r *http.Request, rec *Record, a *recordedResponse, span trace.Span, took time.Duration) {
	status := a.status
	switch {
	case rec.Left:
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
		level = slog.LevelDebug // balancers ask every few seconds
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

// reauthorizeInterval is how long an answer is sent before whoever gets it is
// authorized again.
const reauthorizeInterval = 2 * time.Second

// recordedResponse remembers what was sent, and has long answers authorized again.
type recordedResponse struct {
	http.ResponseWriter
	status int
	bytes  int64

	ctx          context.Context
	record       *Record
	now          func() time.Time
	authorizedAt time.Time // when the answer began, or was authorized again
	budget       *sqldb.Budget
}

func (a *recordedResponse) beginResponse(status int) {
	a.budget.Lift()
	a.status = status
	a.authorizedAt = a.now()
}

// reauthorizeClient asks whether more may be sent. Errors are sent in any case.
func (a *recordedResponse) reauthorizeClient() error {
	if a.record.Reauthorize == nil || a.status >= http.StatusBadRequest {
		return nil
	}
	now := a.now()
	if now.Sub(a.authorizedAt) < reauthorizeInterval {
		return nil
	}
	if err := a.record.Reauthorize(a.ctx); err != nil {
		return err
	}
	a.authorizedAt = now
	return nil
}

func (a *recordedResponse) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.beginResponse(status)
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *recordedResponse) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.beginResponse(http.StatusOK)
	}
	if err := a.reauthorizeClient(); err != nil {
		return 0, err
	}
	n, err := a.ResponseWriter.Write(b)
	a.bytes += int64(n)
	return n, err
}

// Started tells whether an answer has begun: from then on its status cannot be
// changed, and an error can only cut it short.
func Started(w http.ResponseWriter) bool {
	a, ok := w.(*recordedResponse)
	return ok && a.status != 0
}

// Unwrap lets http.ResponseController reach the connection.
func (a *recordedResponse) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// ETag names some content, as the header has it.
func ETag(content []byte) string {
	sum := sha256.Sum256(content)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
}

// newTraceID names a request. It need not be secret, only different.
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

// methodLabel keeps made-up methods out of the metrics.
func methodLabel(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "other"
}

// clientAddr finds who is calling: the peer, or, where the peer is a trusted
// proxy, the last address in X-Forwarded-For that is not one.
func clientAddr(r *http.Request, trusted []netip.Prefix) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr := peer.Addr().Unmap()
	if len(trusted) == 0 {
		return addr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && isTrusted(addr, trusted); i-- {
		next, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		addr = next.Unmap()
	}
	return addr
}

// AddressKey is what an address is limited by: IPv6 hands out whole /64 networks
// to one customer.
func AddressKey(a netip.Addr) string {
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}

func isTrusted(a netip.Addr, trusted []netip.Prefix) bool {
	for _, p := range trusted {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
