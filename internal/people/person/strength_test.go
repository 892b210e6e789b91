package person_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/people/person"
	"atelier/internal/testkit/watch"
)

func TestWeakPasswordsAreRefused(t *testing.T) {
	t.Parallel()
	const email = "anna.b@northlight.example"
	for _, password := range []string{
		// the best known ones, and what people make of them when a page asks for more
		"password", "PASSWORD", "Password1", "P@ssw0rd", "Pa$$w0rd!", "passw0rd123", "password123!", "123password", "pass-word", "passwordpassword", "Passwort1!",
		"iloveyou", "ILoveYou2", "sunshine", "princess1", "football", "baseball", "superman", "trustno1", "letmein1", "welcome1", "Welcome2024!", "monkey123",
		"dragon99", "charlie1", "michael1", "jordan23", "starwars", "computer", "changeme", "admin123", "administrator", "qwerty123", "Summer2026", "$ecret123", "testtest",
		"1q2w3e4r", "1q2w3e4r!", "zaq12wsx", "a1b2c3d4",
		// patterns
		"12345678", "87654321", "123456789012", "11111111", "aaaaaaaaaaaa", "abcdefgh", "abcd1234", "1234abcd", "qwertyuiop", "asdfghjkl", "1qaz2wsx", "qwertz12345",
		"aaaabbbb", "11112222", "20012001", "19870412", "0123456789",
		// the person and the place
		"anna.b@northlight.example", "anna.b123", "ANNA.B2026", "northlight", "Northlight1!", "atelier1", "Atelier2026", "atelieratelier",
		// too short
		"", "short", "äöüäöü7",
	} {
		if err := person.CheckNewPassword(password, email); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q = %v, want refused", password, err)
		}
	}
}

func TestGoodPasswordsPass(t *testing.T) {
	t.Parallel()
	for _, password := range []string{
		"correct horse battery", "another password", "a short password", "anna's first password", "lamp-river-42", "passwordless monkeys", "Tr0ub4dor&3", "k7#mQ2!vX",
		"mein Hund bellt laut", "пароль у окна", "我的密码很长很安全", "atelier and a lamp", "anna.b likes tea", "2718281828459", "xkcdxkcd9f", "zebra-dragon",
	} {
		if err := person.CheckNewPassword(password, "anna.b@northlight.example"); err != nil {
			t.Errorf("%q = %v, want it to pass", password, err)
		}
	}
}

// TestCommonList holds the list to its form, and the check to being quick
// whatever is typed.
func TestCommonList(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("common.txt")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if !slices.IsSorted(words) || len(slices.Compact(slices.Clone(words))) != len(words) || len(words) < 1000 || len(text) > 20_000 {
		t.Errorf("%d words in %d bytes: want them sorted, each once", len(words), len(text))
	}
	for _, word := range words {
		if word != strings.ToLower(word) || len(word) < 3 || strings.ContainsAny(word, " \t\r") {
			t.Errorf("word = %q", word)
		}
	}
	start := time.Now()
	for _, long := range []string{strings.Repeat("a1", 512), strings.Repeat("ab", 511) + "c", strings.Repeat("@", 1024), strings.Repeat("ä", 512)} {
		_ = person.CheckNewPassword(long, strings.Repeat("a", 200)+"@example.com")
	}
	watch.Took(t, "four long passwords", time.Since(start), time.Second)
}
