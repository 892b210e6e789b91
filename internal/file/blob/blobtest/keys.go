package blobtest

import (
	"errors"
	"strings"
	"testing"

	"atelier/internal/file/blob"
)

// BadKeys are invalid keys, as an attacker or a bug would produce them.
var BadKeys = []string{
	"", ".", "..", "/", "//", "./", "../", "a/", "/a", "//a", "a//b",
	"a/./b", "./a", "a/.", "a/..", "a/../b", "../a", "a/../../b", "../../etc/passwd", "/etc/passwd",
	`..\..\a`, `a\b`, `C:\a`, "C:/a", `\\host\share`, "file:///etc/passwd",
	"\x00", "a\x00", "a\x00.png", "a\nb", "a\rb", "a\tb", "a\x7f", "a\x1b[0m",
	" ", "a b", " a", "a ", "%2e%2e/a", "a%2fb", "%00",
	"a?b", "a#b", "a&b", "a=b", "a+b", "a*b", "a:b", "a;b", "a|b", "a<b", "a>b", `a"b`, "a'b", "a`b",
	"a$b", "a~b", "~/a", "a!b", "a@b", "a,b", "(a)", "[a]", "{a}",
	"ä", "a/ä.png", "🦊", "\u202egnp.exe", "\uff0e\uff0e/a", "\u2024\u2024/a", "a\u2215b",
	"\xff", "a/\xc0\xae\xc0\xae/b",
	strings.Repeat("a", 256), "a/" + strings.Repeat("b", 256),
	strings.Repeat("a", 600), strings.Repeat("a/", 256) + "b", strings.Repeat("a", 4096),
	strings.Repeat("../", 100) + "etc/passwd",
}

func badKeys(t *testing.T, s blob.Store) {
	for _, key := range BadKeys {
		if _, err := s.Put(t.Context(), key, untouched{t}); !errors.Is(err, blob.ErrBadKey) {
			t.Errorf("put %.40q = %v, want bad key", key, err)
		}
		if _, _, err := s.Open(t.Context(), key, 0, -1); !errors.Is(err, blob.ErrBadKey) {
			t.Errorf("open %.40q = %v, want bad key", key, err)
		}
		if _, err := s.Stat(t.Context(), key); !errors.Is(err, blob.ErrBadKey) {
			t.Errorf("stat %.40q = %v, want bad key", key, err)
		}
		if err := s.Delete(t.Context(), key); !errors.Is(err, blob.ErrBadKey) {
			t.Errorf("delete %.40q = %v, want bad key", key, err)
		}
	}
	wantOnly(t, s)
}

// untouched is a reader that fails the test if it is read.
type untouched struct{ t *testing.T }

func (r untouched) Read([]byte) (int, error) {
	r.t.Error("a reader was read for a bad key")
	return 0, errors.New("untouched")
}

func goodKeys(t *testing.T, s blob.Store) {
	for _, key := range []string{
		"a", "A", "0", "-", "_", "...", ".a", "a.", "-rf", "a..b", "..a", "a/b/c/d/e/f",
		"CON", "nul.txt", "tmp", "tmp2/a", "data/a",
		strings.Repeat("n", 255), strings.Repeat("s/", 255) + "ss",
	} {
		put(t, s, key, []byte(key))
		want(t, s, key, []byte(key))
		if err := s.Delete(t.Context(), key); err != nil {
			t.Errorf("delete %.40q: %v", key, err)
		}
	}
	wantOnly(t, s)
}
