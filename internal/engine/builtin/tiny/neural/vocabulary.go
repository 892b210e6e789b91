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
// The first of them were in captions and have an embedding that was learned;
// the others have a word vector only, from texts, so the model has an idea of
// what they are near to. Both count as known. What is in neither is unknown:
// all such words look the same to the model.
type vocabulary struct {
	numbers map[string]int
	learned int    // numbers from here on have a word vector only
	vectors string // int8, vectorSize a row
	norm    float64
}

const (
	nothing, unknown = 0, 1 // the rows before the words
	vectorSize       = 100
)

func openWords(list, vectors string, learned int, norm float64) (vocabulary, error) {
	words := strings.Split(strings.TrimSuffix(list, "\n"), "\n")
	if len(vectors) != (len(words)+2)*vectorSize {
		return vocabulary{}, errors.New("weights: words.txt and words.bin do not belong together")
	}
	v := vocabulary{make(map[string]int, len(words)), learned, vectors, norm}
	for i, w := range words {
		v.numbers[w] = i + 2
	}
	return v, nil
}

// vector writes the vector of a word, which has the same length for all words
// that have one.
func (v vocabulary) vector(dst []float32, number int) {
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

// number finds a word, or what it may be the plural of.
func (v vocabulary) number(w string) (int, bool) {
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
	return unknown, false
}

// words cuts a prompt up as captions were: runs of letters and digits, in
// lower case, without marks. A hyphen or an apostrophe parts words, unless the
// parts are unknown and known as one ("e-mail").
func (v vocabulary) words(prompt string) []string {
	var all []string
	for _, group := range strings.FieldsFunc(simple(prompt), func(r rune) bool { return !letter(r) && r != '-' && r != '\'' }) {
		parts := strings.FieldsFunc(group, func(r rune) bool { return !letter(r) })
		switch {
		case len(parts) > 1 && parts[len(parts)-1] == "s" && strings.HasSuffix(group, "'s"):
			parts = parts[:len(parts)-1] // a possessive says nothing
		case len(parts) > 1:
			whole := strings.Join(parts, "")
			if _, ok := v.numbers[whole]; ok && !v.all(parts) {
				parts = []string{whole}
			}
		}
		all = append(all, parts...)
	}
	return all
}

func (v vocabulary) all(words []string) bool {
	for _, w := range words {
		if _, ok := v.number(w); !ok {
			return false
		}
	}
	return true
}

// letter counts the vowel signs that stand beside letters, which are no marks to
// take off: without them words of India would fall apart.
func letter(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mc, r)
}

// simple lowers a text and takes marks off its letters.
func simple(s string) string {
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

// encode gives the numbers of the first words of a prompt and fills up with
// nothing.
func (v vocabulary) encode(prompt string, tokens []int) {
	clear(tokens)
	for i, w := range v.words(prompt) {
		if i == len(tokens) {
			return
		}
		tokens[i], _ = v.number(w)
	}
}

// unknown gives the words of a prompt that have no number, each once.
func (v vocabulary) unknown(prompt string) (unknown []string, words int) {
	seen := map[string]bool{}
	all := v.words(prompt)
	for _, w := range all {
		if _, ok := v.number(w); !ok && !seen[w] {
			seen[w] = true
			unknown = append(unknown, w)
		}
	}
	return unknown, len(all)
}

// guessed gives the words of a prompt that have a word vector only, each once,
// but for the plurals of words that were learned: pictures of several things had
// those in their captions.
func (v vocabulary) guessed(prompt string) (guessed []string) {
	for _, w := range v.words(prompt) {
		if n, _ := v.number(w); n >= v.learned && !v.severalOfLearned(w) && !slices.Contains(guessed, w) {
			guessed = append(guessed, w)
		}
	}
	return guessed
}

func (v vocabulary) severalOfLearned(w string) bool {
	for _, plural := range [][2]string{{"s", ""}, {"es", ""}, {"ies", "y"}, {"ves", "f"}, {"ves", "fe"}} {
		if stem, ok := strings.CutSuffix(w, plural[0]); ok {
			if n := v.numbers[stem+plural[1]]; n > unknown && n < v.learned {
				return true
			}
		}
	}
	return false
}
