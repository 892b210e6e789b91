package config

import (
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

var domainName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// validateHTTP calls bad for each invalid setting in the group http.
func (c *Config) validateHTTP(bad func(name, format string, args ...any)) {
	h := c.HTTP
	if h.TLSCert != "" && h.TLSKey == "" {
		bad("http.tls_key", "is required if http.tls_cert is set")
	}
	if h.TLSKey != "" && h.TLSCert == "" {
		bad("http.tls_cert", "is required if http.tls_key is set")
	}
	if h.TLSCert != "" && len(h.ACMEDomains) > 0 {
		bad("http.acme_domains", "cannot be used together with http.tls_cert: certificates come either from files or from ACME")
	}
	for _, domain := range h.ACMEDomains {
		if _, err := netip.ParseAddr(domain); err == nil || !domainName.MatchString(domain) || len(domain) > 253 {
			bad("http.acme_domains", "%q is not a domain such as atelier.example.com", domain)
		}
	}
	if h.ACMEEmail != "" {
		if a, err := mail.ParseAddress(h.ACMEEmail); err != nil || a.Address != h.ACMEEmail {
			bad("http.acme_email", "must be an e-mail address")
		}
	}
	if u, err := url.Parse(h.ACMEDirectory); err != nil || u.Scheme != "https" || u.Host == "" {
		bad("http.acme_directory", "must be an https:// address")
	}
	if h.RedirectListen != "" {
		if _, _, err := net.SplitHostPort(h.RedirectListen); err != nil {
			bad("http.redirect_listen", "must be HOST:PORT")
		}
		if !c.HasTLS() {
			bad("http.redirect_listen", "requires http.tls_cert or http.acme_domains")
		}
	}
	if c.HasTLS() && strings.HasPrefix(c.BaseURL, "http://") {
		bad("base_url", "must be an https:// address, because the program serves HTTPS")
	}
	for _, origin := range h.CORSOrigins {
		if origin == "*" {
			bad("http.cors_origins", `must name each origin: "*" would allow every website to call the API`)
		} else if !isOrigin(origin) {
			bad("http.cors_origins", "%q is not an origin as browsers send it, such as https://app.example.com or http://localhost:3000", origin)
		}
	}
}

// isOrigin reports whether text is a serialized origin (RFC 6454, section 6.2):
// scheme and host in lower case, and the port unless it is the scheme's
// default. Schemes other than http and https are allowed, because apps use
// their own.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Hostname() == "" || u.Scheme == "file" {
		return false
	}
	if own := map[string]string{"http": "80", "https": "443"}[u.Scheme]; own != "" && u.Port() == own {
		return false
	}
	for _, r := range text {
		if r <= ' ' || r > '~' || r == '*' {
			return false
		}
	}
	return text == u.Scheme+"://"+strings.ToLower(u.Host) && !strings.HasSuffix(u.Host, ":")
}
