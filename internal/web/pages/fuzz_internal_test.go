package pages

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzSafeDestination proves that a sign-in never leads to another site: every
// browser resolves the result to a page of this service, and checking the result
// again does not change it.
func FuzzSafeDestination(f *testing.F) {
	for _, next := range []string{"/account", "/device?user_code=BCDF-GHJK", "//evil.example", `/\evil.example`, "https:evil.example", "/tokens?next=//evil.example", "/account#//evil", "/%2f/evil", "\t//evil", "/account/../..//evil", "/library", "/companies/PagW53lsaa2KiGgg5wR4/tokens", "/companies/../tokens", "javascript:alert(1)", "", "?", "/account?%zz", "/account?a=1;b=2"} {
		f.Add(next)
	}
	f.Fuzz(func(t *testing.T, next string) {
		got := safeDestination(next)
		if !strings.HasPrefix(got, "/") || strings.HasPrefix(got, "//") || strings.ContainsAny(got, "\\\r\n\t\x00#") {
			t.Fatalf("%q leads to %q", next, got)
		}
		base := &url.URL{Scheme: "https", Host: "atelier.example", Path: "/signin"}
		to, err := base.Parse(got)
		if err != nil || to.Host != base.Host || to.Scheme != base.Scheme {
			t.Fatalf("%q leads to %v, %v", next, to, err)
		}
		if again := safeDestination(got); again != got {
			t.Errorf("%q leads to %q, which leads to %q", next, got, again)
		}
	})
}
