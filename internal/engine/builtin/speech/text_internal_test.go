package speech

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat("word ", 32) // enough for a piece
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", " \n\n \n", nil},
		{"short sentences stay together", "One. Two! Three?", []string{"One. Two! Three?"}},
		{"blank lines part", "One.\n \t\nTwo\nlines.\n\n\n\nThree.", []string{"One.", "Two lines.", "Three."}},
		{"a long one ends at its sentence", filler + "finish. Next one.", []string{filler + "finish.", "Next one."}},
		{"not behind an abbreviation", filler + "Dr. Who came home. Next.", []string{filler + "Dr. Who came home.", "Next."}},
		{"not inside a number", filler + "costs 3.1415 pounds. Next.", []string{filler + "costs 3.1415 pounds.", "Next."}},
		{"no space behind it in Chinese", strings.Repeat("好", 170) + "。好。", []string{strings.Repeat("好", 170) + "。", "好。"}},
		{"no sentence at all", strings.Repeat("abcdefghi ", 60), []string{strings.TrimSpace(strings.Repeat("abcdefghi ", 48)), strings.TrimSpace(strings.Repeat("abcdefghi ", 12))}},
		{"no word at all", strings.Repeat("a", 500), []string{strings.Repeat("a", 480), strings.Repeat("a", 20)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, p := range splitText(tt.text) {
				got = append(got, p.text)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("pieces = %q, want %q", got, tt.want)
			}
		})
	}
}

// FuzzSplit holds that nothing is lost and nothing is obeyed.
func FuzzSplit(f *testing.F) {
	f.Add("One. Two.\n\nThree [[x]] \x01 four")
	f.Add(strings.Repeat("[", 600))
	f.Fuzz(func(t *testing.T, text string) {
		clean := stripCommands(text)
		var got []string
		for _, p := range splitText(clean) {
			if n := utf8.RuneCountInString(p.text); n == 0 || n > maxPieceLength {
				t.Fatalf("a piece of %d characters", n)
			}
			if strings.Contains(p.text, "[[") || strings.ContainsFunc(p.text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Fatalf("piece = %q", p.text)
			}
			got = append(got, p.text)
		}
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if squeeze(strings.Join(got, "")) != squeeze(clean) {
			t.Fatalf("pieces = %q of %q", got, clean)
		}
	})
}
