package keyring_test

import (
	"bytes"
	"strings"
	"testing"

	"atelier/internal/base/keyring"
)

// FuzzBox proves that a sealed value opens only where it belongs, and that a
// text which nobody sealed does not open.
func FuzzBox(f *testing.F) {
	ring, err := keyring.New(strings.Repeat("A", 43) + "=")
	if err != nil {
		f.Fatal(err)
	}
	box := ring.BoxFor("fuzz")
	f.Add([]byte("secret"), "row 1", box.Seal([]byte("secret"), "row 2"))
	f.Add([]byte(nil), "", "")
	f.Add([]byte{0}, "é", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, plain []byte, about, sealed string) {
		text := box.Seal(plain, about)
		if got, err := box.Open(text, about); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%q opens as %q, %v", plain, got, err)
		}
		if _, err := box.Open(text, about+"x"); err == nil {
			t.Error("a value opens in another place")
		}
		if _, err := ring.BoxFor("other").Open(text, about); err == nil {
			t.Error("a value opens for another purpose")
		}
		if got, err := box.Open(sealed, "fuzz: "+about); err == nil {
			t.Errorf("%q, which was sealed elsewhere, opens as %q", sealed, got)
		}
	})
}
