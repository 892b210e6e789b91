package ids_test

import (
	"testing"

	"atelier/internal/base/ids"
)

func TestNewIsRandomAndValid(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	count := map[byte]int{}
	const n = 5000
	for range n {
		id := ids.New()
		if !ids.Valid(id) || seen[id] {
			t.Fatalf("id %q is malformed or repeated", id)
		}
		seen[id] = true
		for i := range len(id) {
			count[id[i]]++
		}
	}
	want := n * ids.Length / 62
	for c, got := range count {
		if got < want*8/10 || got > want*12/10 {
			t.Errorf("character %q occurs %d times, want about %d", c, got, want)
		}
	}
	if len(count) != 62 {
		t.Errorf("%d different characters, want 62", len(count))
	}
}

func TestValid(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"abcdefghij0123456789":  true,
		"":                      false,
		"abcdefghij012345678":   false,
		"abcdefghij01234567890": false,
		"abcdefghij012345678-":  false,
		"abcdefghij012345678é":  false,
		"abcdefghij01234567é":   false,
	} {
		if got := ids.Valid(s); got != want {
			t.Errorf("Valid(%q) = %v, want %v", s, got, want)
		}
	}
}

func TestHash(t *testing.T) {
	t.Parallel()
	// From the examples of FIPS 180-2.
	if got := ids.Hash("abc"); got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("hash = %s", got)
	}
}
