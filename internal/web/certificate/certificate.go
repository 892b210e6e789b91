// Package certificate has the TLS certificates that the service proves its name
// with.
//
// Files serves one from two files and follows them when they change. ACME obtains
// and renews them from a certificate authority (RFC 8555), by the challenges
// tls-alpn-01 and http-01. Certificates, account key and the state of challenges
// are in the database, sealed, so that any node can answer a challenge and all
// serve the same certificate.
package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"time"
)

// serverConfig is how the service speaks TLS.
func serverConfig(get func(*tls.ClientHelloInfo) (*tls.Certificate, error), more ...string) *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: get,
		NextProtos:     append([]string{"h2", "http/1.1"}, more...),
	}
}

// Certificates that expire within this span, or within a fifth of their
// lifetime where that is less, should have been replaced by now.
const expiryWarning = 14 * 24 * time.Hour

// warnInterval is the time between two log lines about a certificate that expires.
const warnInterval = 24 * time.Hour

// expiresSoon reports whether a certificate should have been replaced by now.
func expiresSoon(leaf *x509.Certificate, now time.Time) bool {
	lifetime := leaf.NotAfter.Sub(leaf.NotBefore)
	return leaf.NotAfter.Sub(now) < min(expiryWarning, lifetime/5)
}
