package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/web/certificate/acmetest"
	"atelier/internal/web/certificate/certificatetest"
)

// httpsClient calls a server by HTTPS, as if its domain were at an address.
func httpsClient(t *testing.T, roots *x509.CertPool, address string) *http.Client {
	t.Helper()
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
	}
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, address)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport:     transport,
		Timeout:       20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// shown is the certificate that a server shows for a domain, nil while it has
// none that the roots verify.
func shown(roots *x509.CertPool, address, domain string) *x509.Certificate {
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: &tls.Config{RootCAs: roots, ServerName: domain, MinVersion: tls.VersionTLS12}}
	c, err := dialer.Dial("tcp", address)
	if err != nil {
		return nil
	}
	defer c.Close()
	return c.(*tls.Conn).ConnectionState().PeerCertificates[0]
}

// awaitShown waits for what takes several round trips with an authority.
func awaitShown(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// TestCertificateFromFiles serves HTTPS with a certificate from files and
// replaces it, well and badly, while a connection is in use.
func TestCertificateFromFiles(t *testing.T) {
	needOneProcess(t, "the processes serve HTTPS themselves, without a proxy")
	t.Parallel()
	s := newSite(t)
	dir := t.TempDir()
	first := certificatetest.Issue(t, -time.Hour, 90*24*time.Hour, "atelier.test", "localhost")
	second := certificatetest.Issue(t, -time.Hour, 90*24*time.Hour, "atelier.test", "localhost")
	use := func(p certificatetest.Pair) {
		write(t, dir, "key.pem", string(p.Key))
		write(t, dir, "cert.pem", string(p.Cert))
	}
	use(first)
	s.env = append(s.env, "ATELIER_HTTP_TLS_CERT="+filepath.Join(dir, "cert.pem"), "ATELIER_HTTP_TLS_KEY="+filepath.Join(dir, "key.pem"))
	n := s.serve("--http.redirect-listen", "127.0.0.1:0")
	port, ok := strings.CutPrefix(n.url, "https://localhost:")
	if !ok {
		t.Fatalf("the address is %s", n.url)
	}
	address := "127.0.0.1:" + port
	roots := certificatetest.Roots(first, second)
	client := httpsClient(t, roots, address)
	get := func(when string) {
		t.Helper()
		res, err := client.Get("https://atelier.test/healthz")
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		defer res.Body.Close()
		io.Copy(io.Discard, res.Body)
		if res.StatusCode != 200 || res.ProtoMajor != 2 || !strings.HasPrefix(res.Header.Get("Strict-Transport-Security"), "max-age=") {
			t.Errorf("%s: %d by %s with %v", when, res.StatusCode, res.Proto, res.Header)
		}
	}

	// A connection from before goes on through all of it.
	old, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, ServerName: "atelier.test", MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	answers := bufio.NewReader(old)
	ask := func(when string) {
		t.Helper()
		old.SetDeadline(time.Now().Add(10 * time.Second))
		fmt.Fprintf(old, "GET /healthz HTTP/1.1\r\nHost: atelier.test\r\n\r\n")
		res, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatalf("%s: the old connection: %v", when, err)
		}
		io.Copy(io.Discard, res.Body)
	}
	get("at first")
	ask("at first")
	use(second)
	awaitShown(t, "the second certificate", func() bool {
		cert := shown(roots, address, "atelier.test")
		return cert != nil && cert.Equal(second.Leaf)
	})
	ask("replaced")
	get("replaced")
	write(t, dir, "cert.pem", "damaged")
	awaitShown(t, "a warning", func() bool { return strings.Contains(n.stderr.String(), "still serving the old certificate") })
	if cert := shown(roots, address, "atelier.test"); cert == nil || !cert.Equal(second.Leaf) {
		t.Error("a damaged file replaced the certificate")
	}
	ask("damaged")
	n.stop()

	// What cannot be used at all is said at once, and nothing is made.
	fresh := newSite(t)
	fresh.env = s.env
	out, err := fresh.command(t.Context(), "serve", "--listen", "127.0.0.1:0").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "cert.pem") {
		t.Errorf("a damaged certificate at the start: %v %s", err, out)
	}
	if _, err := os.Stat(fresh.data); !os.IsNotExist(err) {
		t.Errorf("the data folder was made: %v", err)
	}
}

