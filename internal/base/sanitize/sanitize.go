// Package sanitize makes untrusted strings safe to store and to display.
package sanitize

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns s in a form that is safe to show as one line in pages, terminals
// and logs, and that both databases can store. most is its maximum length in
// bytes; a longer text is cut off. Invalid UTF-8 and invisible characters, such
// as control characters and characters that change the text direction, are
// replaced by U+FFFD. Line never fails, so that invalid input cannot prevent a
// log entry.
func Line(s string, most int) string {
	return cutText(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\u200c' || r == '\u200d' { // zero-width joiner and non-joiner are kept, because some scripts and emoji need them
			return r
		}
		return utf8.RuneError
	}, cutText(s, most)), most)
}

// cutText shortens s to the given number of bytes, or to up to three bytes
// fewer to avoid splitting a character.
func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
