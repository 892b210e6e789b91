package session

import "net/netip"

// Client describes the origin of a request: its IP address and browser, but not
// the person.
type Client struct {
	Address   string // IP address
	UserAgent string
	// KnownBrowser is the value of the cookie of a browser in which a
	// person signed in before; see RememberBrowser.
	KnownBrowser string
}

// Network returns the client's network, for rate limits that count per network.
func (c Client) Network() string { return NetworkOf(c.Address) }

// NetworkOf returns the network of an IP address, for rate limits that count
// per network. For IPv6 it is the /64 network, because internet providers
// assign a whole /64 to one customer; for IPv4 it is the address itself.
func NetworkOf(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil || !a.Is6() || a.Is4In6() {
		return address
	}
	return netip.PrefixFrom(a, 64).Masked().String()
}
