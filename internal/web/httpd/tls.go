package httpd

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"
)

// Fixed limits on HTTP/2 connections, which are not configurable.
const (
	maxStreams        = 100       // concurrent streams; RFC 9113 section 6.5.2 advises against fewer
	streamBuffer      = 512 << 10 // bytes of request bodies that the handler has not read yet
	http2PingInterval = 30 * time.Second
	http2PingTimeout  = 15 * time.Second
)

// httpsRequired is the response to a client that sends plain HTTP to an HTTPS
// port.
const httpsRequired = "HTTP/1.1 400 Bad Request\r\n" +
	"Content-Type: text/plain; charset=utf-8\r\n" +
	"Content-Length: 29\r\n" +
	"Connection: close\r\n" +
	"\r\n" +
	"This address requires HTTPS.\n"

// secureListener accepts connections from a Listener and returns them after
// their TLS handshake. Handshakes run concurrently, each with a time limit.
// Connections count towards the limits from the time they are accepted.
//
// net/http recognizes HTTP/2 by the type *tls.Conn. HTTP/1 connections are
// returned as *secureConn, so that the framing of their requests is checked
// after decryption.
type secureListener struct {
	*Listener
	config  *tls.Config
	timeout time.Duration

	ctx    context.Context // cancels the handshakes
	cancel context.CancelFunc
	ready  chan net.Conn
	broken chan error
}

func newSecureListener(l *Listener, config *tls.Config, timeout time.Duration) *secureListener {
	l.secure = true
	ctx, cancel := context.WithCancel(context.Background())
	s := &secureListener{
		Listener: l,
		config:   config,
		timeout:  timeout,
		ctx:      ctx,
		cancel:   cancel,
		ready:    make(chan net.Conn),
		broken:   make(chan error, 1),
	}
	go s.acceptConns()
	return s
}

// acceptConns starts a handshake with every connection until accepting fails.
func (s *secureListener) acceptConns() {
	for {
		raw, err := s.Listener.Accept()
		if err != nil {
			s.cancel()
			s.broken <- err
			return
		}
		go s.performHandshake(raw)
	}
}

// Accept returns the next connection whose handshake is complete.
func (s *secureListener) Accept() (net.Conn, error) {
	select {
	case c := <-s.ready:
		return c, nil
	case err := <-s.broken:
		s.broken <- err // the next Accept returns the same error
		return nil, err
	}
}

// Close stops accepting connections and cancels the running handshakes.
func (s *secureListener) Close() error {
	s.cancel()
	return s.Listener.Close()
}

// performHandshake performs the TLS handshake of a connection and passes the
// connection to Accept, or closes it.
func (s *secureListener) performHandshake(raw net.Conn) {
	ctx, cancel := context.WithTimeout(s.ctx, s.timeout)
	defer cancel()
	c := tls.Server(raw, s.config)
	if err := c.HandshakeContext(ctx); err != nil {
		if plain, ok := errors.AsType[tls.RecordHeaderError](err); ok && looksLikeHTTP(plain) {
			_ = raw.SetWriteDeadline(s.now().Add(lingerTime))
			_, _ = io.WriteString(raw, httpsRequired)
			s.drainConn(raw)
		}
		s.log.Debug("TLS handshake failed", "addr", raw.RemoteAddr().String(), "error", err)
		_ = raw.Close()
		return
	}

	var next net.Conn
	switch protocol := c.ConnectionState().NegotiatedProtocol; protocol {
	case "h2":
		next = c
	case "", "http/1.1":
		next = &secureConn{Conn: c, counted: raw.(*conn)} // raw has this type, because Listener.Accept returns it
	default: // acme-tls/1 connections end after the handshake (RFC 8737 section 3)
		_ = c.Close()
		return
	}

	select {
	case s.ready <- next:
	case <-s.ctx.Done():
		_ = next.Close()
	}
}

// looksLikeHTTP reports whether a client sent an HTTP request instead of a TLS
// handshake.
func looksLikeHTTP(err tls.RecordHeaderError) bool {
	methods := []string{"GET /", "HEAD ", "POST ", "PUT /", "PATCH", "OPTIO", "DELET"}
	return err.Conn != nil && slices.Contains(methods, string(err.RecordHeader[:]))
}

// secureConn is an HTTP/1 connection over TLS.
type secureConn struct {
	*tls.Conn
	counted        *conn
	framing        framing
	framingRefused atomic.Bool // a request was refused by the framing check
}

// Read reads from the client until a request is refused by the framing check.
func (c *secureConn) Read(p []byte) (int, error) {
	n, err := c.framing.readBytes(c.Conn, p)
	if c.framing.state == ended {
		c.framingRefused.Store(true)
	}
	return n, err
}

// Close closes the connection and removes it from the listener's counts.
func (c *secureConn) Close() error {
	if c.framingRefused.Load() {
		_ = c.Conn.CloseWrite()
		c.counted.listener.drainConn(c.counted.Conn)
	}
	return c.Conn.Close()
}

// countedConn returns the Listener's connection that a connection of net/http
// wraps, or nil.
func countedConn(nc net.Conn) *conn {
	switch c := nc.(type) {
	case *conn:
		return c
	case *secureConn:
		return c.counted
	case *tls.Conn:
		counted, _ := c.NetConn().(*conn)
		return counted
	}
	return nil
}

// http2Config returns the limits and timeouts of HTTP/2 connections.
func http2Config(writeTimeout time.Duration) *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams:          maxStreams,
		MaxReceiveBufferPerConnection: streamBuffer,
		MaxReceiveBufferPerStream:     streamBuffer,
		SendPingTimeout:               http2PingInterval,
		PingTimeout:                   http2PingTimeout,
		WriteByteTimeout:              writeTimeout,
	}
}
