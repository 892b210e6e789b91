package netguard_test

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"atelier/internal/base/netguard"
)

// TestDialer tries a real listener. Which addresses are denied at all is tested
// where the border was first needed, in webhook.
func TestDialer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	closed := netguard.New(nil).Dialer(time.Second)
	for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1", "0.0.0.0", "::1", "::"} {
		conn, err := closed.DialContext(t.Context(), "tcp", net.JoinHostPort(host, port))
		if err == nil {
			conn.Close()
		}
		if !errors.Is(err, netguard.ErrBlocked) {
			t.Errorf("%s = %v, want it blocked", host, err)
		}
	}
	open := netguard.New([]netip.Prefix{netip.MustParsePrefix("::ffff:127.0.0.0/104")}).Dialer(time.Second)
	conn, err := open.DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		t.Fatalf("an allowed network: %v", err)
	}
	conn.Close()
}
