package httpd

import (
	"net/http"
	"net/netip"
	"sync"
)

// requestLimit limits the concurrent requests. HTTP/1 has at most one per
// connection. HTTP/2 has many on one connection, so its requests get the limits
// that connections have: in total and per address.
type requestLimit struct {
	limits  ConnectionLimits
	proxies []netip.Prefix

	mu        sync.Mutex
	total     int            // of any protocol
	addresses map[string]int // over HTTP/2
}

func newRequestLimit(limits ConnectionLimits, proxies []netip.Prefix) *requestLimit {
	return &requestLimit{limits: limits, proxies: proxies, addresses: map[string]int{}}
}

// acquireSlot counts a request until release is called. ok is false if the
// request is above a limit.
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
