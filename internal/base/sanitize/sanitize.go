// Package sanitize makes text from outside fit to be kept and shown.
package sanitize

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line makes s a text of at most so many bytes that a page, a terminal, a log
// and both databases show as one harmless line: a mark stands for broken bytes
// and for everything that is not meant to be seen, like controls and characters
// that turn the direction of what follows. It never refuses: what is only
// written down must not fail.
func Line(s string, most int) string {
	return cutText(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\u200c' || r == '\u200d' { // the joiners, without which some scripts and emoji fall apart
			return r
		}
		return utf8.RuneError
	}, cutText(s, most)), most)
}

// cutText shortens to most bytes between two characters.
func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
