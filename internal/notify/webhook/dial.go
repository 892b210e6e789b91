package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"atelier/internal/base/failpoint"
	"atelier/internal/base/netguard"
)

const (
	maxAddresses = 3        // maximum number of a host's IP addresses to which a connection is attempted; all of them are checked
	maxHeader    = 16 << 10 // maximum size of a response header in bytes
)

// stepError is an error that occurred before a response was received: in name
// resolution, in connecting or in the TLS handshake.
type stepError struct {
	word string
	err  error
}

func (e *stepError) Error() string { return e.word + ": " + e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

// dialer connects to webhook receivers.
type dialer struct {
	guard    *Guard
	resolver *net.Resolver
	roots    *x509.CertPool
	connect  time.Duration // time limit for connecting to one IP address
}

// newTransport returns a transport that opens a new connection for each
// request, so that no data from one receiver can reach the next. It is used
// without http.Client, so redirects are not followed.
func (c *dialer) newTransport() *http.Transport {
	return &http.Transport{
		Proxy: nil, // with a proxy, the guard would check the proxy's IP address instead of the receiver's
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, &stepError{failBlocked, netguard.ErrBlocked} // only HTTPS connections are allowed
		},
		DialTLSContext:         func(ctx context.Context, _, address string) (net.Conn, error) { return c.dialTLS(ctx, address) },
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
	}
}

// dialTLS opens a TLS connection to address, which has the form host:port.
func (c *dialer) dialTLS(ctx context.Context, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &stepError{failBlocked, err}
	}
	addrs, err := c.resolveHost(ctx, host)
	if err != nil {
		return nil, err
	}
	raw, err := c.connectFirst(ctx, addrs, port)
	if err != nil {
		return nil, err
	}
	if end, ok := ctx.Deadline(); ok {
		_ = raw.SetDeadline(end) // also applies to reads after the handshake
	}
	conn := tls.Client(raw, &tls.Config{ServerName: host, RootCAs: c.roots, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, &stepError{failTLS, err}
	}
	failpoint.Hit("hook.after_connect")
	return conn, nil
}

// resolveHost returns the IP addresses of a host. If any of them is blocked, it
// returns an error, because a legitimate receiver has no blocked address.
func (c *dialer) resolveHost(ctx context.Context, host string) ([]netip.Addr, error) {
	addrs := []netip.Addr{}
	if ip, err := netip.ParseAddr(host); err == nil {
		addrs = append(addrs, ip)
	} else if addrs, err = c.resolver.LookupNetIP(ctx, "ip", host); err != nil {
		return nil, &stepError{failDNS, err}
	}
	for _, ip := range addrs {
		if err := c.guard.border.CheckAddress(ip); err != nil {
			return nil, &stepError{failBlocked, err}
		}
	}
	if len(addrs) == 0 {
		return nil, &stepError{failDNS, errors.New("the host has no IP address")}
	}
	return addrs, nil
}

// connectFirst connects to the first IP address that accepts a connection.
func (c *dialer) connectFirst(ctx context.Context, addrs []netip.Addr, port string) (conn net.Conn, err error) {
	d := net.Dialer{Timeout: c.connect, ControlContext: c.checkSocket}
	for _, ip := range addrs[:min(len(addrs), maxAddresses)] {
		conn, err = d.DialContext(ctx, "tcp", net.JoinHostPort(ip.Unmap().String(), port))
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	if errors.Is(err, netguard.ErrBlocked) {
		return nil, &stepError{failBlocked, err}
	}
	if err != nil {
		return nil, &stepError{failRefused, err}
	}
	return conn, nil
}

// checkSocket checks the IP address and port again when the socket is created.
// The connection is made immediately after this check, so the check is reliable
// even if the code before it changes.
func (c *dialer) checkSocket(_ context.Context, _, address string, _ syscall.RawConn) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return netguard.ErrBlocked
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return netguard.ErrBlocked
	}
	if n, err := strconv.ParseUint(port, 10, 32); err != nil || !isAllowedPort(n) {
		return netguard.ErrBlocked
	}
	return c.guard.border.CheckAddress(ip)
}
