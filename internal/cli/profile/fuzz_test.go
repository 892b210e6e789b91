package profile_test

import (
	"path/filepath"
	"testing"

	"atelier/internal/cli/profile"
)

// FuzzNameFor proves that every address leads to a name that a profile may have
// and that is one file name.
func FuzzNameFor(f *testing.F) {
	for _, address := range []string{"https://atelier.example.com", "http://localhost:8080/", "http://[::1]:80", "", "..", "https://../", "https://%2e%2e/", "https://-", "//a/b", "https://ä.example"} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		name := profile.NameFor(address)
		if err := profile.CheckName(name); err != nil {
			t.Errorf("%q leads to %q: %v", address, name, err)
		}
		if !filepath.IsLocal(name) || filepath.Base(name) != name {
			t.Errorf("%q leads to %q, which is no file name", address, name)
		}
	})
}
