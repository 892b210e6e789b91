package webhook

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"atelier/internal/base/netguard"
)

const (
	maxURL   = 2048
	maxName  = 253 // in bytes, from RFC 1035 section 2.3.4, without the final dot
	maxLabel = 63

	portHTTPS     = 443
	firstUserPort = 1024 // lower ports are reserved for system services
)

// Guard protects webhooks against server-side request forgery (SSRF): it
// determines which URLs and IP addresses are allowed for receivers.
type Guard struct{ border *netguard.Guard }

// NewGuard returns a guard that allows the public internet and the networks in
// allow.
func NewGuard(allow []netip.Prefix) *Guard { return &Guard{netguard.New(allow)} }

func isAllowedPort(n uint64) bool { return n == portHTTPS || n >= firstUserPort && n <= 65535 }

// CheckURL returns the problem with a receiver's URL, as a sentence for the
// person who entered it, or "" if the URL is valid. It does not resolve the
// host name: IP addresses are checked at every connection.
func (g *Guard) CheckURL(raw string) (problem string) {
	switch {
	case len(raw) > maxURL:
		return "The address is longer than 2048 bytes."
	case strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }):
		return "The address has characters that must be escaped: percent-encode them, and write an international host name in its xn-- form."
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "This is not a valid URL."
	case u.Scheme != "https" || u.Opaque != "":
		return "The address must begin with https://."
	case u.User != nil:
		return "The address must not contain credentials."
	case strings.Contains(raw, "#"):
		return "The address must not have a fragment."
	}
	name := u.Hostname()
	port := u.Port()
	if name == "" {
		return "The address has no host."
	}
	if strings.HasSuffix(u.Host, ":") {
		return "The port is empty."
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 32)
		if err != nil || strconv.FormatUint(n, 10) != port || !isAllowedPort(n) {
			return "The port must be 443 or above 1023."
		}
	}
	if strings.HasPrefix(u.Host, "[") {
		return g.checkLiteral(name)
	}
	return g.checkName(strings.ToLower(name))
}

// checkLiteral is CheckURL for a host that is an IP address. It accepts only
// one spelling of each address, so that all programs interpret it in the same
// way.
func (g *Guard) checkLiteral(name string) string {
	ip, err := netip.ParseAddr(name)
	if err != nil || ip.Is4In6() || ip.String() != strings.ToLower(name) {
		return "The IP address is not in its canonical form."
	}
	if g.border.CheckAddress(ip) != nil {
		return "Events are not sent to this IP address."
	}
	return ""
}

// checkName is CheckURL for a host without brackets: a name or an IPv4 address.
func (g *Guard) checkName(name string) string {
	labels := strings.Split(name, ".")
	if last := labels[len(labels)-1]; isNumeric(last) {
		return g.checkLiteral(name)
	}
	if len(name) > maxName {
		return "The host name is too long."
	}
	for _, l := range labels {
		if l == "" || len(l) > maxLabel || l[0] == '-' || l[len(l)-1] == '-' ||
			strings.ContainsFunc(l, func(r rune) bool {
				return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
			}) {
			return "The host name is not valid."
		}
	}
	// If the operator allows loopback addresses, the name localhost is allowed
	// too.
	if labels[len(labels)-1] == "localhost" && g.border.CheckAddress(netip.IPv6Loopback()) != nil && g.border.CheckAddress(netip.AddrFrom4([4]byte{127, 0, 0, 1})) != nil {
		return "Events are not sent to localhost."
	}
	return ""
}

// isNumeric reports whether some programs would interpret a host name that ends
// with this label as an IPv4 address. For example, 2130706433, 0x7f.1,
// 0177.0.0.1 and 127.1 can all mean 127.0.0.1.
func isNumeric(label string) bool {
	digits := "0123456789"
	if rest, hex := strings.CutPrefix(label, "0x"); hex {
		label = rest
		digits = "0123456789abcdef"
		if label == "" {
			return true
		}
	}
	return label != "" && strings.Trim(label, digits) == ""
}
