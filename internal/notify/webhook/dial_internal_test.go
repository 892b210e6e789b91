package webhook

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/netguard"
	"atelier/internal/base/netguard/netguardtest"
)

func TestDeniedAddresses(t *testing.T) {
	t.Parallel()
	g := NewGuard(nil)
	for _, ip := range netguardtest.Denied() {
		if err := g.border.CheckAddress(ip); !errors.Is(err, netguard.ErrBlocked) {
			t.Errorf("%s = %v, want it blocked", ip, err)
		}
		if ip.Is4() && !errors.Is(g.border.CheckAddress(netip.AddrFrom16(ip.As16())), netguard.ErrBlocked) {
			t.Errorf("%s passes as ::ffff:%s", ip, ip)
		}
	}
	for _, ip := range netguardtest.Public() {
		if err := g.border.CheckAddress(ip); err != nil {
			t.Errorf("%s = %v, want it to pass", ip, err)
		}
	}
	for name, ip := range map[string]netip.Addr{"none": {}, "with a zone": netip.MustParseAddr("2606:4700::1%eth0")} {
		if g.border.CheckAddress(ip) == nil {
			t.Errorf("an address %s passes", name)
		}
	}
}

func TestAllowedNetworks(t *testing.T) {
	t.Parallel()
	var allow []netip.Prefix
	for _, p := range []string{"10.1.0.0/16", "::ffff:192.168.7.0/120", "fd00:1::7/64"} {
		allow = append(allow, netip.MustParsePrefix(p))
	}
	g := NewGuard(allow)
	for a, want := range map[string]bool{
		"10.1.0.0": true, "10.1.255.255": true, "::ffff:10.1.2.3": true, "10.0.255.255": false, "10.2.0.0": false,
		"192.168.7.0": true, "192.168.7.255": true, "192.168.6.255": false, "192.168.8.0": false,
		"fd00:1::1": true, "fd00:1:0:1::1": false, "64:ff9b::a01:203": false, "2002:a01:203::": false, "8.8.8.8": true,
	} {
		if got := g.border.CheckAddress(netip.MustParseAddr(a)) == nil; got != want {
			t.Errorf("%s passes: %v, want %v", a, got, want)
		}
	}
}

// TestNamesOfDeniedAddresses dials a name for every address that is denied.
func TestNamesOfDeniedAddresses(t *testing.T) {
	t.Parallel()
	answers := map[string][]netip.Addr{}
	for i, ip := range netguardtest.Denied() {
		answers["alone"+strconv.Itoa(i)+".example.com"] = []netip.Addr{ip}
		answers["first"+strconv.Itoa(i)+".example.com"] = []netip.Addr{ip, netip.MustParseAddr("1.1.1.1")}
		answers["last"+strconv.Itoa(i)+".example.com"] = []netip.Addr{netip.MustParseAddr("1.1.1.1"), netip.MustParseAddr("2606:4700::1"), ip}
	}
	c := &dialer{guard: NewGuard(nil), connect: time.Second, resolver: netguardtest.NameServer(t, func(name string) []netip.Addr { return answers[name] })}
	for name, all := range answers {
		_, err := c.dialTLS(t.Context(), name+":443")
		if step, ok := errors.AsType[*stepError](err); !ok || step.word != failBlocked {
			t.Errorf("dial %v = %v, want it blocked", all, err)
		}
	}
	for _, ip := range netguardtest.Denied() {
		_, err := c.dialTLS(t.Context(), net.JoinHostPort(ip.String(), "443"))
		if step, ok := errors.AsType[*stepError](err); !ok || step.word != failBlocked {
			t.Errorf("dial %s = %v, want it blocked", ip, err)
		}
	}
	_, err := c.dialTLS(t.Context(), "nobody.example.com:443")
	if step, ok := errors.AsType[*stepError](err); !ok || step.word != failDNS {
		t.Errorf("dial an unknown name = %v, want dns", err)
	}
}

// TestTheSocketIsLookedAtAgain takes the last step alone, as if the ones before
// had let everything pass.
func TestTheSocketIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	c := &dialer{guard: NewGuard(nil), connect: time.Second}
	for _, ip := range netguardtest.Denied() {
		if err := c.checkSocket(t.Context(), "tcp", net.JoinHostPort(ip.String(), "443"), nil); !errors.Is(err, netguard.ErrBlocked) {
			t.Errorf("%s = %v, want it blocked", ip, err)
		}
		if _, err := c.connectFirst(t.Context(), []netip.Addr{ip}, "443"); !errors.Is(err, netguard.ErrBlocked) {
			t.Errorf("reach %s = %v, want it blocked", ip, err)
		}
	}
	for address, want := range map[string]bool{
		"1.1.1.1:443": true, "1.1.1.1:1024": true, "1.1.1.1:65535": true, "[2606:4700::1]:443": true,
		"1.1.1.1:442": false, "1.1.1.1:444": false, "1.1.1.1:1023": false, "1.1.1.1:80": false, "1.1.1.1:0": false, "1.1.1.1:65536": false,
		"1.1.1.1": false, "": false, "name:443": false, "[fe80::1%eth0]:443": false,
	} {
		if got := c.checkSocket(t.Context(), "tcp", address, nil) == nil; got != want {
			t.Errorf("%s passes: %v, want %v", address, got, want)
		}
	}
}

// TestRebinding has a name change its mind between one question and the next.
func TestRebinding(t *testing.T) {
	t.Parallel()
	good, port := listen(t, "127.0.0.1:0")
	bad, _ := listen(t, "127.0.0.2:"+port)
	var asked atomic.Int64
	c := &dialer{guard: NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}), connect: time.Second,
		resolver: netguardtest.NameServer(t, func(name string) []netip.Addr {
			return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1 + byte(asked.Add(1)/3%2)})}
		})}
	words := map[string]int{}
	for range 300 {
		_, err := c.dialTLS(t.Context(), "turns.example.com:"+port)
		step, ok := errors.AsType[*stepError](err)
		if !ok {
			t.Fatalf("dial = %v", err)
		}
		words[step.word]++
	}
	if words[failBlocked] == 0 || words[failTLS] == 0 || len(words) != 2 {
		t.Errorf("dials = %v, want some blocked and some that got through to a server without TLS", words)
	}
	if good.Load() == 0 || bad.Load() != 0 {
		t.Errorf("%d connections to the good address and %d to the bad one", good.Load(), bad.Load())
	}
}

// listen counts the connections to an address, which it ends at once.
func listen(t *testing.T, address string) (accepted *atomic.Int64, port string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	accepted = new(atomic.Int64)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			conn.Close()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return accepted, port
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "1": time.Second, "120": 2 * time.Minute,
		"86399": day - time.Second, "86400": day, "86401": day, "18446744073709551615": day, "99999999999999999999999": day,
		"-1": 0, "1.5": 0, "+5": 0, "soon": 0, "0x10": 0, "1e3": 0,
		"Sun, 15 Nov 2026 09:30:00 GMT": 0, "Sun, 15 Nov 2026 09:30:01 GMT": time.Second, "Sun, 15 Nov 2026 09:29:59 GMT": 0,
		"Mon, 16 Nov 2026 09:30:00 GMT": day, "Mon, 16 Nov 2026 09:30:01 GMT": day, "Fri, 31 Dec 9999 23:59:59 GMT": day,
		"2026-11-15T09:31:00Z": 0,
	} {
		if got := parseRetryAfter(text, now); got != want {
			t.Errorf("Retry-After %q = %v, want %v", text, got, want)
		}
	}
}
