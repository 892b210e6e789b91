package credential

import (
	"math/big"
	"strings"
	"testing"

	"atelier/internal/base/ids"
)

// TestLookAlikes holds that the checksum tells a token from text of the same
// form, so that scanners, and we, need not ask the database.
func TestLookAlikes(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{personalPrefix, companyPrefix} {
		for range 1000 {
			if token := newSecret(prefix); !WellFormed(token) {
				t.Fatalf("%s is not well-formed", token)
			}
		}
		for range 10_000 {
			if fake := prefix + ids.Text(secretChars+checkChars); WellFormed(fake) {
				t.Fatalf("%s is well-formed", fake)
			}
		}
	}
	if token := newSecret(scimPrefix); WellFormed(token) || !wellFormed(token, scimPrefix) {
		t.Errorf("%s, of a directory, is taken for an access token", token)
	}
	// The checksum alone does not make one.
	for _, body := range []string{"atl_x_" + ids.Text(secretChars), personalPrefix + strings.Repeat("-", secretChars), personalPrefix + ids.Text(secretChars-1), ""} {
		if fake := body + secretChecksum(body); WellFormed(fake) {
			t.Errorf("%s is well-formed", fake)
		}
	}
}

// TestBase62 holds that every token has the same length, whatever is drawn.
func TestBase62(t *testing.T) {
	t.Parallel()
	most := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	for _, test := range []struct {
		n     *big.Int
		width int
		want  string
	}{
		{big.NewInt(0), checkChars, "000000"},
		{big.NewInt(61), checkChars, "00000Z"},
		{big.NewInt(1<<32 - 1), checkChars, "4GFfc3"},
	} {
		if got := encodeBase62(test.n, test.width); got != test.want {
			t.Errorf("%v = %q, want %q", test.n, got, test.want)
		}
	}
	if got := encodeBase62(most, secretChars); len(got) != secretChars {
		t.Errorf("the largest = %q, want %d characters", got, secretChars)
	}
}
