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
	// firstRetry and maxRetry are the waits after a certificate could not be
	// obtained. Let's Encrypt allows five failures in an hour.
	firstRetry = 2 * time.Minute
	maxRetry   = time.Hour
	// claimTimeout is how long a node may take to obtain a certificate before another
	// tries; autocert gives up earlier.
	claimTimeout = 6 * time.Minute
	claimedRetry = 2 * time.Second
	// renewalInterval is how often a renewed certificate is taken over.
	renewalInterval = time.Minute
	callTimeout     = 30 * time.Second
)

// ACMEOptions are what certificates are obtained with.
type ACMEOptions struct {
	Domains   []string // lower case
	Email     string   // of the operator, for the authority; empty for none
	Directory string   // address of the authority
	// Roots is a PEM file with the roots that the authority's own server is
	// verified by; empty for the system's.
	Roots string

	DB  *sqldb.DB
	Box Box
	Log *slog.Logger
	Now func() time.Time
}

// Box seals what is stored. about ties a sealed text to its row.
type Box interface {
	Seal(plain []byte, about string) string
	Open(sealed, about string) ([]byte, error)
}

// ACME obtains certificates for domains and renews them. Visitors never cause
// one to be obtained: they get what is there.
type ACME struct {
	options   ACMEOptions
	transport *challengeTransport
	store     *store
	manager   *autocert.Manager

	mu      sync.RWMutex
	current map[string]*tls.Certificate // by domain
}

// NewACME prepares to obtain certificates; Run does it.
func NewACME(o ACMEOptions) (*ACME, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone() // the standard library makes no other
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
		store:     &store{db: o.DB, box: o.Box, directoryURL: o.Directory},
		current:   map[string]*tls.Certificate{},
	}
	a.manager = &autocert.Manager{
		Prompt:     autocert.AcceptTOS,
		Cache:      a.store,
		HostPolicy: a.checkHost,
		Email:      o.Email,
		Client: &acme.Client{
			DirectoryURL: o.Directory,
			HTTPClient:   &http.Client{Transport: a.transport, Timeout: callTimeout},
			UserAgent:    "atelier",
		},
	}
	return a, nil
}

// LoadRoots reads the certificates in a PEM file.
func LoadRoots(path string) (*x509.CertPool, error) {
	text, err := readSmallFile(path)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, errors.New(path + " has no certificate in PEM")
	}
	return roots, nil
}

// TLS gives the configuration that serves the certificates and answers
// tls-alpn-01 challenges (RFC 8737).
func (a *ACME) TLS() *tls.Config { return serverConfig(a.selectCertificate, acme.ALPNProto) }

// Challenges answers http-01 challenges (RFC 8555 section 8.3), and leaves other
// requests to next. It is to be called before Run.
func (a *ACME) Challenges(next http.Handler) http.Handler { return a.manager.HTTPHandler(next) }

// Missing lists the domains that have no certificate yet.
func (a *ACME) Missing() []string {
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

// Run obtains and renews the certificates until ctx ends.
func (a *ACME) Run(ctx context.Context) {
	if err := a.store.deleteOldChallenges(ctx); err != nil {
		a.options.Log.Warn("old challenges could not be deleted", "error", err)
	}
	var group sync.WaitGroup
	for _, domain := range a.options.Domains {
		group.Go(func() { a.maintainCertificate(ctx, domain) })
	}
	group.Wait()
}

// maintainCertificate has a certificate for a domain until ctx ends.
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
				a.options.Log.Warn("a certificate could not be renewed and expires soon", "domain", domain, "expires", cert.Leaf.NotAfter)
			}
			retry = firstRetry
			pause = renewalInterval
		case errors.Is(err, errClaimed):
			pause = claimedRetry
		default:
			a.options.Log.Warn("no certificate could be obtained", "domain", domain, "directory", a.options.Directory, "retry_after", retry.String(), "reason", a.transport.takeReason(domain), "error", err)
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

// setCertificate serves a certificate from now on.
func (a *ACME) setCertificate(domain string, cert *tls.Certificate) {
	a.mu.Lock()
	before := a.current[domain]
	a.current[domain] = cert
	a.mu.Unlock()
	if before == nil || !before.Leaf.Equal(cert.Leaf) {
		a.options.Log.Info("certificate in use", "domain", domain, "issuer", cert.Leaf.Issuer.CommonName, "expires", cert.Leaf.NotAfter)
	}
}

var errClaimed = errors.New("another node obtains the certificate")

// obtainCertificate gives the certificate of a domain: from memory, from the database, or
// from the authority, which one node at a time asks for it.
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

	// autocert takes no context: what is not done when ctx ends is left behind.
	type outcome struct {
		cert *tls.Certificate
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		cert, err := a.manager.GetCertificate(&tls.ClientHelloInfo{
			ServerName:   domain,
			CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}, // asks for an ECDSA key
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

// selectCertificate gives what a visitor is to see. Without a server name that is the
// first domain's, for probes that connect to an address.
func (a *ACME) selectCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
	if name == "" {
		name = a.options.Domains[0]
	}
	if err := a.checkHost(hello.Context(), name); err != nil {
		return nil, err
	}
	if slices.Equal(hello.SupportedProtos, []string{acme.ALPNProto}) {
		return a.manager.GetCertificate(hello) // the certificate of a challenge
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	cert := a.current[name]
	if cert == nil {
		return nil, fmt.Errorf("there is no certificate for %s yet", name)
	}
	return cert, nil
}

// checkHost refuses names that certificates are not obtained for.
func (a *ACME) checkHost(_ context.Context, host string) error {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if !slices.Contains(a.options.Domains, strings.ToLower(host)) {
		return errors.New("not a domain of this service")
	}
	return nil
}
