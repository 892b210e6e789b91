package person_test

import (
	"net/mail"
	"strings"
	"testing"
	"unicode"

	"atelier/internal/people/person"
)

// FuzzCheckEmail proves that an accepted address can stand in a mail header
// alone, is at most 254 bytes long, and is not shown whole when it is masked.
func FuzzCheckEmail(f *testing.F) {
	for _, email := range []string{"anna@example.com", "a@b", "Anna <anna@example.com>", "anna@example.com\r\nBcc: x@example.com", `"a b"@example.com`, "anna@[127.0.0.1]", "ä@example.com", "a@b@c", "a\u202eb@example.com", "", "@", "anna@example.com,bert@example.com", strings.Repeat("a", 250) + "@b.c"} {
		f.Add(email)
	}
	f.Fuzz(func(t *testing.T, email string) {
		if person.CheckEmail(email) != nil {
			return
		}
		if len(email) > 254 || strings.ContainsFunc(email, unicode.IsControl) {
			t.Errorf("%q passes", email)
		}
		all, err := mail.ParseAddressList(email)
		if err != nil || len(all) != 1 || all[0].Address != email || all[0].Name != "" {
			t.Errorf("%q passes and is read as %v, %v", email, all, err)
		}
		if at := strings.LastIndex(email, "@"); at > 2 && person.MaskEmail(email) == email {
			t.Errorf("%q is masked as %q", email, person.MaskEmail(email))
		}
	})
}
