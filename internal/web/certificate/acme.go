package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"atelier/internal/base/sqldb"
)

const (
	// firstRetry and maxRetry are the first and the longest pause after a
	// failed attempt to obtain a certificate. Let's Encrypt allows five
	// failures per hour.
	firstRetry = 2 * time.Minute
	maxRetry   = time.Hour
	// claimTimeout is the time that a node has to obtain a certificate before
	// another node may attempt it. The timeout of autocert is shorter.
	claimTimeout = 6 * time.Minute
	claimedRetry = 2 * time.Second
	// renewalInterval is the time between two checks whether autocert has
	// renewed a certificate.
	renewalInterval = time.Minute
	callTimeout     = 30 * time.Second
)

// ACMEOptions are the settings and dependencies of an ACME.
type ACMEOptions struct {
	Domains      []string // in lower case
	Email        string   // the operator's e-mail address, sent to the authority; may be empty
	DirectoryURL string   // the authority's directory URL (RFC 8555 section 7.1.1)
	// Roots is a PEM file with the root certificates that verify the
	// authority's own server. "" uses the system's roots.
	Roots string

	DB  *sqldb.DB
	Box Box
	Log *slog.Logger
	Now func() time.Time
}

// Box encrypts and authenticates stored data. about names the row that the data
// belongs to; Open fails if it is called with another name.
type Box interface {
	Seal(plain []byte, about string) string
	Open(sealed, about string) ([]byte, error)
}

// ACME obtains and renews the certificates of the service's domains. A TLS
// handshake never requests a certificate from the authority: it uses the
// certificate in memory or fails.
type ACME struct {
	options   ACMEOptions
	transport *challengeTransport
	store     *store
	manager   *autocert.Manager

	mu      sync.RWMutex
	current map[string]*tls.Certificate // by domain
}

// NewACME returns an ACME that has no certificates yet. Run obtains them.
func NewACME(o ACMEOptions) (*ACME, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone() // DefaultTransport is always a *http.Transport
	if o.Roots != "" {
		roots, err := LoadRoots(o.Roots)
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	}
	a := &ACME{
		options:   o,
		transport: &challengeTransport{RoundTripper: transport},
		store:     &store{db: o.DB, box: o.Box, directoryURL: o.DirectoryURL},
		current:   map[string]*tls.Certificate{},
	}
	a.manager = &autocert.Manager{
		Prompt:     autocert.AcceptTOS,
		Cache:      a.store,
		HostPolicy: a.checkHost,
		Email:      o.Email,
		Client: &acme.Client{
			DirectoryURL: o.DirectoryURL,
			HTTPClient:   &http.Client{Transport: a.transport, Timeout: callTimeout},
			UserAgent:    "atelier",
		},
	}
	return a, nil
}

// LoadRoots reads the root certificates in a PEM file.
func LoadRoots(path string) (*x509.CertPool, error) {
	text, err := readSmallFile(path)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, errors.New(path + " contains no PEM certificate")
	}
	return roots, nil
}

// TLSConfig returns the TLS configuration that serves the certificates and
// responds to tls-alpn-01 challenges (RFC 8737).
func (a *ACME) TLSConfig() *tls.Config { return serverConfig(a.selectCertificate, acme.ALPNProto) }

// ChallengeHandler returns a handler that responds to http-01 challenges (RFC
// 8555 section 8.3) and passes other requests to next. Call it before Run.
func (a *ACME) ChallengeHandler(next http.Handler) http.Handler { return a.manager.HTTPHandler(next) }

// MissingDomains returns the domains that have no certificate yet.
func (a *ACME) MissingDomains() []string {
	a.mu.RLock()
	defer a.mu.RUnlock()
	var missing []string
	for _, domain := range a.options.Domains {
		if a.current[domain] == nil {
			missing = append(missing, domain)
		}
	}
	return missing
}

