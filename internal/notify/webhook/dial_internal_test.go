package webhook

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/netguard"
)

// denied are addresses nobody may have us send to: the edges of every range and
// something in between.
var denied = strings.Fields(`
	0.0.0.0 0.0.0.1 0.255.255.255
	10.0.0.0 10.20.30.40 10.255.255.255
	100.64.0.0 100.100.100.200 100.127.255.255
	127.0.0.0 127.0.0.1 127.0.0.2 127.0.1.1 127.255.255.255
	169.254.0.0 169.254.169.254 169.254.170.2 169.254.255.255
	172.16.0.0 172.17.0.1 172.31.255.255
	192.0.0.0 192.0.0.8 192.0.0.170 192.0.0.255
	192.0.2.0 192.0.2.1 192.0.2.255
	192.88.99.0 192.88.99.1 192.88.99.255
	192.168.0.0 192.168.1.1 192.168.255.255
	198.18.0.0 198.18.0.1 198.19.255.255
	198.51.100.0 198.51.100.7 198.51.100.255
	203.0.113.0 203.0.113.7 203.0.113.255
	224.0.0.0 224.0.0.251 239.255.255.250 239.255.255.255
	240.0.0.0 240.0.0.1 250.1.2.3 255.255.255.254 255.255.255.255
	:: ::1 ::2 ::7f00:1 ::a9fe:a9fe
	::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:192.168.0.1 ::ffff:100.64.0.1 ::ffff:0.0.0.0 ::ffff:198.18.0.1
	::ffff:0:7f00:1 ::ffff:0:a00:1
	64:ff9b:: 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b::808:808 64:ff9b::ffff:ffff
	64:ff9b:1:: 64:ff9b:1::1 64:ff9b:1:ffff:ffff:ffff:ffff:ffff
	100:: 100::1 100:0:0:1::1
	2001:: 2001::1 2001:0:53aa:64c:0:fffe:80ff:fffe 2001:2::1 2001:10::1 2001:20::1 2001:1ff:ffff::1
	2001:db8:: 2001:db8::1 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff
	2002:: 2002:7f00:1:: 2002:a00:1::1 2002:a9fe:a9fe:: 2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff
	3fff:: 3fff::1 3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff
	5f00:: 5f00::1 5f00:ffff::1
	fc00:: fc00::1 fd00:ec2::254 fd12:3456:789a::1 fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
	fe80:: fe80::1 fe80::a9fe:a9fe febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff
	fec0::1 feff::1
	ff00:: ff01::1 ff02::1 ff05::1:3 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
	4000::1 8000::1 e000::1 1::1 200::1
`)

// public are addresses next to those, and some well-known ones.
var public = strings.Fields(`
	1.0.0.0 1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
	169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.88.98.255 192.88.100.0
	192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255
	2001:200::1 2001:4860:4860::8888 2001:db7:ffff::1 2001:db9::1 2003::1 2606:4700:4700::1111 2a00:1450::1 3ffe:ffff::1 3fff:1000::1
`)

func TestDeniedAddresses(t *testing.T) {
	t.Parallel()
	g := NewGuard(nil)
	for _, a := range denied {
		ip := netip.MustParseAddr(a)
		if err := g.border.CheckAddress(ip); !errors.Is(err, netguard.ErrBlocked) {
			t.Errorf("%s = %v, want it blocked", a, err)
		}
		if ip.Is4() && !errors.Is(g.border.CheckAddress(netip.AddrFrom16(ip.As16())), netguard.ErrBlocked) {
			t.Errorf("%s passes as ::ffff:%s", a, a)
		}
	}
	for _, a := range public {
		if err := g.border.CheckAddress(netip.MustParseAddr(a)); err != nil {
			t.Errorf("%s = %v, want it to pass", a, err)
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
	for i, a := range denied {
		ip := netip.MustParseAddr(a)
		answers["alone"+strconv.Itoa(i)+".example.com"] = []netip.Addr{ip}
		answers["first"+strconv.Itoa(i)+".example.com"] = []netip.Addr{ip, netip.MustParseAddr("1.1.1.1")}
		answers["last"+strconv.Itoa(i)+".example.com"] = []netip.Addr{netip.MustParseAddr("1.1.1.1"), netip.MustParseAddr("2606:4700::1"), ip}
	}
	c := &dialer{guard: NewGuard(nil), connect: time.Second, resolver: NameServer(t, func(name string) []netip.Addr { return answers[name] })}
	for name, all := range answers {
		_, err := c.dialTLS(t.Context(), name+":443")
		if step, ok := errors.AsType[*stepError](err); !ok || step.word != failBlocked {
			t.Errorf("dial %v = %v, want it blocked", all, err)
		}
	}
	for _, a := range denied {
		_, err := c.dialTLS(t.Context(), net.JoinHostPort(a, "443"))
		if step, ok := errors.AsType[*stepError](err); !ok || step.word != failBlocked {
			t.Errorf("dial %s = %v, want it blocked", a, err)
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
	for _, a := range denied {
		if err := c.checkSocket(t.Context(), "tcp", net.JoinHostPort(a, "443"), nil); !errors.Is(err, netguard.ErrBlocked) {
			t.Errorf("%s = %v, want it blocked", a, err)
		}
		if _, err := c.connectFirst(t.Context(), []netip.Addr{netip.MustParseAddr(a)}, "443"); !errors.Is(err, netguard.ErrBlocked) {
			t.Errorf("reach %s = %v, want it blocked", a, err)
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
		resolver: NameServer(t, func(name string) []netip.Addr {
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
