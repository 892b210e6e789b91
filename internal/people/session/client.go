package session

import "net/netip"

// Client is the origin of a request: its network address and browser, not its
// person.
type Client struct {
	Address   string // IP address
	UserAgent string
	// KnownBrowser is the cookie of a browser that signed in before; see
	// RememberBrowser.
	KnownBrowser string
}

// Network returns the network that rate limits count the client by.
func (c Client) Network() string { return NetworkOf(c.Address) }

// NetworkOf returns the network that rate limits count an address by. For IPv6
// it is the /64, since providers assign whole /64 networks to one customer.
func NetworkOf(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil || !a.Is6() || a.Is4In6() {
		return address
	}
	return netip.PrefixFrom(a, 64).Masked().String()
}
