package speech

import (
	"strings"
	"unicode"
)

// plain takes from a text what eSpeak NG would obey: control characters, which
// begin commands, and double brackets, which enclose phonemes.
func plain(text string) string {
	text = strings.ToValidUTF8(text, " ")
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n\n", "\u0085", "\n").Replace(text)
	text = strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	for strings.Contains(text, "[[") {
		text = strings.ReplaceAll(text, "[[", "[ [")
	}
	return text
}

// piece is a part of a text that is read at once.
type piece struct {
	text      string
	paragraph bool // a paragraph ends with it
}

const (
	// enough is when a piece ends at the next sentence: short ones would only
	// start the program more often.
	enough = 160
	// most is when it ends at a word, for texts without sentences.
	most = 480
)

// split takes a text apart for reading: by paragraphs, then by sentences.
func split(text string) []piece {
	var all []piece
	for _, paragraph := range paragraphs(text) {
		rest := []rune(paragraph)
		for len(rest) > 0 {
			n := cut(rest)
			if s := strings.TrimSpace(string(rest[:n])); s != "" {
				all = append(all, piece{text: s})
			}
			rest = rest[n:]
		}
		all[len(all)-1].paragraph = true
	}
	return all
}

// paragraphs are what blank lines set apart, each on one line.
func paragraphs(text string) []string {
	var all []string
	var words []string
	for line := range strings.Lines(text + "\n\n") {
		if in := strings.Fields(line); len(in) > 0 {
			words = append(words, in...)
			continue
		}
		if len(words) > 0 {
			all = append(all, strings.Join(words, " "))
		}
		words = nil
	}
	return all
}

// cut gives the length of the next piece.
func cut(rest []rune) int {
	word := 0
	clause := 0
	for i, r := range rest {
		switch {
		case i >= most && clause > 0:
			return clause
		case i >= most && word > 0:
			return word
		case i >= most:
			return i
		case i+1 >= enough && ends(rest, i):
			return i + 1
		case strings.ContainsRune(",;:、，；：،", r):
			clause = i + 1
		case r == ' ':
			word = i + 1
		}
	}
	return len(rest)
}

// ends tells whether a sentence ends with the ith character. A full stop behind
// a short word may be an abbreviation, so it ends none; there will be others.
func ends(text []rune, i int) bool {
	switch text[i] {
	case '。', '！', '？', '।':
		return true
	case '.', '!', '?', '…', '؟':
	default:
		return false
	}
	if i+1 < len(text) && text[i+1] != ' ' {
		return false
	}
	if text[i] != '.' {
		return true
	}
	letters := 0
	for k := i - 1; k >= 0 && unicode.IsLetter(text[k]); k-- {
		letters++
	}
	return letters > 3
}
