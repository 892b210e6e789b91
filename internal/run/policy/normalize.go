package policy

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Texts are normalized in two steps.
//
// The first step, foldText, is applied to patterns and to texts. It removes
// compatibility forms, differences of case, accents and invisible characters,
// and replaces letters that look like a Latin letter by that letter. This never
// changes the meaning of a text.
//
// Other disguised letters are ambiguous: a Greek η can mean n or h, and a 1 can
// mean i or l. They are left as they are, and readingsOf returns the letters
// that they can mean. Phrases are compared with all of these readings. Regular
// expressions are compared only with the first and the last reading of each
// letter.

// foldText normalizes a text. The order of characters stays the same. Every
// sequence of white space becomes one space.
func foldText(s string) string {
	s = norm.NFKD.String(strings.ToValidUTF8(s, ""))
	s = norm.NFKD.String(cases.Fold().String(s)) // folding composes some characters, so they are decomposed again
	var b strings.Builder
	b.Grow(len(s))
	space := false
	for _, r := range s {
		if unicode.IsSpace(r) || r == '\u2800' { // U+2800 is an empty Braille cell
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

// cherokeeCapital converts a small Cherokee letter to its capital, because the
// case folding of the library converts Cherokee letters in the wrong direction.
func cherokeeCapital(r rune) rune {
	switch {
	case r >= '\uab70' && r <= '\uabbf':
		return r - '\uab70' + '\u13a0'
	case r >= '\u13f8' && r <= '\u13fd':
		return r - 8
	}
	return r
}

// isInvisible reports whether a character has no visible glyph of its own:
// accents, control characters, zero-width characters, blank letters,
// private-use characters and the replacement character.
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

// isWordRune reports whether a character of a folded text is part of a word.
func isWordRune(r rune) bool {
	if r <= '~' {
		return 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Mc, r)
}

// isUnspaced reports whether a letter belongs to a script that has no spaces
// between words. Each such letter is treated as a word.
func isUnspaced(r rune) bool {
	return r >= '\u0e00' && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// views are the ways to treat punctuation and symbols in a text. A text is
// checked in each of these ways.
var views = []func(rune) rune{separateMarks, readMarks, dropMarks}

// separateMarks replaces punctuation and symbols by spaces, so that "pipe-bomb"
// becomes two words.
func separateMarks(r rune) rune {
	if isWordRune(r) {
		return r
	}
	return ' '
}

// readMarks keeps symbols that can stand for letters, as in "b@d", and replaces
// other punctuation and symbols by spaces.
func readMarks(r rune) rune {
	if _, ok := leet[r]; ok {
		return r
	}
	return separateMarks(r)
}

// dropMarks removes punctuation and symbols, so that "bo-mb" becomes "bomb".
func dropMarks(r rune) rune {
	if r == ' ' || isWordRune(r) {
		return r
	}
	return -1
}

// readingsOf returns the Latin letters that a character can stand for in
// addition to itself. Digits and symbols stand for letters only if digits is
// set.
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

// firstReading replaces ambiguous letters by the likeliest Latin letter.
func firstReading(s string) string {
	return strings.Map(func(r rune) rune {
		if all := faux[r]; all != "" {
			return rune(all[0])
		}
		return r
	}, s)
}

// lastReading replaces ambiguous letters by the least likely Latin letter.
func lastReading(s string) string {
	return strings.Map(func(r rune) rune {
		if all := faux[r]; all != "" {
			return rune(all[len(all)-1])
		}
		return r
	}, s)
}

// joinLetters joins adjacent words of one letter to one word, and separates all
// other words by one space: "a b o m b" becomes "abomb".
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

// wordScanner iterates over the words of a text in which punctuation was
// replaced or removed (see views).
type wordScanner struct {
	text       string
	start, end int
	single     bool // the word has only one character
	lettered   bool // the word has at least one letter
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
