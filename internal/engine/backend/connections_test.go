package backend_test

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/base/netguard/netguardtest"
	"atelier/internal/engine/backend"
)

// TestNoConnectionToDeniedURLs has a model server name every URL of the table as
// the place of a file: directly, as the place to upload to, and by redirects. A
// packet recorder proves that no connection to a private address is attempted.
func TestNoConnectionToDeniedURLs(t *testing.T) {
	netguardtest.Run(t, func(t *testing.T, n *netguardtest.Network) {
		public := []netip.Addr{ // the first is that of example.com, the others are in the table with ports that webhooks refuse
			netip.MustParseAddr("1.1.1.1"), netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("2606:4700::1111"),
		}
		own := netip.MustParseAddrPort("1.0.0.1:8080")
		names := map[string]netip.Addr{"example.com": public[0], "private.example.com": netip.MustParseAddr("10.0.0.1")}
		net.DefaultResolver = netguardtest.NameServer(t, func(name string) []netip.Addr {
			if ip, ok := names[name]; ok {
				return []netip.Addr{ip}
			}
			return nil
		})
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
			t.Setenv(name, "http://10.9.9.9:3128")
		}
		t.Setenv("NO_PROXY", own.Addr().String()) // the operator's proxy is for the operator's own server

		var redirect atomic.Pointer[string]
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if to := redirect.Load(); to != nil {
				w.Header()["Location"] = []string{*to}
				w.WriteHeader(http.StatusFound)
				return
			}
			io.WriteString(w, "public")
		})
		for _, port := range []string{":80", ":8080"} {
			l, err := net.Listen("tcp", port)
			if err != nil {
				t.Fatal(err)
			}
			s := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
			go s.Serve(l)
			t.Cleanup(func() { s.Close() })
		}
		c, err := backend.New(backend.Options{URL: "http://" + own.String(), Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		check := func(what string) (attempts int) {
			t.Helper()
			all := n.Attempts(t)
			for _, to := range all {
				if !slices.Contains(public, to.Addr()) && to != own {
					t.Errorf("%s: a connection to %s was attempted", what, to)
				}
			}
			return len(all)
		}

		if text, err := fetch(t, c, "http://example.com/fox"); text != "public" || err != nil {
			t.Fatalf("a public file = %q, %v", text, err)
		}
		if check("a public file") == 0 {
			t.Error("the connection to the public host was not recorded")
		}

		refs := netguardtest.URLs(t)
		for _, ref := range netguardtest.URLs(t) {
			if rest, ok := strings.CutPrefix(ref, "https:"); ok {
				refs = append(refs, "http:"+rest)
			}
		}
		refs = append(refs, "http://private.example.com/", "https://private.example.com/")
		for _, ip := range netguardtest.Denied() {
			refs = append(refs, "http://"+net.JoinHostPort(ip.String(), "80")+"/", "http://"+net.JoinHostPort(ip.String(), "8080")+"/")
		}

		for _, ref := range refs {
			_, _ = fetch(t, c, ref) // a public host may be reached; the recorder knows about the others
		}
		check("a file")

		for _, ref := range refs {
			_ = c.UploadFile(t.Context(), ref, "text/plain", io.NopCloser(strings.NewReader("fox")), 3)
		}
		check("an upload")

		for _, ref := range refs {
			redirect.Store(&ref)
			_, _ = fetch(t, c, "http://example.com/fox")
			_, _ = fetch(t, c, "/fox")
		}
		if check("a redirect") == 0 {
			t.Error("no redirect was answered")
		}
		t.Logf("%d URLs as file, upload and redirect: no connection to a private address", len(refs))
	})
}
