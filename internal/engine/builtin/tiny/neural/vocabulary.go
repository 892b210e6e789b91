package neural

import (
	"errors"
	"math"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// vocabulary is the words that the model has a number for.
//
// The first of them were in captions and have a learned embedding. The others have only a word
// vector from texts, so the model knows words of similar meaning. Both count as known. All other
// words are unknown and look the same to the model.
type vocabulary struct {
	numbers map[string]int
	learned int    // numbers from here on have only a word vector
	vectors string // int8, vectorSize per row
	norm    float64
}

const (
	noWord, unknownWord = 0, 1 // rows before the first word
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

// writeVector writes the vector of a word. All vectors have the same length.
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

// numberOf finds a word, or the word that it may be the plural of.
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

// splitWords splits a prompt in the same way as the captions: runs of letters and digits, in lower
// case, without diacritics. A hyphen or an apostrophe separates words, unless the parts are
// unknown and the whole is known ("e-mail").
func (v vocabulary) splitWords(prompt string) []string {
	var all []string
	for _, group := range strings.FieldsFunc(simplifyText(prompt), func(r rune) bool { return !isLetter(r) && r != '-' && r != '\'' }) {
		parts := strings.FieldsFunc(group, func(r rune) bool { return !isLetter(r) })
		switch {
		case len(parts) > 1 && parts[len(parts)-1] == "s" && strings.HasSuffix(group, "'s"):
			parts = parts[:len(parts)-1] // a possessive s is dropped
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

// isLetter also counts vowel signs beside letters. Vowel signs are not diacritics: without them,
// words of Indian languages would be split.
func isLetter(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mc, r)
}

// simplifyText converts a text to lower case and removes diacritics.
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

// encodeWords writes the numbers of the first words of a prompt and pads with noWord.
func (v vocabulary) encodeWords(prompt string, tokens []int) {
	clear(tokens)
	for i, w := range v.splitWords(prompt) {
		if i == len(tokens) {
			return
		}
		tokens[i], _ = v.numberOf(w)
	}
}

// unknownWords returns the words of a prompt without a number, each once, and the total number of
// words.
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

// guessedWords returns the words of a prompt that have only a word vector, each once, except
// plurals of learned words: captions of pictures with several things contained the singular.
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
