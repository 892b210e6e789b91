package httpd

import (
	"net/http"
	"net/netip"
	"sync"
)

// requestLimit limits the concurrent requests. An HTTP/1 connection has at most
// one concurrent request. An HTTP/2 connection can have many, so the limits on
// connections, in total and per IP address, also apply to its requests.
type requestLimit struct {
	limits  ConnectionLimits
	proxies []netip.Prefix

	mu        sync.Mutex
	total     int            // requests of any protocol
	addresses map[string]int // HTTP/2 requests by AddressKey
}

func newRequestLimit(limits ConnectionLimits, proxies []netip.Prefix) *requestLimit {
	return &requestLimit{limits: limits, proxies: proxies, addresses: map[string]int{}}
}

// acquireSlot counts a request until release is called. ok is false if the
// request exceeds a limit.
func (f *requestLimit) acquireSlot(r *http.Request) (release func(), ok bool) {
	key := ""
	if r.ProtoMajor > 1 {
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		address := peer.Addr().Unmap().WithZone("")
		if err == nil && !isTrusted(address, f.proxies) {
			key = AddressKey(address)
		}
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	if f.limits.Total > 0 && f.total >= f.limits.Total {
		return nil, false
	}
	if key != "" && f.limits.PerAddress > 0 && f.addresses[key] >= f.limits.PerAddress {
		return nil, false
	}

	f.total++
	if key == "" {
		return f.releaseSlot, true
	}
	f.addresses[key]++
	return func() { f.releaseAddressSlot(key) }, true
}

func (f *requestLimit) releaseSlot() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total--
}

func (f *requestLimit) releaseAddressSlot(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total--
	f.addresses[key]--
	if f.addresses[key] == 0 {
		delete(f.addresses, key)
	}
}
