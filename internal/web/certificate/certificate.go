// Package certificate provides the TLS certificates of the server.
//
// Files serves a certificate from two files and reloads them when they change.
// ACME obtains and renews certificates from a certificate authority (RFC 8555)
// with the challenges tls-alpn-01 and http-01. The certificates, the account
// key and the state of the challenges are stored encrypted in the database, so
// that any node can respond to a challenge and all nodes serve the same
// certificate.
package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"time"
)

// serverConfig returns the TLS configuration of the server, with certificates
// from get. protocols are offered by ALPN in addition to HTTP/2 and HTTP/1.1.
func serverConfig(get func(*tls.ClientHelloInfo) (*tls.Certificate, error), protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: get,
		NextProtos:     append([]string{"h2", "http/1.1"}, protocols...),
	}
}

// expiryWarning is the remaining validity below which a certificate should
// already have been replaced. For a short-lived certificate, a fifth of its
// lifetime is used instead.
const expiryWarning = 14 * 24 * time.Hour

// warnInterval is the time between two log lines about the same expiring
// certificate.
const warnInterval = 24 * time.Hour

// expiresSoon reports whether a certificate is so close to its expiry that it
// should have been replaced.
func expiresSoon(leaf *x509.Certificate, now time.Time) bool {
	lifetime := leaf.NotAfter.Sub(leaf.NotBefore)
	return leaf.NotAfter.Sub(now) < min(expiryWarning, lifetime/5)
}
