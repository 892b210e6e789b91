package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"

	"atelier/internal/base/config"
	"atelier/internal/base/keyring"
	"atelier/internal/base/sqldb"
	"atelier/internal/web/certificate"
	"atelier/internal/web/httpd"
)

// listeners has the network listeners of the service and their certificates.
type listeners struct {
	cfg *config.Config
	log *slog.Logger

	main     net.Listener
	redirect net.Listener // redirects HTTP to HTTPS; nil if there is no redirect
	tls      *tls.Config  // of main; nil for plain HTTP
	files    *certificate.Files
	acme     *certificate.ACME
}

// openListeners opens the listeners and reads the certificate files, if
// configured.
func (in *installation) openListeners(log *slog.Logger) (*listeners, error) {
	l := &listeners{cfg: in.cfg, log: log}
	if in.cfg.HTTP.TLSCert != "" {
		files, err := certificate.LoadFiles(in.cfg.HTTP.TLSCert, in.cfg.HTTP.TLSKey, log, time.Now)
		if err != nil {
			return nil, fmt.Errorf("http.tls_cert: %w", err)
		}
		l.files = files
		l.tls = files.TLSConfig()
	}
	var err error
	l.main, err = openListener("--listen", in.cfg.Listen)
	if err != nil {
		return nil, err
	}
	if in.cfg.HTTP.RedirectListen == "" {
		return l, nil
	}
	l.redirect, err = openListener("--http.redirect-listen", in.cfg.HTTP.RedirectListen)
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Close closes the listeners if the service fails to start.
func (l *listeners) Close() {
	_ = l.main.Close()
	if l.redirect != nil {
		_ = l.redirect.Close()
	}
}

// useACME prepares obtaining certificates by ACME if domains are configured
// for it.
func (l *listeners) useACME(db *sqldb.DB, keys keyring.Ring) error {
	h := l.cfg.HTTP
	if len(h.ACMEDomains) == 0 {
		return nil
	}
	acme, err := certificate.NewACME(certificate.ACMEOptions{
		Domains:      h.ACMEDomains,
		Email:        h.ACMEEmail,
		DirectoryURL: h.ACMEDirectory,
		Roots:        h.ACMERoots,
		DB:           db,
		Box:          keys.BoxFor("certificates"),
		Log:          l.log,
		Now:          time.Now,
	})
	if err != nil {
		return fmt.Errorf("http.acme_roots: %w", err)
	}
	l.acme = acme
	l.tls = acme.TLSConfig()
	return nil
}

// certificateState returns the state of the certificates for /readyz: "ok", or
// "missing" if a domain has none yet.
func (l *listeners) certificateState() string {
	if len(l.acme.MissingDomains()) > 0 {
		return "missing"
	}
	return "ok"
}

// runBackground starts certificate renewal and the server that redirects to
// HTTPS.
func (l *listeners) runBackground(ctx context.Context, group *errgroup.Group) {
	if l.files != nil {
		group.Go(func() error { l.files.Run(ctx); return nil })
	}
	if l.redirect != nil {
		handler := l.redirectHandler()
		group.Go(func() error {
			return httpd.ServeRedirect(ctx, l.redirect, handler, redirectConnections, l.log, time.Now)
		})
	}
	if l.acme != nil { // started last, because the redirect server responds to ACME challenges
		group.Go(func() error { l.acme.Run(ctx); return nil })
	}
}

// redirectHandler returns a handler that redirects plain HTTP to HTTPS: to the
// requested host if the service has a URL with that host, and to the base URL
// otherwise.
func (l *listeners) redirectHandler() http.Handler {
	base, err := url.Parse(l.cfg.BaseURL)
	if err != nil {
		panic(err) // the settings have been validated
	}
	var others []*url.URL
	for _, address := range []string{l.cfg.AppURL, l.cfg.Media.URL} {
		if u, err := url.Parse(address); err == nil && u.Scheme == "https" {
			others = append(others, u)
		}
	}
	for _, domain := range l.cfg.HTTP.ACMEDomains {
		host := domain
		if port := base.Port(); port != "" {
			host = net.JoinHostPort(domain, port)
		}
		others = append(others, &url.URL{Scheme: "https", Host: host})
	}
	handler := httpd.RedirectToHTTPS(base, others...)
	if l.acme != nil {
		handler = l.acme.ChallengeHandler(handler)
	}
	return handler
}
