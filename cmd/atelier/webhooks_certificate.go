package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

type webhooksCertificateCmd struct{ jsonFlag }

// Run prints the path of the certificate of "webhooks listen", and creates it if
// it is missing, so that a service can be told to trust it.
func (c webhooksCertificateCmd) Run(p *program) error {
	path, _, err := p.webhookCertificate()
	if err != nil {
		return err
	}
	return p.printResult(c.JSON, map[string]string{"certificate": path}, path)
}

// certificateLife is the time for which a new certificate is valid. One that
// ends within a day is replaced.
const certificateLife = 365 * 24 * time.Hour

// webhookCertificate returns the certificate of the local receiver, for
// localhost only: services send webhooks to HTTPS addresses and no others.
func (p *program) webhookCertificate() (path string, pair tls.Certificate, err error) {
	dir := p.profilesFolder()
	path = filepath.Join(dir, "webhooks.pem")
	keyPath := filepath.Join(dir, "webhooks.key")
	pair, err = tls.LoadX509KeyPair(path, keyPath)
	if err == nil && time.Until(pair.Leaf.NotAfter) > 24*time.Hour {
		return path, pair, nil
	}
	certificate, key, err := newLocalCertificate(time.Now())
	if err != nil {
		return "", pair, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", pair, err
	}
	if err := os.WriteFile(keyPath, key, 0o600); err != nil {
		return "", pair, err
	}
	if err := os.WriteFile(path, certificate, 0o644); err != nil { //nolint:gosec // the service reads it
		return "", pair, err
	}
	pair, err = tls.X509KeyPair(certificate, key)
	return path, pair, err
}

// newLocalCertificate returns a certificate for localhost that signs itself, and
// its key, both as PEM.
func newLocalCertificate(now time.Time) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	const serialBits = 120
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "atelier webhooks listen"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(certificateLife),
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	return certificate, key, nil
}
