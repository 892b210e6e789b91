package speech

import (
	"strings"
	"unicode"
)

// stripCommands removes parts of a text that eSpeak NG would interpret: control
// characters, which begin commands, and double brackets, which enclose
// phonemes.
func stripCommands(text string) string {
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

// piece is a part of the text that is spoken by one run of eSpeak NG.
type piece struct {
	text      string
	paragraph bool // whether the piece ends a paragraph
}

const (
	// minPieceLength is the minimum number of characters of a piece of text
	// that ends with a sentence. With shorter pieces, eSpeak NG would be
	// started more often.
	minPieceLength = 160
	// maxPieceLength is the maximum number of characters of a piece of text. If
	// no sentence ends within this length, the piece ends after a comma or
	// between two words.
	maxPieceLength = 480
)

// splitText splits a text into pieces: first by paragraphs, then by sentences.
func splitText(text string) []piece {
	var all []piece
	for _, paragraph := range splitParagraphs(text) {
		rest := []rune(paragraph)
		for len(rest) > 0 {
			n := nextPieceLength(rest)
			if s := strings.TrimSpace(string(rest[:n])); s != "" {
				all = append(all, piece{text: s})
			}
			rest = rest[n:]
		}
		all[len(all)-1].paragraph = true
	}
	return all
}

// splitParagraphs splits a text into paragraphs at blank lines and joins the
// lines of each paragraph.
func splitParagraphs(text string) []string {
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

// nextPieceLength returns the number of characters of the next piece of the
// remaining text.
func nextPieceLength(rest []rune) int {
	word := 0
	clause := 0
	for i, r := range rest {
		switch {
		case i >= maxPieceLength && clause > 0:
			return clause
		case i >= maxPieceLength && word > 0:
			return word
		case i >= maxPieceLength:
			return i
		case i+1 >= minPieceLength && endsSentence(rest, i):
			return i + 1
		case strings.ContainsRune(",;:、，；：،", r):
			clause = i + 1
		case r == ' ':
			word = i + 1
		}
	}
	return len(rest)
}

// endsSentence reports whether a sentence ends with the character at index i. A
// full stop after a short word does not count, because the word may be an
// abbreviation.
func endsSentence(text []rune, i int) bool {
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
