package sanitize_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"atelier/internal/base/sanitize"
)

func TestLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                         "",
		"Blender 4.2":              "Blender 4.2",
		"Grüße 👩\u200d🎨":           "Grüße 👩\u200d🎨",
		"a\r\nb\x00c\x1b[31m":      "a��b�c�[31m",
		"a\u2028b\u202ec":          "a�b�c",
		"\xff\xfe":                 "��",
		"1234567890123456789x":     "1234567890123456789x",
		"1234567890123456789xy":    "1234567890123456789x",
		"123456789012345678éé":     "123456789012345678é",
		"1234567890123456789é":     "1234567890123456789",
		strings.Repeat("\x00", 99): "������",
	} {
		if got := sanitize.Line(in, 20); got != want {
			t.Errorf("line of %q = %q, want %q", in, got, want)
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("a\x00b", 2)
	f.Fuzz(func(t *testing.T, s string, most int) {
		if most < 0 {
			return
		}
		got := sanitize.Line(s, most)
		if len(got) > most || !utf8.ValidString(got) || strings.ContainsAny(got, "\r\n\x00") || sanitize.Line(got, most) != got {
			t.Errorf("line of %q = %q", s, got)
		}
	})
}
