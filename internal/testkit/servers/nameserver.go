package servers

import (
	"context"
	"net"
	"testing"

	"github.com/miekg/dns"
)

// NameServer starts a name server on loopback, over UDP and TCP, until the test
// ends, and returns a resolver that asks it.
func NameServer(t testing.TB, answer dns.HandlerFunc) *net.Resolver {
	t.Helper()
	var packets net.PacketConn
	var streams net.Listener
	for range 20 { // the port is free for both, sooner or later
		var err error
		if packets, err = net.ListenPacket("udp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		if streams, err = net.Listen("tcp", packets.LocalAddr().String()); err == nil {
			break
		}
		packets.Close()
	}
	if streams == nil {
		t.Fatal("no port for a name server")
	}
	for _, s := range []*dns.Server{{PacketConn: packets, Handler: answer}, {Listener: streams, Handler: answer}} {
		up, down := make(chan struct{}), make(chan struct{})
		s.NotifyStartedFunc = func() { close(up) }
		go func() { defer close(down); s.ActivateAndServe() }()
		<-up
		t.Cleanup(func() { s.Shutdown(); <-down })
	}
	return ResolverAt(packets.LocalAddr().String())
}

// ResolverAt returns a resolver that asks the name server at an address.
func ResolverAt(address string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}}
}
