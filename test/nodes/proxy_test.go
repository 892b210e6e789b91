package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/testkit/watch"
)

const (
	// checkInterval is the time between two health checks of a node.
	checkInterval = 50 * time.Millisecond
	checkTimeout  = 2 * time.Second
)

// proxy sends requests to the nodes that are ready, in turn. It checks their
// readiness all the time, keeps connections open, and repeats nothing: a
// request that fails after it was sent is a failed request. Like every proxy,
// it takes the next node if a connection cannot be opened.
type proxy struct {
	*httptest.Server
	backends []*backend
	next     atomic.Uint64
	refused  atomic.Int64 // connections that could not be opened

	mu       sync.Mutex
	failures []string
}

// backend is a node behind the proxy.
type backend struct {
	address   string
	transport *http.Transport
	ready     atomic.Bool
	served    atomic.Int64
}

// startProxy starts a proxy before nodes at these addresses.
func startProxy(t *testing.T, addresses ...string) *proxy {
	t.Helper()
	p := &proxy{}
	for _, address := range addresses {
		transport := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
		t.Cleanup(transport.CloseIdleConnections)
		p.backends = append(p.backends, &backend{address: address, transport: transport})
	}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme = "http"
			r.Out.URL.Host = "node" // chosen by RoundTrip
			r.Out.Host = r.In.Host
			r.SetXForwarded()
		},
		Transport: p,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil { // otherwise the client left
				p.addFailure(fmt.Sprintf("%s %s: %v", r.Method, r.URL.Path, err))
			}
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	p.Server = httptest.NewServer(forward)
	t.Cleanup(p.Server.Close)
	t.Cleanup(p.Server.CloseClientConnections)

	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for _, b := range p.backends {
		group.Go(func() { b.checkHealth(ctx) })
	}
	t.Cleanup(func() { stop(); group.Wait() })
	return p
}

// checkHealth asks the node again and again whether it is ready. Each check has
// a connection of its own, as in most proxies.
func (b *backend) checkHealth(ctx context.Context) {
	client := &http.Client{Timeout: checkTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	for tick := time.Tick(checkInterval); ; {
		res, err := client.Get("http://" + b.address + "/readyz")
		if err == nil {
			res.Body.Close()
		}
		b.ready.Store(err == nil && res.StatusCode == http.StatusOK)
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

// awaitReady waits until the proxy uses the node at this address.
func (p *proxy) awaitReady(t *testing.T, address string) {
	t.Helper()
	for _, b := range p.backends {
		if b.address == address {
			watch.Until(t, "the proxy to use "+address, b.ready.Load)
		}
	}
}

// RoundTrip sends a request to the next node that is ready.
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	first := p.next.Add(1)
	err := errors.New("no node is ready")
	for i := range p.backends {
		b := p.backends[(first+uint64(i))%uint64(len(p.backends))]
		if !b.ready.Load() {
			continue
		}
		attempt := r.Clone(r.Context())
		attempt.URL.Host = b.address
		if r.Body != nil {
			attempt.Body = io.NopCloser(r.Body) // still unread if no connection could be opened
		}
		var res *http.Response
		if res, err = b.transport.RoundTrip(attempt); err == nil {
			b.served.Add(1)
			return res, nil
		}
		if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" {
			return nil, err
		}
		p.refused.Add(1)
	}
	return nil, err
}

func (p *proxy) addFailure(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures = append(p.failures, text)
}
