package device

import (
	"strings"
	"testing"
)

// FuzzReadUserCode proves that a code which a person typed has one canonical
// form: the form itself, typed again in any case and grouping, is the same code.
func FuzzReadUserCode(f *testing.F) {
	for range 4 {
		f.Add(newUserCode())
	}
	for _, typed := range []string{"", "bcdf-ghjk", "BCDF GHJK", "bcdfghj", "bcdfghjkl", "bcd\u00a0fghjk", "ſbcdfghj", "BCDFGHJ\u212a", strings.Repeat("-", 100)} {
		f.Add(typed)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		code, ok := readUserCode(typed)
		if !ok {
			return
		}
		if len(code) != userChars || strings.Trim(code, userAlphabet) != "" {
			t.Fatalf("%q = %q", typed, code)
		}
		for _, again := range []string{code, strings.ToLower(code), code[:4] + "-" + code[4:], " " + code + "\n"} {
			if same, ok := readUserCode(again); !ok || same != code {
				t.Errorf("%q = %q, %v, want %q", again, same, ok, code)
			}
		}
	})
}
