// Package netguard is the SSRF guard: it limits connections to addresses from
// untrusted input to the public internet and to networks that the operator
// allows. It checks the resolved address when the socket is created, so that a
// DNS name cannot change its address between check and use.
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

// ErrBlocked is the error of a connection to a forbidden address.
var ErrBlocked = errors.New("the address is not one to connect to")

// Guard decides which addresses the program may connect to.
type Guard struct {
	allow   []netip.Prefix
	special *ssrf.Guardian // refuses special-purpose addresses (IANA registries)
}

// New returns a guard that allows the public internet and the networks that the
// operator allows.
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

// CheckAddress returns ErrBlocked for an address that requests from outside must not
// reach.
func (b *Guard) CheckAddress(ip netip.Addr) error {
	if !ip.IsValid() || ip.Zone() != "" {
		return ErrBlocked
	}
	ip = ip.Unmap() // ::ffff:10.0.0.1 is 10.0.0.1
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

// Dialer returns a dialer that connects to allowed addresses only, also after name
// resolution.
func (b *Guard) Dialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: timeout, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return ErrBlocked
		}
		return b.CheckAddress(at.Addr())
	}}
}
