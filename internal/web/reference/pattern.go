package reference

import (
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"strings"
)

// matching makes a text that matches a pattern, the same each time; false
// where the pattern is beyond Go's dialect.
func matching(pattern string) (string, bool) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return "", false
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", false
	}
	h := fnv.New64a()
	h.Write([]byte(pattern))
	w := patternWriter{rand: rand.New(rand.NewPCG(h.Sum64(), 0))}
	w.write(tree)
	made := w.text.String()
	return made, re.MatchString(made)
}

type patternWriter struct {
	rand *rand.Rand
	text strings.Builder
}

// usual is how often something repeats that may repeat without end.
const usual = 6

func (w *patternWriter) write(re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpLiteral:
		w.text.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		w.text.WriteRune(w.pick(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		w.text.WriteRune(w.pick([]rune{'a', 'z'}))
	case syntax.OpConcat, syntax.OpCapture:
		for _, sub := range re.Sub {
			w.write(sub)
		}
	case syntax.OpAlternate:
		w.write(re.Sub[0])
	case syntax.OpStar, syntax.OpPlus:
		w.repeat(re.Sub[0], usual)
	case syntax.OpRepeat:
		n := re.Min
		if re.Max < 0 || re.Max > usual {
			n = max(n, usual)
		} else {
			n = re.Max
		}
		w.repeat(re.Sub[0], n)
	}
}

func (w *patternWriter) repeat(re *syntax.Regexp, n int) {
	for range n {
		w.write(re)
	}
}

// pick chooses a character from pairs of bounds, a readable one where it can.
func (w *patternWriter) pick(bounds []rune) rune {
	var readable []rune
	for _, r := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.!#%&()*+,/:;<=>?@[]^{|}~ " {
		for i := 0; i+1 < len(bounds); i += 2 {
			if r >= bounds[i] && r <= bounds[i+1] {
				readable = append(readable, r)
				break
			}
		}
		if r == '9' && len(readable) > 0 {
			break // letters and digits are enough
		}
	}
	if len(readable) == 0 {
		if len(bounds) == 0 {
			return 'x'
		}
		return bounds[0]
	}
	return readable[w.rand.IntN(len(readable))]
}
