package oidc

import "testing"

func TestSafeAddresses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		issuer, address string
		want            bool
	}{
		{"https://id.example", "https://id.example/token", true},
		{"https://id.example", "https://elsewhere.example/token", true},
		{"https://id.example", "http://id.example/token", false},
		{"http://localhost:1", "http://localhost:1/token", true},
		{"http://localhost:1", "https://id.example/token", true},
		{"https://id.example", "", false},
		{"https://id.example", "/token", false},
		{"https://id.example", "https:token", false},
		{"https://id.example", "javascript:alert(1)", false},
		{"http://id.example", "file:///etc/passwd", false},
		{"ftp://id.example", "ftp://id.example", false},
		{"https://id.example", "https://id.example:x/", false},
	}
	for _, tt := range tests {
		if got := isSafeURL(tt.issuer, tt.address); got != tt.want {
			t.Errorf("safe(%q, %q) = %t, want %t", tt.issuer, tt.address, got, tt.want)
		}
	}
}
