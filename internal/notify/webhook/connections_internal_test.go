package webhook

import (
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/netguard"
	"atelier/internal/base/netguard/netguardtest"
)

// receiver is the public address of the receivers in these tests.
var receiver = netip.MustParseAddr("1.1.1.1")

// checkAttempts fails for each attempted connection to another address than the
// receivers', or to the port of a system service.
func checkAttempts(t *testing.T, n *netguardtest.Network) (attempts int) {
	t.Helper()
	all := n.Attempts(t)
	for _, to := range all {
		if to.Addr() != receiver || to.Port() != portHTTPS && to.Port() < firstUserPort {
			t.Errorf("a connection to %s was attempted", to)
		}
	}
	return len(all)
}

// post sends a request the way that the sender does, without the check of the
// URL that happens when a receiver is registered.
func post(t *testing.T, c *dialer, url string) (status int, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, http.NoBody)
	if err != nil {
		return 0, err
	}
	res, err := c.newTransport().RoundTrip(req)
	if err != nil {
		return 0, err
	}
	res.Body.Close()
	return res.StatusCode, nil
}

// TestNoConnectionToDeniedURLs proves with a packet recorder that neither the
// check of URLs nor, if it let all of them pass, the sender's connections reach
// an address in the table.
func TestNoConnectionToDeniedURLs(t *testing.T) {
	netguardtest.Run(t, func(t *testing.T, n *netguardtest.Network) {
		// A proxy of the environment must not be used: it would connect for us.
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
			t.Setenv(name, "http://10.9.9.9:3128")
		}
		table := netguardtest.URLs(t)
		if len(table) < 330 {
			t.Errorf("the table has %d URLs, want at least 330", len(table))
		}

		l, err := net.Listen("tcp", ":443")
		if err != nil {
			t.Fatal(err)
		}
		var redirect atomic.Pointer[string]
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if to := redirect.Load(); to != nil {
				w.Header().Set("Location", *to)
				w.WriteHeader(http.StatusTemporaryRedirect)
			}
		}))
		s.Listener.Close()
		s.Listener = l
		s.StartTLS()
		t.Cleanup(s.Close)
		roots := x509.NewCertPool()
		roots.AddCert(s.Certificate())

		// The names of these addresses pass the check of the URL.
		names := map[string][]netip.Addr{
			"example.com":              {receiver},
			"metadata.google.internal": {netip.MustParseAddr("169.254.169.254")},
			"kubernetes.default.svc":   {netip.MustParseAddr("10.96.0.1")},
			"host.docker.internal":     {netip.MustParseAddr("192.168.65.2"), netip.MustParseAddr("fd00::1")},
			"localhost.localdomain":    {netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")},
			"127.0.0.1.example.com":    {netip.MustParseAddr("127.0.0.1")},
		}
		for i, ip := range netguardtest.Denied() {
			names["alone"+strconv.Itoa(i)+".example.com"] = []netip.Addr{ip}
			names["first"+strconv.Itoa(i)+".example.com"] = []netip.Addr{ip, receiver}
			names["last"+strconv.Itoa(i)+".example.com"] = []netip.Addr{receiver, ip}
		}
		c := &dialer{
			guard:    NewGuard(nil),
			resolver: netguardtest.NameServer(t, func(name string) []netip.Addr { return names[name] }),
			roots:    roots,
			connect:  time.Minute,
		}

		// The recorder must see what it is there to see: connections without a guard.
		var plain net.Dialer
		seen := 0
		for _, ip := range netguardtest.Denied() {
			conn, err := plain.DialContext(t.Context(), "tcp", net.JoinHostPort(ip.String(), "443"))
			if err == nil {
				conn.Close()
			}
			if len(n.Attempts(t)) > 0 {
				seen++
			}
		}
		if seen < len(netguardtest.Denied())*3/4 {
			t.Errorf("the recorder saw %d of %d connections without a guard", seen, len(netguardtest.Denied()))
		}

		if status, err := post(t, c, "https://example.com/"); status != http.StatusOK || err != nil {
			t.Fatalf("a public receiver = %d, %v, want 200", status, err)
		}
		if checkAttempts(t, n) != 1 {
			t.Error("the connection to the public receiver was not recorded")
		}

		for _, url := range table {
			if c.guard.CheckURL(url) == "" {
				t.Errorf("%q passes the check", url)
			}
			// Without the check, a URL with credentials or a fragment may reach the
			// receiver that it names. The recorder knows whether others were reached.
			_, _ = post(t, c, url)
		}
		for name := range names {
			if name == "example.com" {
				continue
			}
			if _, err := post(t, c, "https://"+name+"/"); !errors.Is(err, netguard.ErrBlocked) {
				t.Errorf("%s, which is %v = %v, want it blocked", name, names[name], err)
			}
		}
		checkAttempts(t, n)

		for _, url := range table {
			redirect.Store(&url)
			status, err := post(t, c, "https://example.com/")
			if err == nil && status != http.StatusTemporaryRedirect {
				t.Errorf("a redirect to %q was followed: %d", url, status)
			}
		}
		checkAttempts(t, n)
		t.Logf("%d URLs and %d names of denied addresses: no connection; the recorder saw %d of %d without a guard", len(table), len(names)-1, seen, len(netguardtest.Denied()))
	})
}

// TestNoConnectionWhenNamesRebind has a name server give a public address and a
// private one in turn, with every answer valid for no time at all. Whatever the
// order, only the public address is connected to. ATELIER_TEST_REBINDINGS is the
// number of connections; the long form is 10000.
func TestNoConnectionWhenNamesRebind(t *testing.T) {
	rounds := 1000
	if text := os.Getenv("ATELIER_TEST_REBINDINGS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	netguardtest.Run(t, func(t *testing.T, n *netguardtest.Network) {
		l, err := net.Listen("tcp", ":443")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				conn.Close()
			}
		}()

		private := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("::1"), netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}
		var asked atomic.Int64
		c := &dialer{guard: NewGuard(nil), connect: time.Minute, resolver: netguardtest.NameServer(t, func(string) []netip.Addr {
			i := asked.Add(1)
			switch bad := private[i%int64(len(private))]; i / 2 % 5 {
			case 0, 1:
				return []netip.Addr{receiver}
			case 2, 3:
				return []netip.Addr{bad}
			default:
				return []netip.Addr{receiver, bad}
			}
		})}

		words := map[string]int{}
		for range rounds {
			_, err := c.dialTLS(t.Context(), "turns.example.com:443")
			step, ok := errors.AsType[*stepError](err)
			if !ok {
				t.Fatalf("dial = %v", err)
			}
			words[step.word]++
		}
		all := n.Attempts(t)
		if !slices.Equal(all, []netip.AddrPort{netip.AddrPortFrom(receiver, portHTTPS)}) {
			t.Errorf("connections to %v were attempted, want the public address only", all)
		}
		if words[failTLS] == 0 || words[failBlocked] == 0 {
			t.Errorf("dials = %v, want some that were blocked and some that reached the public address", words)
		}
		t.Logf("%d connections: %v", rounds, words)
	})
}
