package httpd

import (
	"net/http"
	"net/netip"
	"sync"
)

// inFlight bounds the requests that are answered at once. Over HTTP/1 there are
// never more of them than connections. HTTP/2 has many on one connection, so
// they get the limits that connections have: in all, and per address.
type inFlight struct {
	limits  ConnectionLimits
	proxies []netip.Prefix

	mu        sync.Mutex
	all       int            // of any protocol
	addresses map[string]int // over HTTP/2
}

func newInFlight(limits ConnectionLimits, proxies []netip.Prefix) *inFlight {
	return &inFlight{limits: limits, proxies: proxies, addresses: map[string]int{}}
}

// enter counts a request until leave is called, unless it is above a limit.
func (f *inFlight) enter(r *http.Request) (leave func(), ok bool) {
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
	if f.limits.Total > 0 && f.all >= f.limits.Total {
		return nil, false
	}
	if key != "" && f.limits.PerAddress > 0 && f.addresses[key] >= f.limits.PerAddress {
		return nil, false
	}
	f.all++
	if key == "" {
		return f.leaveAll, true
	}
	f.addresses[key]++
	return func() { f.leave(key) }, true
}

func (f *inFlight) leaveAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all--
}

func (f *inFlight) leave(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all--
	f.addresses[key]--
	if f.addresses[key] == 0 {
		delete(f.addresses, key)
	}
}
