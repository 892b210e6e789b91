package httpd

import (
	"container/list"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Fixed limits on connections, which are not configurable.
const (
	// firstRequestGrace is the time that a new connection has to send a
	// complete request header before it can be evicted.
	firstRequestGrace = 500 * time.Millisecond

	// maxLingering is the maximum number of refused connections that stay open
	// for lingerTime, so that their clients can read the response. Further
	// refused connections are closed immediately.
	maxLingering        = 8
	lingerTime          = 250 * time.Millisecond
	maxAcceptDelay      = 50 * time.Millisecond
	minAcceptDelay      = 5 * time.Millisecond
	shortageLogInterval = time.Minute // between two log lines about failing accepts
)

// tooManyConnections is the response to a connection that exceeds a limit. It
// is sent before reading the request.
const tooManyConnections = "HTTP/1.1 503 Service Unavailable\r\n" +
	"Content-Type: text/plain; charset=utf-8\r\n" +
	"Content-Length: 22\r\n" +
	"Cache-Control: no-store\r\n" +
	"Retry-After: 1\r\n" +
	"Connection: close\r\n" +
	"\r\n" +
	"Too many connections.\n"

// ConnectionLimits limits the connections of a Listener. Zero means no limit.
type ConnectionLimits struct {
	Total      int
	PerAddress int            // IPv6 addresses count by /64 network
	Proxies    []netip.Prefix // trusted proxies, to which PerAddress does not apply
}

// Listener accepts connections within limits and checks where their requests
// end (see framing). At a limit it first evicts a connection that is waiting
// for a request: the connection that has been idle longest or, if no connection
// is idle, one that has sent no request within firstRequestGrace. If no
// connection can be evicted, the new connection gets a 503.
//
// A failed accept ends the listener only if the socket itself is broken. If the
// process has no free file descriptors, the listener closes idle connections
// and accepts again.
type Listener struct {
	net.Listener
	limits ConnectionLimits
	log    *slog.Logger
	now    func() time.Time
	closed chan struct{}
	secure bool // the connections use TLS

	mu             sync.Mutex
	open           int
	addresses      map[string]*address
	idle           *list.List // elements are *conn, longest idle first
	fresh          *list.List // elements are *conn that have sent no request, oldest first
	lingering      int
	shortageLogged time.Time // when a failed accept was last logged

	opened  prometheus.GaugeFunc
	refused *prometheus.CounterVec
	evicted prometheus.Counter
	once    sync.Once
}

// The values of the label "limit" of the metrics.
const (
	limitTotal   = "total"
	limitAddress = "address"
)

// address has the open connections of one IP address or /64 network.
type address struct {
	open  int
	idle  *list.List // elements are *conn, longest idle first
	fresh *list.List // elements are *conn that have sent no request, oldest first
}

// NewListener returns a Listener that accepts connections from l. The
// http.Server that uses it must have TrackState as its ConnState.
func NewListener(l net.Listener, limits ConnectionLimits, log *slog.Logger, now func() time.Time) *Listener {
	n := &Listener{
		Listener:  l,
		limits:    limits,
		log:       log,
		now:       now,
		closed:    make(chan struct{}),
		addresses: map[string]*address{},
		idle:      list.New(),
		fresh:     list.New(),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atelier_http_connections_refused_total", Help: "Refused connections, by the limit that they exceeded.",
		}, []string{"limit"}),
		evicted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "atelier_http_connections_evicted_total", Help: "Idle connections that were closed to make room for new ones.",
		}),
	}
	n.opened = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "atelier_http_connections", Help: "Open connections of clients.",
	}, func() float64 {
		n.mu.Lock()
		defer n.mu.Unlock()
		return float64(n.open)
	})
	return n
}

// RegisterMetrics registers the metrics of the listener. Both limits are
// reported from the start, with a count of zero.
func (l *Listener) RegisterMetrics(r prometheus.Registerer) {
	for _, limit := range []string{limitTotal, limitAddress} {
		l.refused.WithLabelValues(limit)
	}
	r.MustRegister(l.opened, l.refused, l.evicted)
}

