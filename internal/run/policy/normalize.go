package policy

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Texts are made alike in two steps.
//
// fold is for patterns and texts both: compatibility forms, case, accents and
// everything that is not seen fall away, and letters that look like a Latin one
// become that one. What is left of a letter is one reading that always holds.
//
// Other disguises have readings that only may hold: a Greek η can stand for n or
// h, a 1 for i or l. They stay as they are, and readings says what else they can
// be; the phrases try all of it, regular expressions the first and the last
// reading of letters.

// foldText makes a text plain. It keeps the order of what it keeps, and every kind
// of space is one space.
func foldText(s string) string {
	s = norm.NFKD.String(strings.ToValidUTF8(s, ""))
	s = norm.NFKD.String(cases.Fold().String(s)) // folding composes a few
	var b strings.Builder
	b.Grow(len(s))
	space := false
	for _, r := range s {
		if unicode.IsSpace(r) || r == '\u2800' { // an empty Braille cell
			if !space {
				b.WriteByte(' ')
			}
			space = true
			continue
		}
		if isInvisible(r) {
			continue
		}
		space = false
		switch {
		case r <= '~':
			b.WriteRune(r)
		case r >= '🇦' && r <= '🇿':
			b.WriteRune('a' + r - '🇦')
		case r >= '🅐' && r <= '🅩':
			b.WriteRune('a' + r - '🅐')
		case r >= '🅰' && r <= '🆉':
			b.WriteRune('a' + r - '🅰')
		default:
			r = cherokeeCapital(r)
			if latin, ok := lookalikes[r]; ok {
				b.WriteString(latin)
			} else {
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}

// cherokeeCapital gives the letter that Cherokee letters fold to. The library
// swaps capitals and small ones there.
func cherokeeCapital(r rune) rune {
	switch {
	case r >= '\uab70' && r <= '\uabbf':
		return r - '\uab70' + '\u13a0'
	case r >= '\u13f8' && r <= '\u13fd':
		return r - 8
	}
	return r
}

// isInvisible tells what leaves no mark of its own: accents, controls, characters
// without width, blanks that count as letters, and what stands for broken text.
func isInvisible(r rune) bool {
	if r <= '~' {
		return r < ' '
	}
	switch r {
	case '\u115f', '\u1160', '\u3164', '\uffa0', '\ufffd':
		return true
	}
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Cc, unicode.Co)
}

// isWordRune tells what words are made of.
func isWordRune(r rune) bool {
	if r <= '~' {
		return 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Mc, r)
}

// isUnspaced tells the letters of scripts that put no space between words. Each
// is taken for a word of its own.
func isUnspaced(r rune) bool {
	return r >= '\u0e00' && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// The views are what the marks between letters can be. A text is looked at in
// each.
var views = []func(rune) rune{separateMarks, readMarks, dropMarks}

// separateMarks has every mark end a word: "pipe-bomb".
func separateMarks(r rune) rune {
	if isWordRune(r) {
		return r
	}
	return ' '
}

// readMarks has marks that can be read as letters be letters: "b@d".
func readMarks(r rune) rune {
	if _, ok := leet[r]; ok {
		return r
	}
	return separateMarks(r)
}

// dropMarks has marks count for nothing: "bo-mb".
func dropMarks(r rune) rune {
	if r == ' ' || isWordRune(r) {
		return r
	}
	return -1
}

// readingsOf are what a character can stand for besides itself, digits only where
// they are among letters.
func readingsOf(r rune, digits bool) string {
	if r >= 'a' && r <= 'z' {
		return ""
	}
	if s, ok := leet[r]; ok {
		if digits {
			return s
		}
		return ""
	}
	return faux[r]
}

// firstReading settles the letters that have several, as lastReading does.
func firstReading(s string) string {
	return strings.Map(func(r rune) rune {
		if all := faux[r]; all != "" {
			return rune(all[0])
		}
		return r
	}, s)
}

func lastReading(s string) string {
	return strings.Map(func(r rune) rune {
		if all := faux[r]; all != "" {
			return rune(all[len(all)-1])
		}
		return r
	}, s)
}

// joinLetters writes words whose letters stand singly as words, and all else with
// one space between: "a b o m b" is "abomb".
func joinLetters(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	single := false
	for t := (wordScanner{text: s}); t.nextWord(); {
		if b.Len() > 0 && !(single && t.single) {
			b.WriteByte(' ')
		}
		single = t.single
		b.WriteString(s[t.start:t.end])
	}
	return b.String()
}

// wordScanner walks over the words of a text that a view has made.
type wordScanner struct {
	text       string
	start, end int
	single     bool // one character
	lettered   bool // not only digits and marks
}

func (t *wordScanner) nextWord() bool {
	t.start = t.end
	for t.start < len(t.text) && t.text[t.start] == ' ' {
		t.start++
	}
	t.end = len(t.text)
	t.lettered = false
	n := 0
	for i, r := range t.text[t.start:] {
		if r == ' ' || n > 0 && isUnspaced(r) {
			t.end = t.start + i
			break
		}
		n++
		t.lettered = t.lettered || unicode.IsLetter(r)
		if isUnspaced(r) {
			t.end = t.start + i + len(string(r))
			break
		}
	}
	t.single = n == 1
	return n > 0
}
