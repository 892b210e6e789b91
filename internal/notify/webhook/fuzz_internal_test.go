package webhook

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/netguard/netguardtest"
)

// FuzzParseRetryAfter proves that a receiver cannot have us wait for less than
// no time, or for more than a day.
func FuzzParseRetryAfter(f *testing.F) {
	for _, text := range []string{"", "5", "-1", "1.5", "99999999999999999999", "Sun, 15 Nov 2026 09:30:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "9223372036854775807", "9223372037"} {
		f.Add(text)
	}
	now := time.Date(2026, 11, 15, 9, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		if wait := parseRetryAfter(text, now); wait < 0 || wait > 24*time.Hour {
			t.Errorf("%q = %v", text, wait)
		}
	})
}

// FuzzCheckedHost proves that the host of a URL that passes the check is the
// host that the sender connects to: an address that the guard allows, or a name.
func FuzzCheckedHost(f *testing.F) {
	for _, url := range netguardtest.URLs(f) {
		f.Add(url)
	}
	for _, ip := range netguardtest.Public() {
		f.Add("https://" + netip.AddrPortFrom(ip, 8443).String() + "/")
	}
	f.Add("https://example.com:8443/a?b=c")
	g := NewGuard(nil)
	f.Fuzz(func(t *testing.T, raw string) {
		if g.CheckURL(raw) != "" {
			return
		}
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		host := u.Hostname()
		if ip, err := netip.ParseAddr(host); err == nil {
			if g.border.CheckAddress(ip) != nil {
				t.Errorf("%q passes, and %s is denied", raw, ip)
			}
			return
		}
		// Browsers and C libraries read such names as addresses.
		last := host[strings.LastIndex(host, ".")+1:]
		if last == "" || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(strings.ToLower(last), "0x") && strings.Trim(strings.ToLower(last[2:]), "0123456789abcdef") == "" {
			t.Errorf("%q passes, and its host looks like an address", raw)
		}
		if strings.EqualFold(last, "localhost") || strings.ContainsAny(host, ":@%\\/[]") {
			t.Errorf("%q passes with the host %q", raw, host)
		}
	})
}
