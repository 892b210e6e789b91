package keyring_test

import (
	"bytes"
	"strings"
	"testing"

	"atelier/internal/base/keyring"
)

func TestBox(t *testing.T) {
	t.Parallel()
	ring, err := keyring.New(strings.Repeat("A", 43) + "=")
	if err != nil {
		t.Fatal(err)
	}
	box, plain := ring.BoxFor("a"), []byte("a secret")
	sealed := box.Seal(plain, "row 1")
	if again := box.Seal(plain, "row 1"); again == sealed || strings.Contains(sealed, "secret") {
		t.Errorf("sealed = %s, and again %s", sealed, again)
	}
	if got, err := box.Open(sealed, "row 1"); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("open = %q, %v", got, err)
	}
	other := "A"
	if sealed[0] == 'A' {
		other = "B"
	}
	for name, open := range map[string]func() ([]byte, error){
		"moved to another row": func() ([]byte, error) { return box.Open(sealed, "row 2") },
		"of another purpose":   func() ([]byte, error) { return ring.BoxFor("b").Open(sealed, "row 1") },
		"shortened":            func() ([]byte, error) { return box.Open(sealed[:len(sealed)-2], "row 1") },
		"empty":                func() ([]byte, error) { return box.Open("", "row 1") },
		"not even base64":      func() ([]byte, error) { return box.Open("%%%", "row 1") },
		"with a character off": func() ([]byte, error) { return box.Open(other+sealed[1:], "row 1") },
	} {
		if got, err := open(); err == nil {
			t.Errorf("%s: opened as %q", name, got)
		}
	}
}
