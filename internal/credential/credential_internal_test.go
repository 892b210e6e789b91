package credential

import (
	"testing"

	"atelier/internal/ident"
)

// TestLookAlikes holds that the checksum tells a token from text of the same
// form, so that scanners, and we, need not ask the database.
func TestLookAlikes(t *testing.T) {
	t.Parallel()
	for range 1000 {
		if token := mint(personalPrefix); !wellFormed(token) {
			t.Fatalf("%s is not well-formed", token)
		}
	}
	for range 10_000 {
		if fake := personalPrefix + ident.Text(secretChars+checkChars); wellFormed(fake) {
			t.Fatalf("%s is well-formed", fake)
		}
	}
}
