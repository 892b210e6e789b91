package credential

import (
	"strings"
	"testing"

	"atelier/internal/base/ids"
)

// FuzzWellFormed proves that a token with a correct checksum is no longer one
// after any of its characters has changed, and that random texts are no tokens.
func FuzzWellFormed(f *testing.F) {
	for _, prefix := range []string{personalPrefix, companyPrefix} {
		f.Add(newSecret(prefix), uint(9), byte('0'))
		f.Add(prefix+strings.Repeat("0", secretChars+checkChars), uint(20), byte('1'))
	}
	f.Add("", uint(0), byte(0))
	f.Fuzz(func(t *testing.T, token string, at uint, char byte) {
		if !WellFormed(token) {
			return
		}
		prefix, ok := token[:len(personalPrefix)], len(token) == len(personalPrefix)+secretChars+checkChars
		if !ok || prefix != personalPrefix && prefix != companyPrefix || !ids.Alphanumeric(token[len(prefix):]) {
			t.Fatalf("%q is well-formed", token)
		}
		i := at % uint(len(token))
		changed := token[:i] + string([]byte{char}) + token[i+1:]
		if changed != token && WellFormed(changed) {
			t.Errorf("%q and %q are both well-formed", token, changed)
		}
	})
}
