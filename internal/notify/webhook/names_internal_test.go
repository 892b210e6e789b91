package webhook

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// NameServer gives a resolver that asks a name server of the test's own. Names
// come in lower case and without the final dot; no address is no such name.
func NameServer(t testing.TB, addresses func(name string) []netip.Addr) *net.Resolver {
	t.Helper()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	up, down := make(chan struct{}), make(chan struct{})
	s := &dns.Server{PacketConn: packets, NotifyStartedFunc: func() { close(up) }, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
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
	})}
	go func() { defer close(down); s.ActivateAndServe() }()
	<-up
	t.Cleanup(func() { s.Shutdown(); <-down })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, packets.LocalAddr().String())
	}}
}
