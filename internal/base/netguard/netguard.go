// Package netguard knows which addresses the program may connect to when
// somebody else says where: the public internet, and networks that the operator
// allows. It looks at the address itself, when the socket is made for it, so
// that no name can stand for another address a moment later.
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

// ErrBlocked marks a connection that was refused here.
var ErrBlocked = errors.New("the address is not one to connect to")

// Guard decides which addresses may be connected to.
type Guard struct {
	allow   []netip.Prefix
	special *ssrf.Guardian // refuses what IANA lists as special
}

// New returns a border that lets the public internet pass, and the networks that
// the operator allows.
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
