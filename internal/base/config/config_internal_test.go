package config

import "testing"

// TestEveryNumberHasABound keeps a new setting from being forgotten: each
// number says the least it can be, and has a name that the program knows.
func TestEveryNumberHasABound(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	new(Config).eachNumber(func(name string, _ int64, least string) {
		seen[name] = true
		if least != "0" && least != "1" {
			t.Errorf("%s has no tag least", name)
		}
	})
	for _, name := range []string{"connections", "limits.json_bytes", "tokens.id_lifetime", "webhook.retry_schedule", "media.url_lifetime", "shutdown.delay"} {
		if !seen[name] {
			t.Errorf("%s is not among the numbers", name)
		}
	}
}