// Close stops accepting connections.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// Accept returns the next connection within the limits.
func (l *Listener) Accept() (net.Conn, error) {
	delay := minAcceptDelay
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			if isBrokenListener(err) {
				return nil, err
			}
			l.recoverAccept(err, delay)
			delay = min(2*delay, maxAcceptDelay)
			continue
		}

		delay = minAcceptDelay
		if c := l.admitConn(raw); c != nil {
			return c, nil
		}
	}
}

// isBrokenListener reports whether an error of accept means that no later
// accept can succeed. Linux also reports errors of single connections and of
// the network through accept; see accept(2).
func isBrokenListener(err error) bool {
	if errors.Is(err, net.ErrClosed) {
		return true
	}
	errno, known := errors.AsType[syscall.Errno](err)
	if !known {
		return true
	}
	return errno == syscall.EBADF || errno == syscall.EINVAL || errno == syscall.ENOTSOCK
}

// recoverAccept handles a failed accept: it evicts a waiting connection to
// free a file descriptor, logs the error, and waits for delay.
func (l *Listener) recoverAccept(err error, delay time.Duration) {
	l.mu.Lock()
	victim := l.firstWaiting(l.idle, l.fresh)
	report := l.now().Sub(l.shortageLogged) >= shortageLogInterval
	if report {
		l.shortageLogged = l.now()
	}
	open := l.open
	l.mu.Unlock()

	if victim != nil {
		l.evicted.Inc()
		_ = victim.closeCounted() // net/http notices the closed connection
	}
	if report {
		l.log.Warn("could not accept connections", "error", err, "connections", open)
	}
	select {
	case <-time.After(delay):
	case <-l.closed:
	}
}

// firstWaiting returns the connection to evict first: the connection that has
// been idle longest or, if no connection is idle, the oldest connection that
// has sent no request within firstRequestGrace. It returns nil if there is
// none.
func (l *Listener) firstWaiting(idle, fresh *list.List) *conn {
	if e := idle.Front(); e != nil {
		return e.Value.(*conn)
	}
	if e := fresh.Front(); e != nil {
		if c := e.Value.(*conn); l.now().Sub(c.accepted) >= firstRequestGrace {
			return c
		}
	}
	return nil
}

// admitConn counts a new connection, evicting another one if necessary. If a
// limit does not allow it, admitConn refuses the connection and returns nil.
func (l *Listener) admitConn(raw net.Conn) *conn {
	peer := peerAddress(raw)
	c := &conn{
		Conn:     raw,
		listener: l,
		key:      AddressKey(peer),
		accepted: l.now(),
	}
	perAddress := l.limits.PerAddress
	if isTrusted(peer, l.limits.Proxies) {
		perAddress = 0
	}

	l.mu.Lock()
	own := l.addresses[c.key]
	if own == nil {
		own = &address{idle: list.New(), fresh: list.New()}
		l.addresses[c.key] = own
	}
	var victim *conn
	exceeded := ""
	switch {
	case perAddress > 0 && own.open >= perAddress:
		victim = l.firstWaiting(own.idle, own.fresh)
		exceeded = limitAddress
	case l.limits.Total > 0 && l.open >= l.limits.Total:
		victim = l.firstWaiting(l.idle, l.fresh)
		exceeded = limitTotal
	}
	if victim != nil {
		victim.stopCounting()
	}
	if exceeded != "" && victim == nil {
		if own.open == 0 {
			delete(l.addresses, c.key)
		}
		linger := !l.secure && l.lingering < maxLingering
		if linger {
			l.lingering++
		}
		l.mu.Unlock()
		l.refused.WithLabelValues(exceeded).Inc()
		l.refuseConn(raw, linger)
		return nil
	}
	l.addresses[c.key] = own // evicting the victim may have deleted this entry
	l.open++
	own.open++
	c.addToLists(l.fresh, own.fresh)
	l.mu.Unlock()

	if victim != nil {
		l.evicted.Inc()
		_ = victim.closeCounted() // net/http notices the closed connection
	}
	return c
}

