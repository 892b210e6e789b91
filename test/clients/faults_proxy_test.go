package clients_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy stands between a client and the service and disturbs their talk as its
// plan says.
type proxy struct {
	server    *httptest.Server
	address   atomic.Value // string: address of the service
	faulty    atomic.Bool  // whether the plan is followed
	plan      *plan
	transport *http.Transport
	reached   chan operation // an armed operation has reached the service

	mu        sync.Mutex
	faults    map[fault]int
	requests  map[operation]int
	down      int // requests that found the service dead
	refreshed int // refreshes that were answered with tokens
	resumed   map[operation]int
	armed     map[operation]bool
}

// startProxy starts a proxy that passes everything on unchanged until faulty is
// set.
func startProxy(t *testing.T, seed uint64) *proxy {
	t.Helper()
	p := &proxy{
		plan:      newPlan(seed),
		transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true},
		reached:   make(chan operation, 1),
		faults:    map[fault]int{},
		requests:  map[operation]int{},
		resumed:   map[operation]int{},
		armed:     map[operation]bool{},
	}
	p.server = httptest.NewUnstartedServer(p)
	p.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0) // connections break all the time
	p.server.Start()
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

// ServeHTTP disturbs a request or passes it on.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	op := operationOf(r)
	if !p.faulty.Load() {
		p.forward(w, r, op, none)
		return
	}
	p.countRequest(op, r)
	f := p.plan.choose(op, r)
	switch f {
	case resetBefore:
		p.countFault(f)
		reset(w)
	case status408:
		p.countFault(f)
		refuse(w, http.StatusRequestTimeout, "REQUEST_TIMEOUT")
	case status429:
		p.countFault(f)
		refuse(w, http.StatusTooManyRequests, "RATE_LIMITED")
	case status503:
		p.countFault(f)
		refuse(w, http.StatusServiceUnavailable, "UPSTREAM_UNAVAILABLE")
	case status500:
		p.countFault(f)
		refuse(w, http.StatusInternalServerError, "INTERNAL")
	default:
		p.forward(w, r, op, f)
	}
}

var errCut = errors.New("the proxy cuts the connection")

// forward sends a request to the service and its answer, or a part of it, back.
func (p *proxy) forward(w http.ResponseWriter, r *http.Request, op operation, f fault) {
	out := r.Clone(r.Context())
	out.URL.Scheme = "http"
	out.URL.Host, _ = p.address.Load().(string)
	out.RequestURI = ""
	if r.ContentLength == 0 {
		out.Body = nil
	}
	half := r.ContentLength / 2
	switch {
	case op == upload && r.ContentLength != 0:
		out.Body = io.NopCloser(&halfReader{from: r.Body, left: half, half: func() error {
			if f == uploadCut {
				return errCut
			}
			if p.reach(op) {
				<-time.After(100 * time.Millisecond) // the service dies meanwhile
			}
			return nil
		}})
	default:
		p.reach(op)
	}

	res, err := p.transport.RoundTrip(out)
	switch {
	case f == uploadCut:
		p.countFault(f)
		if err == nil {
			res.Body.Close()
		}
		reset(w)
		return
	case r.Context().Err() != nil: // the client has left
		panic(http.ErrAbortHandler)
	case err != nil:
		p.refuseForDeadService(w)
		return
	}
	defer res.Body.Close()
	if op == refresh && res.StatusCode == http.StatusOK {
		p.mu.Lock()
		p.refreshed++
		p.mu.Unlock()
	}
	p.answer(w, r, res, f)
}