// Run obtains and renews the certificates until ctx is cancelled.
func (a *ACME) Run(ctx context.Context) {
	if err := a.store.deleteOldChallenges(ctx); err != nil {
		a.options.Log.Warn("could not delete old ACME challenges", "error", err)
	}

	var group sync.WaitGroup
	for _, domain := range a.options.Domains {
		group.Go(func() { a.maintainCertificate(ctx, domain) })
	}
	group.Wait()
}

// maintainCertificate obtains the certificate of a domain and renews it until
// ctx is cancelled.
func (a *ACME) maintainCertificate(ctx context.Context, domain string) {
	retry := firstRetry
	var warned time.Time
	for {
		var pause time.Duration
		cert, err := a.obtainCertificate(ctx, domain)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			a.setCertificate(domain, cert)
			if now := a.options.Now(); expiresSoon(cert.Leaf, now) && now.Sub(warned) >= warnInterval {
				warned = now
				a.options.Log.Warn("certificate expires soon and could not be renewed", "domain", domain, "expires", cert.Leaf.NotAfter)
			}
			retry = firstRetry
			pause = renewalInterval
		case errors.Is(err, errClaimed):
			pause = claimedRetry
		default:
			a.options.Log.Warn("could not obtain a certificate; will retry", "domain", domain, "directory", a.options.DirectoryURL, "retry_after", retry.String(), "reason", a.transport.takeReason(domain), "error", err)
			pause = retry
			retry = min(2*retry, maxRetry)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// setCertificate makes cert the certificate that is served for a domain.
func (a *ACME) setCertificate(domain string, cert *tls.Certificate) {
	a.mu.Lock()
	before := a.current[domain]
	a.current[domain] = cert
	a.mu.Unlock()
	if before == nil || !before.Leaf.Equal(cert.Leaf) {
		a.options.Log.Info("now serving certificate", "domain", domain, "issuer", cert.Leaf.Issuer.CommonName, "expires", cert.Leaf.NotAfter)
	}
}

var errClaimed = errors.New("another node is obtaining the certificate")

// obtainCertificate returns the certificate of a domain from memory, the
// database or the authority. Only one node at a time requests it from the
// authority.
func (a *ACME) obtainCertificate(ctx context.Context, domain string) (*tls.Certificate, error) {
	a.mu.RLock()
	inMemory := a.current[domain] != nil
	a.mu.RUnlock()
	if !inMemory {
		_, err := a.store.Get(ctx, domain)
		if errors.Is(err, autocert.ErrCacheMiss) {
			release, err := a.store.claimDomain(ctx, domain)
			if err != nil {
				return nil, err
			}
			defer release()
		} else if err != nil {
			return nil, err
		}
	}

	// autocert accepts no context: a request that outlasts ctx continues in
	// the background.
	type outcome struct {
		cert *tls.Certificate
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		cert, err := a.manager.GetCertificate(&tls.ClientHelloInfo{
			ServerName:   domain,
			CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}, // makes autocert create an ECDSA key
		})
		done <- outcome{cert, err}
	}()
	select {
	case o := <-done:
		return o.cert, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// selectCertificate returns the certificate for a TLS handshake. A client that
// sends no server name, such as a probe that connects to an IP address, gets
// the certificate of the first domain.
func (a *ACME) selectCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
	if name == "" {
		name = a.options.Domains[0]
	}
	if err := a.checkHost(hello.Context(), name); err != nil {
		return nil, err
	}
	if slices.Equal(hello.SupportedProtos, []string{acme.ALPNProto}) {
		return a.manager.GetCertificate(hello) // the temporary certificate of a tls-alpn-01 challenge
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	cert := a.current[name]
	if cert == nil {
		return nil, fmt.Errorf("no certificate for %s has been obtained yet", name)
	}
	return cert, nil
}

// checkHost returns an error if host, with or without a port, is not one of
// the configured domains.
func (a *ACME) checkHost(_ context.Context, host string) error {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if !slices.Contains(a.options.Domains, strings.ToLower(host)) {
		return errors.New("the host is not a domain of this service")
	}
	return nil
}
