package certificate

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

const (
	pollInterval = time.Second
	maxFileBytes = 1 << 20
)

// Files serves a certificate from two PEM files: the certificate with its chain,
// and its private key.
type Files struct {
	certFile, keyFile string
	log               *slog.Logger
	now               func() time.Time

	current atomic.Pointer[tls.Certificate]

	// The fields below are used by Run only.
	handledDigest [sha256.Size]byte // digest of the content last loaded or refused
	pendingDigest [sha256.Size]byte // digest of the content read at the last poll
	warnedAt      time.Time
}

// LoadFiles reads a certificate and its private key from PEM files.
func LoadFiles(certFile, keyFile string, log *slog.Logger, now func() time.Time) (*Files, error) {
	f := &Files{
		certFile: certFile,
		keyFile:  keyFile,
		log:      log,
		now:      now,
	}
	cert, key, err := f.readPair()
	if err != nil {
		return nil, err
	}
	parsed, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("load certificate %s with key %s: %w", certFile, keyFile, err)
	}
	f.handledDigest = digestPair(cert, key, nil)
	f.current.Store(&parsed)
	return f, nil
}

// TLSConfig returns the TLS configuration that serves the current certificate.
func (f *Files) TLSConfig() *tls.Config {
	return serverConfig(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.current.Load(), nil })
}

// Run reloads the files when they change, until ctx is cancelled. A new
// certificate applies only to new connections.
func (f *Files) Run(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		f.warnOfExpiry()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		f.reloadChanged()
	}
}

// reloadChanged loads changed files once two polls in a row have read the same
// content: the two files are replaced one after the other and do not match in
// between.
func (f *Files) reloadChanged() {
	cert, key, err := f.readPair()
	found := digestPair(cert, key, err)
	settled := found == f.pendingDigest
	f.pendingDigest = found
	if !settled || found == f.handledDigest {
		return
	}
	f.handledDigest = found

	var parsed tls.Certificate
	if err == nil {
		parsed, err = tls.X509KeyPair(cert, key)
	}
	now := f.now()
	if err == nil && (now.Before(parsed.Leaf.NotBefore) || now.After(parsed.Leaf.NotAfter)) {
		err = fmt.Errorf("the certificate is not valid now, only from %s until %s", parsed.Leaf.NotBefore.Format(time.RFC3339), parsed.Leaf.NotAfter.Format(time.RFC3339))
	}
	if err != nil {
		f.log.Warn("new certificate rejected; still serving the old certificate", "cert", f.certFile, "key", f.keyFile, "error", err)
		return
	}
	f.current.Store(&parsed)
	f.warnedAt = time.Time{}
	f.log.Info("certificate replaced", "cert", f.certFile, "names", parsed.Leaf.DNSNames, "expires", parsed.Leaf.NotAfter)
}

func (f *Files) warnOfExpiry() {
	now := f.now()
	leaf := f.current.Load().Leaf
	if !expiresSoon(leaf, now) || now.Sub(f.warnedAt) < warnInterval {
		return
	}
	f.warnedAt = now
	f.log.Warn("certificate expires soon or has expired: replace its files", "cert", f.certFile, "expires", leaf.NotAfter)
}

// readPair returns the content of the certificate file and the key file.
func (f *Files) readPair() (cert, key []byte, err error) {
	cert, err = readSmallFile(f.certFile)
	if err != nil {
		return nil, nil, err
	}
	key, err = readSmallFile(f.keyFile)
	if err != nil {
		return nil, nil, err
	}
	return cert, key, nil
}

func readSmallFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(content) > maxFileBytes {
		return nil, errors.New(path + " is too large for a certificate")
	}
	return content, nil
}

// digestPair returns a digest of the content of both files, or of the error
// that occurred reading them.
func digestPair(cert, key []byte, err error) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%d %s%s%v", len(cert), cert, key, err))
}
