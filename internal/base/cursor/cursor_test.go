package cursor_test

import (
	"slices"
	"testing"

	"atelier/internal/base/cursor"
)

func TestOpensOnlyItsOwn(t *testing.T) {
	t.Parallel()
	s := cursor.New([]byte("key"))
	scope := cursor.Scope("tools", "anna", "")
	c := s.SealKey(scope, "10", "Näme \"x\"", "id")
	got, err := s.Open(scope, c, 3)
	if err != nil || !slices.Equal(got, []string{"10", "Näme \"x\"", "id"}) {
		t.Fatalf("open = %q, %v", got, err)
	}
	for _, other := range []string{
		cursor.Scope("tools", "bert", ""), cursor.Scope("kits", "anna", ""), cursor.Scope("tools", "anna", "tag"),
		cursor.Scope("tools", "anna"), cursor.Scope("tools", "", "anna"), "",
	} {
		if _, err := s.Open(other, c, 3); err == nil {
			t.Errorf("opened with scope %s", other)
		}
	}
	if _, err := cursor.New([]byte("other")).Open(scope, c, 3); err == nil {
		t.Error("opened with another key")
	}
	if _, err := s.Open(scope, c, 2); err == nil {
		t.Error("opened with another number of parts")
	}
}

func TestAlteredNeverOpens(t *testing.T) {
	t.Parallel()
	s := cursor.New([]byte("key"))
	c := s.SealKey("scope", "10", "name", "id")
	for i := range c {
		for _, b := range []byte{'A', 'z', '0', '-', '.', 0, '\n'} {
			if c[i] == b {
				continue
			}
			altered := []byte(c)
			altered[i] = b
			if _, err := s.Open("scope", string(altered), 3); err == nil {
				t.Errorf("opened with byte %d changed to %q", i, b)
			}
		}
		if _, err := s.Open("scope", c[:i], 3); err == nil {
			t.Errorf("opened when cut at %d", i)
		}
	}
}

func FuzzOpen(f *testing.F) {
	s := cursor.New([]byte("key"))
	good := s.SealKey("scope", "a")
	f.Add(good)
	f.Add("")
	f.Add("AAAA")
	f.Fuzz(func(t *testing.T, c string) {
		if _, err := s.Open("scope", c, 1); err == nil && c != good {
			t.Errorf("opened %q", c)
		}
	})
}
