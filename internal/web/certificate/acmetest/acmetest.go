// Package acmetest runs Pebble, Let's Encrypt's ACME server for tests.
//
// If Pebble cannot be built, the tests that need it are skipped and log the
// reason; if the environment variable CI is set, they fail instead.
// ATELIER_TEST_ACME=skip skips them in any case.
package acmetest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"atelier/internal/testkit/servers"
	"atelier/internal/web/certificate/certificatetest"
)

// Authority is a certificate authority that resolves every domain to a
// loopback IP address, which no other Authority uses.
type Authority struct {
	Directory string
	RootsFile string         // root certificates that verify the authority's own server
	Roots     *x509.CertPool // root certificates that verify the certificates it issues

	// The authority sends challenges to these host:port addresses.
	TLSAddress  string // for tls-alpn-01 challenges
	HTTPAddress string // for http-01 challenges

	server *servers.Server
}

const (
	tlsPort  = 5001
	httpPort = 5002
	ownPort  = 14000
	rootPort = 15000
)

var authorities atomic.Int64

var program = sync.OnceValues(func() (string, error) {
	return servers.Program("acmeserver", "github.com/letsencrypt/pebble/v2/cmd/pebble")
})

// Start runs an authority until the test binary exits.
func Start(t testing.TB) *Authority {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has all of 127.0.0.0/8")
	}
	path := servers.Need(t, "ACME", "ATELIER_TEST_ACME", program)
	dir, err := servers.Dir("", "atelier-acme-")
	if err != nil {
		t.Fatal(err)
	}
	id := os.Getpid()
	host := fmt.Sprintf("127.%d.%d.%d", 64+authorities.Add(1)%64, id>>8&255, id&255)
	at := func(port int) string { return net.JoinHostPort(host, fmt.Sprint(port)) }
	pair := certificatetest.Issue(t, -time.Hour, 24*time.Hour, host)
	a := &Authority{
		Directory:   "https://" + at(ownPort) + "/dir",
		RootsFile:   filepath.Join(dir, "cert.pem"),
		TLSAddress:  at(tlsPort),
		HTTPAddress: at(httpPort),
	}

	settings, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress":           at(ownPort),
		"managementListenAddress": at(rootPort),
		"certificate":             a.RootsFile,
		"privateKey":              filepath.Join(dir, "key.pem"),
		"tlsPort":                 tlsPort,
		"httpPort":                httpPort,
		"keyAlgorithm":            "ecdsa",
		"retryAfter":              map[string]int{"authz": 1, "order": 1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"cert.pem": pair.Cert, "key.pem": pair.Key, "config.json": settings} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(path, "-config", "config.json", "-dnsserver", resolve(t, host))
	cmd.Dir = dir
	cmd.Env = []string{"PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0"}
	a.server, err = servers.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the ACME server:\n%s", a.server.Log())
		}
	})
	if err := a.await(certificatetest.Roots(pair), "https://"+at(rootPort)+"/roots/0"); err != nil {
		t.Fatalf("ACME server for tests: %v: %s", err, a.server.Log())
	}
	return a
}

// Issued returns the number of certificates that the authority has issued so
// far.
func (a *Authority) Issued() int { return strings.Count(a.server.Log(), "Issued certificate serial") }

// await waits until Pebble responds, for 30 s at most, and reads its root
// certificate.
func (a *Authority) await(trusted *x509.CertPool, address string) error {
	client := &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}},
	}
	defer client.CloseIdleConnections()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		select {
		case <-a.server.Ended:
			return errors.New("it ended")
		case <-time.After(10 * time.Millisecond):
		}
		res, err := client.Get(address)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		a.Roots = x509.NewCertPool()
		if err == nil && a.Roots.AppendCertsFromPEM(text) {
			return nil
		}
	}
	return errors.New("it did not answer within 30 s")
}

// resolve runs a DNS server that resolves every name to the IP address host.
// It returns the server's host:port address.
func resolve(t testing.TB, host string) (address string) {
	t.Helper()
	streams, err := net.Listen("tcp", host+":0") // Pebble sends DNS queries over TCP
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{Listener: streams, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		if len(q.Question) == 1 && q.Question[0].Qtype == dns.TypeA {
			head := dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}
			m.Answer = append(m.Answer, &dns.A{Hdr: head, A: net.ParseIP(host)})
		}
		_ = w.WriteMsg(m)
	})}
	go func() { _ = s.ActivateAndServe() }()
	t.Cleanup(func() { _ = streams.Close() })
	return streams.Addr().String()
}
