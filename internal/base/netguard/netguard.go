// Package netguard protects against server-side request forgery (SSRF). For
// URLs from untrusted input, it allows connections only to the public internet
// and to networks that the operator allows. It checks the resolved IP address
// when the socket is created, so that a host name cannot resolve to another
// address between the check and the connection.
package netguard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// ErrBlocked is returned for a connection to an IP address that is not allowed.
var ErrBlocked = errors.New("connections to this address are not allowed")

// Guard decides which IP addresses the program may connect to.
type Guard struct {
	allow   []netip.Prefix
	special *ssrf.Guardian // rejects addresses that the IANA registries reserve for special purposes
}

// New returns a guard that allows the public internet and, in addition, the
// networks in allow.
func New(allow []netip.Prefix) *Guard {
	b := &Guard{special: ssrf.New(ssrf.WithAnyPort())}
	for _, p := range allow {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		b.allow = append(b.allow, p.Masked())
	}
	return b
}

// CheckAddress returns an error that wraps ErrBlocked if connections to ip are
// not allowed.
func (b *Guard) CheckAddress(ip netip.Addr) error {
	if !ip.IsValid() || ip.Zone() != "" {
		return ErrBlocked
	}
	ip = ip.Unmap() // ::ffff:10.0.0.1 becomes 10.0.0.1
	for _, p := range b.allow {
		if p.Contains(ip) {
			return nil
		}
	}
	if err := b.special.SafeAddr(ip); err != nil {
		return fmt.Errorf("%w: %w", ErrBlocked, err)
	}
	return nil
}

// Dialer returns a dialer that connects only to allowed IP addresses. It checks
// the address that a host name resolved to.
func (b *Guard) Dialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: timeout, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return ErrBlocked
		}
		return b.CheckAddress(at.Addr())
	}}
}
