package httpd

import (
	"net/url"
	"strings"
)

// Origin returns the origin of an http or https URL as browsers send it:
// without a path, in lower case, and without the default port of the scheme. It
// returns "" for anything else.
func Origin(address string) string {
	u, err := url.Parse(strings.ToLower(address))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	if u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80" {
		u.Host = strings.TrimSuffix(u.Host, ":"+u.Port())
	}
	return u.Scheme + "://" + u.Host
}