// TestCertificateByACME obtains a certificate from a real ACME server by the
// challenge tls-alpn-01, and shows it again after a restart without the server.
func TestCertificateByACME(t *testing.T) {
	needOneProcess(t, "the processes serve HTTPS themselves, without a proxy")
	t.Parallel()
	authority := acmetest.Start(t)
	s := newSite(t)
	s.env = append(s.env, "ATELIER_HTTP_ACME_DOMAINS=atelier.example.com", "ATELIER_HTTP_ACME_EMAIL=ops@example.com",
		"ATELIER_HTTP_ACME_DIRECTORY="+authority.Directory, "ATELIER_HTTP_ACME_ROOTS="+authority.RootsFile)
	n := s.serve("--listen", authority.TLSAddress)
	if n.url != "https://atelier.example.com:5001" {
		t.Errorf("the address is %s", n.url)
	}
	find := func(address string) (found *x509.Certificate) {
		t.Helper()
		awaitShown(t, "a certificate", func() bool {
			found = shown(authority.Roots, address, "atelier.example.com")
			return found != nil
		})
		return found
	}
	obtained := find(authority.TLSAddress)
	res, err := httpsClient(t, authority.Roots, authority.TLSAddress).Get("https://atelier.example.com/readyz")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if res.StatusCode != 200 || res.ProtoMajor != 2 || !strings.Contains(string(body), `"certificate":"ok"`) {
		t.Errorf("/readyz = %d by %s: %s", res.StatusCode, res.Proto, body)
	}
	if other := shown(authority.Roots, authority.TLSAddress, "other.example.com"); other != nil {
		t.Errorf("a domain of others gets %v", other.DNSNames)
	}
	n.stop()
	for _, name := range []string{"atelier.db", "atelier.db-wal"} {
		text, err := os.ReadFile(filepath.Join(s.data, name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "PRIVATE KEY") || strings.Contains(string(text), "BEGIN CERTIFICATE") {
			t.Errorf("%s holds keys in the clear", name)
		}
	}

	// The next start has it from the database.
	n = s.serve("--listen", "127.0.0.1:0")
	if again := find("127.0.0.1:" + n.url[strings.LastIndex(n.url, ":")+1:]); !again.Equal(obtained) {
		t.Error("after a restart there is another certificate")
	}
	if got := authority.Issued(); got != 1 {
		t.Errorf("%d certificates were issued, want 1", got)
	}
	n.stop()
	s.check()
}

// TestCertificateOfNodes has two nodes obtain one certificate by the challenge
// http-01. Challenges reach the first only, which answers for both.
func TestCertificateOfNodes(t *testing.T) {
	needOneProcess(t, "the processes serve HTTPS themselves, without a proxy")
	t.Parallel()
	authority := acmetest.Start(t)
	s := newSite(t)
	s.database = dbtest.Bare(t, "postgres")
	s.env = append(s.env, "ATELIER_HTTP_ACME_DOMAINS=atelier.example.com,files.example.com", "ATELIER_BASE_URL=https://atelier.example.com",
		"ATELIER_HTTP_ACME_DIRECTORY="+authority.Directory, "ATELIER_HTTP_ACME_ROOTS="+authority.RootsFile)
	host, _, err := net.SplitHostPort(authority.HTTPAddress)
	if err != nil {
		t.Fatal(err)
	}
	nodes := []string{host + ":6001", host + ":6002"}
	s.serve("--listen", nodes[0], "--http.redirect-listen", authority.HTTPAddress)
	s.serve("--listen", nodes[1], "--http.redirect-listen", host+":6003")
	for _, domain := range []string{"atelier.example.com", "files.example.com"} {
		var found [2]*x509.Certificate
		awaitShown(t, "certificates", func() bool {
			found[0] = shown(authority.Roots, nodes[0], domain)
			found[1] = shown(authority.Roots, nodes[1], domain)
			return found[0] != nil && found[1] != nil
		})
		if !found[0].Equal(found[1]) {
			t.Errorf("the nodes show different certificates for %s", domain)
		}
	}
	if got := authority.Issued(); got != 2 {
		t.Errorf("%d certificates were issued for two domains, want 2", got)
	}

	// Plain HTTP leads to HTTPS, to where the service is and nowhere else.
	for _, c := range []struct{ host, path, want string }{
		{"atelier.example.com", "/docs", "https://atelier.example.com/docs"},
		{"files.example.com", "/x", "https://files.example.com/x"},
		{"evil.example.com", "/x", "https://atelier.example.com/x"},
	} {
		res, err := httpsClient(t, nil, authority.HTTPAddress).Get("http://" + c.host + c.path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if got := res.Header.Get("Location"); res.StatusCode != 308 || got != c.want {
			t.Errorf("%s%s = %d %s, want %s", c.host, c.path, res.StatusCode, got, c.want)
		}
	}
	res, err := httpsClient(t, nil, authority.HTTPAddress).Get("http://atelier.example.com/.well-known/acme-challenge/unknown")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if res.StatusCode != 404 || strings.Contains(string(body), "sql") {
		t.Errorf("an unknown challenge = %d %s", res.StatusCode, body)
	}
}
