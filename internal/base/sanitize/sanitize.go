// Package sanitize makes untrusted text safe to store and to show.
package sanitize

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns s as a text of at most the given number of bytes that pages,
// terminals, logs and both databases show as one harmless line. Broken bytes and
// invisible characters, such as control characters and characters that change
// the text direction, are replaced by a mark. Line never fails, because
// recording a text must not fail.
func Line(s string, most int) string {
	return cutText(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\u200c' || r == '\u200d' { // the joiners are kept, because some scripts and emoji need them
			return r
		}
		return utf8.RuneError
	}, cutText(s, most)), most)
}

// cutText shortens s to at most most bytes, between two characters.
func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