// answer sends the service's answer to the client, disturbed by the fault.
func (p *proxy) answer(w http.ResponseWriter, r *http.Request, res *http.Response, f fault) {
	body := io.Reader(res.Body)
	length := res.ContentLength
	stream := strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")
	if f != none && !stream && length < 0 {
		whole, err := io.ReadAll(res.Body)
		if err != nil {
			p.refuseForDeadService(w)
			return
		}
		body = bytes.NewReader(whole)
		length = int64(len(whole))
	}
	if r.Method == http.MethodHead {
		length = 0
	}
	cut := int64(-1) // number of bytes after which the answer ends
	switch f {
	case answerLost, failedAfter:
		if _, err := io.Copy(io.Discard, body); err != nil {
			p.refuseForDeadService(w)
			return
		}
		p.countFault(f)
		if f == answerLost {
			reset(w)
		} else {
			refuse(w, http.StatusInternalServerError, "INTERNAL")
		}
		return
	case slowAnswer:
		p.countFault(f)
		<-time.After(between(500*time.Millisecond, 2*time.Second))
	case eventsCut:
		if stream {
			cut = 1 + rand.Int64N(1000) // shorter than a record
		}
	case answerCut, downloadCut, downloadShortened:
		if length < 2 {
			p.countFault(answerLost)
			reset(w)
			return
		}
		cut = length / 2
	}

	maps.Copy(w.Header(), res.Header)
	for _, name := range []string{"Connection", "Keep-Alive", "Transfer-Encoding"} {
		w.Header().Del(name)
	}
	if f == downloadShortened {
		w.Header().Del("Content-Length")
	}
	w.WriteHeader(res.StatusCode)
	if cut >= 0 {
		body = io.LimitReader(body, cut)
	}
	sent, err := copyAndFlush(w, body)
	switch {
	case err != nil: // the service died, or the client left
		panic(http.ErrAbortHandler)
	case sent == cut:
		p.countFault(f)
		if f != downloadShortened {
			panic(http.ErrAbortHandler)
		}
	}
}

// halfReader calls a function once when this many bytes were read.
type halfReader struct {
	from io.Reader
	left int64
	half func() error
}

func (h *halfReader) Read(b []byte) (int, error) {
	if h.left <= 0 && h.half != nil {
		half := h.half
		h.half = nil
		if err := half(); err != nil {
			return 0, err
		}
	}
	if h.left > 0 && int64(len(b)) > h.left {
		b = b[:h.left]
	}
	n, err := h.from.Read(b)
	h.left -= int64(n)
	return n, err
}

// copyAndFlush copies an answer so that every part arrives at once.
func copyAndFlush(w http.ResponseWriter, body io.Reader) (int64, error) {
	flusher := http.NewResponseController(w)
	buffer := make([]byte, 32<<10)
	sent := int64(0)
	for {
		n, err := body.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return sent, err
			}
			if err := flusher.Flush(); err != nil {
				return sent, err
			}
			sent += int64(n)
		}
		if errors.Is(err, io.EOF) {
			return sent, nil
		}
		if err != nil {
			return sent, err
		}
	}
}

// reset breaks the connection to the client, with a RST where TCP allows it.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	conn.Close()
}

// refuse answers with an error of the form that the API's errors have.
func refuse(w http.ResponseWriter, status int, code string) {
	if status != http.StatusInternalServerError {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error": {"code": %s, "message": "The proxy refuses this request.", "retryable": true, "details": {}, "trace_id": ""}}`, strconv.Quote(code))
}

// refuseForDeadService answers as proxies do while the service is down: some
// break the connection, some say 502.
func (p *proxy) refuseForDeadService(w http.ResponseWriter) {
	p.mu.Lock()
	p.down++
	breaks := p.down%2 == 0
	p.mu.Unlock()
	if breaks {
		reset(w)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(http.StatusBadGateway)
	io.WriteString(w, "<h1>Bad Gateway</h1>\n")
}

// arm sends the next of these operations that reaches the service to the
// channel reached.
func (p *proxy) arm(ops ...operation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.armed)
	for _, op := range ops {
		p.armed[op] = true
	}
	select {
	case <-p.reached:
	default:
	}
}

// reach reports whether the operation was armed, and disarms all.
func (p *proxy) reach(op operation) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.armed[op] {
		return false
	}
	clear(p.armed)
	p.reached <- op // arm has emptied it
	return true
}

func (p *proxy) countFault(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults[f]++
}

func (p *proxy) countRequest(op operation, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests[op]++
	offset, _ := strconv.ParseInt(r.Header.Get("Upload-Offset"), 10, 64)
	if op == upload && r.Method == http.MethodPatch && offset > 0 || op == download && r.Header.Get("Range") != "" {
		p.resumed[op]++
	}
}

// counters returns what happened so far, in lines.
func (p *proxy) counters() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for _, f := range slices.Sorted(maps.Keys(p.faults)) {
		fmt.Fprintf(&b, "%6d %s\n", p.faults[f], f)
	}
	fmt.Fprintf(&b, "%6d requests while the service was down\n", p.down)
	fmt.Fprintf(&b, "%6d tokens refreshed\n", p.refreshed)
	fmt.Fprintf(&b, "requests: %v; resumed: %v", p.requests, p.resumed)
	return b.String()
}

// between is a random span.
func between(least, most time.Duration) time.Duration {
	return least + rand.N(most-least)
}
