// Package netguardtest proves that a program does not connect to addresses that
// it must not reach. A test runs in a process of its own, in a network namespace
// where every IP address of the internet leads back to that process, and all
// connection attempts are recorded from outside of the code under test.
package netguardtest

import (
	"bufio"
	_ "embed"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"atelier/internal/testkit/servers"
)

//go:embed urls.txt
var urls string

// URLs returns the table of URLs that nobody may make the program connect to:
// private and reserved addresses in many spellings, other schemes, credentials,
// ports of system services, and URLs that parsers disagree about.
func URLs(t testing.TB) []string {
	t.Helper()
	var all []string
	seen := map[string]bool{}
	lines := bufio.NewScanner(strings.NewReader(urls))
	for lines.Scan() {
		url := lines.Text()
		if url == "" || strings.HasPrefix(url, "# ") {
			continue
		}
		if strings.HasPrefix(url, `"`) { // a URL with characters that a line cannot have
			plain, err := strconv.Unquote(url)
			if err != nil {
				t.Fatalf("urls.txt: %s: %v", url, err)
			}
			url = plain
		}
		if seen[url] {
			t.Errorf("urls.txt has %q twice", url)
		}
		seen[url] = true
		all = append(all, url)
	}
	return all
}

// Denied returns addresses that nobody may make the program connect to: the
// edges of every reserved range and addresses in between.
func Denied() []netip.Addr { return parseAddresses(denied) }

// Public returns addresses of the public internet next to the reserved ranges,
// and some well-known ones.
func Public() []netip.Addr { return parseAddresses(public) }

func parseAddresses(list string) []netip.Addr {
	var all []netip.Addr
	for text := range strings.FieldsSeq(list) {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

const denied = `
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
`

const public = `
	1.0.0.0 1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
	169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.88.98.255 192.88.100.0
	192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255
	2001:200::1 2001:4860:4860::8888 2001:db7:ffff::1 2001:db9::1 2003::1 2606:4700:4700::1111 2a00:1450::1 3ffe:ffff::1 3fff:1000::1
`

// NameServer returns a resolver that asks a name server of the test. Names come
// in lower case and without the final dot. A name without addresses does not
// exist.
func NameServer(t testing.TB, addresses func(name string) []netip.Addr) *net.Resolver {
	t.Helper()
	return servers.NameServer(t, func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		m.Authoritative = true
		ask := q.Question[0]
		all := addresses(strings.ToLower(strings.TrimSuffix(ask.Name, ".")))
		if len(all) == 0 {
			m.Rcode = dns.RcodeNameError
		}
		for _, ip := range all {
			head := dns.RR_Header{Name: ask.Name, Rrtype: ask.Qtype, Class: dns.ClassINET}
			switch {
			case ask.Qtype == dns.TypeA && ip.Is4():
				m.Answer = append(m.Answer, &dns.A{Hdr: head, A: ip.AsSlice()})
			case ask.Qtype == dns.TypeAAAA && !ip.Is4():
				m.Answer = append(m.Answer, &dns.AAAA{Hdr: head, AAAA: ip.AsSlice()})
			}
		}
		w.WriteMsg(m)
	})
}