// refuseConn sends a 503 and closes the connection. Closing a socket with
// unread bytes resets it, and the client may lose the response; with linger,
// the bytes are read for a short time first. A client that expects a TLS
// handshake gets no response.
func (l *Listener) refuseConn(raw net.Conn, linger bool) {
	if !l.secure {
		_ = raw.SetWriteDeadline(l.now().Add(lingerTime)) // the buffer of a new socket has room for the response
		_, _ = io.WriteString(raw, tooManyConnections)
	}
	if !linger {
		_ = raw.Close()
		return
	}
	go func() {
		l.drainConn(raw)
		_ = raw.Close()
		l.mu.Lock()
		l.lingering--
		l.mu.Unlock()
	}()
}

// drainConn ends the response and reads for lingerTime, so that the client
// receives the response before the connection is closed.
func (l *Listener) drainConn(raw net.Conn) {
	if half, ok := raw.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_ = raw.SetReadDeadline(l.now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, raw, 64<<10)
}

// TrackState records whether a connection is idle. It is the ConnState of the
// http.Server.
func (l *Listener) TrackState(nc net.Conn, state http.ConnState) {
	c := countedConn(nc)
	if c == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.addresses[c.key]
	if c.uncounted || own == nil {
		return
	}
	switch state {
	case http.StateIdle:
		c.removeFromLists()
		c.addToLists(l.idle, own.idle)
	case http.StateActive:
		c.removeFromLists()
	}
}

func peerAddress(c net.Conn) netip.Addr {
	peer, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return peer.Addr().Unmap().WithZone("")
}

// conn is an accepted connection that counts towards the listener's limits.
type conn struct {
	net.Conn
	listener       *Listener
	key            string
	accepted       time.Time
	framing        framing
	framingRefused atomic.Bool // a request was refused by the framing check

	// The listener's mutex guards the fields below.

	uncounted bool // no longer part of the listener's counts
	lists     [2]*list.List
	elements  [2]*list.Element
}

// addToLists appends the connection to a list of all connections and to the
// list of its IP address.
func (c *conn) addToLists(all, own *list.List) {
	c.lists = [2]*list.List{all, own}
	c.elements = [2]*list.Element{all.PushBack(c), own.PushBack(c)}
}

func (c *conn) removeFromLists() {
	for i, place := range c.elements {
		if place != nil {
			c.lists[i].Remove(place)
		}
	}
	c.lists = [2]*list.List{}
	c.elements = [2]*list.Element{}
}

// stopCounting removes the connection from the listener's counts. The caller
// must hold the listener's mutex.
func (c *conn) stopCounting() {
	if c.uncounted {
		return
	}
	c.uncounted = true
	c.removeFromLists()
	c.listener.open--
	own := c.listener.addresses[c.key]
	own.open--
	if own.open == 0 {
		delete(c.listener.addresses, c.key)
	}
}

// Close closes the connection and removes it from the listener's counts.
func (c *conn) Close() error {
	if c.framingRefused.Load() {
		c.listener.drainConn(c.Conn)
	}
	return c.closeCounted()
}

func (c *conn) closeCounted() error {
	err := c.Conn.Close() // closed before it is removed from the count, because the count limits open file descriptors
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.stopCounting()
	return err
}

// Read reads from the client until a request is refused by the framing check.
// For TLS connections secureConn does this check.
func (c *conn) Read(p []byte) (int, error) {
	if c.listener.secure {
		return c.Conn.Read(p)
	}
	n, err := c.framing.readBytes(c.Conn, p)
	if c.framing.state == ended {
		c.framingRefused.Store(true)
	}
	return n, err
}

// ReadFrom makes it possible to send files with the sendfile system call.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	if to, ok := c.Conn.(io.ReaderFrom); ok {
		return to.ReadFrom(r)
	}
	return io.Copy(struct{ io.Writer }{c.Conn}, r)
}

// CloseWrite lets net/http end a response before it closes the connection.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
