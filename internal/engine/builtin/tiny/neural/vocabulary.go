package neural

import (
	"errors"
	"math"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// vocabulary assigns numbers to the words that the model knows.
//
// The words with the lowest numbers occurred in captions of the training
// pictures and have a learned embedding. All other words have only a word
// vector that was computed from texts, so that the model can relate them to
// words of similar meaning. The model cannot distinguish words that are not in
// the vocabulary.
type vocabulary struct {
	numbers map[string]int
	learned int    // words with this number or a higher one have only a word vector
	vectors string // int8 values, vectorSize for each number
	norm    float64
}

const (
	noWord, unknownWord = 0, 1 // numbers of the padding and of all unknown words
	vectorSize          = 100
)

func openWords(list, vectors string, learned int, norm float64) (vocabulary, error) {
	words := strings.Split(strings.TrimSuffix(list, "\n"), "\n")
	if len(vectors) != (len(words)+2)*vectorSize {
		return vocabulary{}, errors.New("weights: words.txt and words.bin do not match")
	}
	v := vocabulary{make(map[string]int, len(words)), learned, vectors, norm}
	for i, w := range words {
		v.numbers[w] = i + 2
	}
	return v, nil
}

// writeVector writes the vector of a word to dst, scaled to the same length for
// all words.
func (v vocabulary) writeVector(dst []float32, number int) {
	row := v.vectors[number*vectorSize : (number+1)*vectorSize]
	var sum float64
	for i := range len(row) {
		c := float64(int8(row[i]))
		sum += c * c
	}
	scale := 0.0
	if sum > 0 {
		scale = v.norm / math.Sqrt(sum)
	}
	for i := range len(row) {
		dst[i] = float32(float64(int8(row[i])) * scale)
	}
}

// numberOf returns the number of a word or, if the word is not in the
// vocabulary, of its singular. It returns unknownWord and false if neither is
// in the vocabulary.
func (v vocabulary) numberOf(w string) (int, bool) {
	if n, ok := v.numbers[w]; ok {
		return n, true
	}
	for _, end := range []string{"s", "es"} {
		if stem, ok := strings.CutSuffix(w, end); ok {
			if n, ok := v.numbers[stem]; ok {
				return n, true
			}
		}
	}
	return unknownWord, false
}

// splitWords splits a prompt into words in the same way as the captions of the
// training pictures: runs of letters and digits, in lower case, without
// diacritics. A hyphen or an apostrophe separates words, unless a part is
// unknown and the whole word is known ("e-mail").
func (v vocabulary) splitWords(prompt string) []string {
	var all []string
	for _, group := range strings.FieldsFunc(simplifyText(prompt), func(r rune) bool { return !isLetter(r) && r != '-' && r != '\'' }) {
		parts := strings.FieldsFunc(group, func(r rune) bool { return !isLetter(r) })
		switch {
		case len(parts) > 1 && parts[len(parts)-1] == "s" && strings.HasSuffix(group, "'s"):
			parts = parts[:len(parts)-1] // drops the possessive s
		case len(parts) > 1:
			whole := strings.Join(parts, "")
			if _, ok := v.numbers[whole]; ok && !v.hasAll(parts) {
				parts = []string{whole}
			}
		}
		all = append(all, parts...)
	}
	return all
}

func (v vocabulary) hasAll(words []string) bool {
	for _, w := range words {
		if _, ok := v.numberOf(w); !ok {
			return false
		}
	}
	return true
}

// isLetter reports whether a character is part of a word: a letter, a digit or
// a vowel sign. Without vowel signs, words of Indian languages would be split.
func isLetter(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mc, r)
}

// simplifyText converts a string to lower case, removes diacritics and unifies
// hyphens and apostrophes.
func simplifyText(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Mn, r):
			return -1
		case r == '’' || r == '‘' || r == 'ʼ':
			return '\''
		case r == '‐' || r == '‑':
			return '-'
		}
		return unicode.ToLower(r)
	}, norm.NFKD.String(s))
}

// encodeWords writes the numbers of the words of a prompt to tokens, as many as
// fit, and pads with noWord.
func (v vocabulary) encodeWords(prompt string, tokens []int) {
	clear(tokens)
	for i, w := range v.splitWords(prompt) {
		if i == len(tokens) {
			return
		}
		tokens[i], _ = v.numberOf(w)
	}
}

// unknownWords returns the unknown words of a prompt, each once, and the number
// of words of the prompt.
func (v vocabulary) unknownWords(prompt string) (unknown []string, words int) {
	seen := map[string]bool{}
	all := v.splitWords(prompt)
	for _, w := range all {
		if _, ok := v.numberOf(w); !ok && !seen[w] {
			seen[w] = true
			unknown = append(unknown, w)
		}
	}
	return unknown, len(all)
}

// guessedWords returns the words of a prompt that have only a word vector, each
// once. It omits plurals of learned words, because captions of pictures with
// several things contained the singular.
func (v vocabulary) guessedWords(prompt string) (guessed []string) {
	for _, w := range v.splitWords(prompt) {
		if n, _ := v.numberOf(w); n >= v.learned && !v.isPluralOfLearned(w) && !slices.Contains(guessed, w) {
			guessed = append(guessed, w)
		}
	}
	return guessed
}

func (v vocabulary) isPluralOfLearned(w string) bool {
	for _, plural := range [][2]string{{"s", ""}, {"es", ""}, {"ies", "y"}, {"ves", "f"}, {"ves", "fe"}} {
		if stem, ok := strings.CutSuffix(w, plural[0]); ok {
			if n := v.numbers[stem+plural[1]]; n > unknownWord && n < v.learned {
				return true
			}
		}
	}
	return false
}
