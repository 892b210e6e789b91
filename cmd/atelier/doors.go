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

	"atelier/internal/certificate"
	"atelier/internal/config"
	"atelier/internal/httpd"
	"atelier/internal/keyring"
	"atelier/internal/sqldb"
)

// doors are the listeners of the service and the certificates that they show.
type doors struct {
	cfg *config.Config
	log *slog.Logger

	main     net.Listener
	redirect net.Listener // of plain HTTP to HTTPS; nil for none
	tls      *tls.Config  // of main; nil for plain HTTP
	files    *certificate.Files
	acme     *certificate.ACME
}

// openDoors opens the addresses and reads the certificate's files, if any.
func (p *program) openDoors(log *slog.Logger) (*doors, error) {
	d := &doors{cfg: p.cfg, log: log}
	if p.cfg.HTTP.TLSCert != "" {
		files, err := certificate.LoadFiles(p.cfg.HTTP.TLSCert, p.cfg.HTTP.TLSKey, log, time.Now)
		if err != nil {
			return nil, fmt.Errorf("http.tls_cert: %w", err)
		}
		d.files = files
		d.tls = files.TLS()
	}
	l, err := listen("--listen", p.cfg.Listen)
	if err != nil {
		return nil, err
	}
	d.main = l
	if p.cfg.HTTP.RedirectListen == "" {
		return d, nil
	}
	d.redirect, err = listen("--http.redirect-listen", p.cfg.HTTP.RedirectListen)
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Close closes the listeners, for the ways out before servers have them.
func (d *doors) Close() {
	_ = d.main.Close()
	if d.redirect != nil {
		_ = d.redirect.Close()
	}
}

// useACME prepares to obtain certificates where domains are given.
func (d *doors) useACME(db *sqldb.DB, keys keyring.Ring) error {
	h := d.cfg.HTTP
	if len(h.ACMEDomains) == 0 {
		return nil
	}
	acme, err := certificate.NewACME(certificate.ACMEOptions{
		Domains:   h.ACMEDomains,
		Email:     h.ACMEEmail,
		Directory: h.ACMEDirectory,
		Roots:     h.ACMERoots,
		DB:        db,
		Box:       keys.Box("certificates"),
		Log:       d.log,
		Now:       time.Now,
	})
	if err != nil {
		return fmt.Errorf("http.acme_roots: %w", err)
	}
	d.acme = acme
	d.tls = acme.TLS()
	return nil
}

// certificateState is a word about the certificates for /readyz.
func (d *doors) certificateState() string {
	if len(d.acme.Missing()) > 0 {
		return "missing"
	}
	return "ok"
}

// start runs what belongs to the listeners beside the service itself.
func (d *doors) start(ctx context.Context, group *errgroup.Group) {
	if d.files != nil {
		group.Go(func() error { d.files.Run(ctx); return nil })
	}
	if d.redirect != nil {
		handler := d.redirectHandler()
		group.Go(func() error {
			return httpd.ServeRedirect(ctx, d.redirect, handler, redirectConnections, d.log, time.Now)
		})
	}
	if d.acme != nil { // after its challenges are answered
		group.Go(func() error { d.acme.Run(ctx); return nil })
	}
}

// redirectHandler sends plain HTTP to the address of the same host, among those
// that the service has.
func (d *doors) redirectHandler() http.Handler {
	base, err := url.Parse(d.cfg.BaseURL)
	if err != nil {
		panic(err) // validated with the settings
	}
	var others []*url.URL
	for _, address := range []string{d.cfg.AppURL, d.cfg.Media.URL} {
		if u, err := url.Parse(address); err == nil && u.Scheme == "https" {
			others = append(others, u)
		}
	}
	for _, domain := range d.cfg.HTTP.ACMEDomains {
		host := domain
		if port := base.Port(); port != "" {
			host = net.JoinHostPort(domain, port)
		}
		others = append(others, &url.URL{Scheme: "https", Host: host})
	}
	handler := httpd.Redirect(base, others...)
	if d.acme != nil {
		handler = d.acme.Challenges(handler)
	}
	return handler
}
