package policy

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	maxFile = 1 << 20 // maximum size of a rule file, in bytes
	maxLine = 1000    // maximum length of a line, in bytes
)

// Rules are patterns of forbidden texts. They are immutable and safe for
// concurrent use.
type Rules struct {
	phrases phrases
	regexps *regexp.Regexp // all regular expressions joined by |; nil if there are none

	// long is locked while a long text is checked. Checking takes a while, and
	// one client must not occupy all processors.
	long sync.Mutex
}

// longText is the total size of the texts of a request, in bytes, above which
// only one request is checked at a time.
const longText = 16 << 10

// Parse reads rules, one per line. Blank lines and lines that begin with # are
// ignored. A rule is a phrase, which matches the same whole words in the same
// order, or a regular expression between slashes (RE2 syntax). Rules are
// normalized like texts, except for the character classes of regular
// expressions, which are compared with small letters without accents. The
// returned error names every invalid line.
func Parse(r io.Reader) (*Rules, error) {
	file, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	if len(file) > maxFile {
		return nil, fmt.Errorf("rules: the file is larger than %d bytes", maxFile)
	}
	rules := &Rules{}
	var problems []error
	var expressions []string
	for i, line := range strings.Split(strings.TrimPrefix(string(file), "\ufeff"), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		var err error
		switch {
		case len(line) > maxLine:
			err = fmt.Errorf("the line is longer than %d bytes", maxLine)
		case !utf8.ValidString(line):
			err = errors.New("the line is not valid UTF-8")
		case line[0] == '/':
			var expression string
			if expression, err = plainRegexp(line); err == nil {
				expressions = append(expressions, "(?:"+expression+")")
			}
		default:
			err = rules.phrases.addPhrase(line)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("line %d: %w", i+1, err))
		}
	}
	if len(problems) == 0 && len(expressions) > 0 {
		if rules.regexps, err = regexp.Compile(strings.Join(expressions, "|")); err != nil {
			problems = append(problems, errors.New("the regular expressions together are too large"))
		}
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("rules: %w", errors.Join(problems...))
	}
	return rules, nil
}

// plainRegexp returns the regular expression of a line, changed such that it
// matches normalized texts.
func plainRegexp(line string) (string, error) {
	source, closed := strings.CutSuffix(line[1:], "/")
	if !closed || source == "" {
		return "", errors.New("a regular expression must be between two slashes")
	}
	tree, err := syntax.Parse(source, syntax.Perl|syntax.FoldCase)
	if err != nil {
		return "", err
	}
	expression := plainLiterals(tree).String()
	compiled, err := regexp.Compile(expression)
	if err != nil {
		return "", err
	}
	if compiled.MatchString("") {
		return "", errors.New("the expression matches the empty string")
	}
	return expression, nil
}

// plainLiterals normalizes the literals of a regular expression and removes its
// groups, whose names could collide when expressions are joined.
func plainLiterals(e *syntax.Regexp) *syntax.Regexp {
	for i, sub := range e.Sub {
		e.Sub[i] = plainLiterals(sub)
	}
	switch e.Op {
	case syntax.OpCapture:
		return e.Sub[0]
	case syntax.OpLiteral:
		if e.Rune = []rune(firstReading(foldText(string(e.Rune)))); len(e.Rune) == 0 {
			return &syntax.Regexp{Op: syntax.OpEmptyMatch}
		}
	}
	return e
}

// FindViolation reports whether the texts match a rule, and returns the path of
// the text in which the match ends. The texts are checked separately and
// joined, since a phrase may be spread over several texts. Texts that are too
// long to check count as violations. The time grows linearly with the length of
// the texts.
func (r *Rules) FindViolation(texts []Text) (path string, refused bool) {
	if path, refused = exceedsLimit(texts); refused || r == nil {
		return path, refused
	}
	total := 0
	for _, t := range texts {
		total += len(t.Value)
	}
	if total > longText {
		r.long.Lock()
		defer r.long.Unlock()
	}
	folded := make([]string, len(texts))
	for i, t := range texts {
		folded[i] = foldText(t.Value)
	}
	at, refused := r.matchFolded(folded)
	if !refused {
		return "", false
	}
	return texts[at].Path, true
}

// matchFolded returns the index of the normalized text in which a match of a
// rule ends.
func (r *Rules) matchFolded(folded []string) (at int, found bool) {
	if !r.phrases.isEmpty() {
		for _, view := range views {
			for _, j := range joinTexts(folded, func(s string) string { return strings.Map(view, s) }) {
				if end, found := r.phrases.findPhrase(j.text); found {
					return j.textAt(end), true
				}
			}
		}
	}
	if r.regexps == nil {
		return 0, false
	}
	first := make([]string, len(folded))
	last := make([]string, len(folded))
	for i, s := range folded {
		first[i] = firstReading(s)
		last[i] = lastReading(s)
	}
	if at, found := r.matchExpressions(first); found || slices.Equal(first, last) {
		return at, found
	}
	return r.matchExpressions(last)
}

// matchExpressions returns the index of the text in which a match of a regular
// expression ends.
func (r *Rules) matchExpressions(texts []string) (at int, found bool) {
	for _, form := range []func(string) string{
		func(s string) string { return s },
		func(s string) string { return strings.Map(dropMarks, s) },
		func(s string) string { return joinLetters(strings.Map(separateMarks, s)) },
	} {
		if len(texts) > 1 {
			for i, s := range texts { // checked separately, so that ^ and $ match at the ends of each text
				if r.regexps.MatchString(form(s)) {
					return i, true
				}
			}
		}
		for _, j := range joinTexts(texts, form) {
			if where := r.regexps.FindStringIndex(j.text); where != nil {
				return j.textAt(where[1]), true
			}
		}
	}
	return 0, false
}

// joinedText is a string of several joined texts, with the end offset of each
// text.
type joinedText struct {
	text string
	ends []int // end offset of each text
}

// textAt returns the index of the text that contains the given offset.
func (j joinedText) textAt(end int) int {
	for i, e := range j.ends {
		if end <= e {
			return i
		}
	}
	return len(j.ends) - 1
}

// joinTexts applies form to each text and joins the results in two ways:
// separated by spaces, and without a separator. A single text is returned once.
func joinTexts(texts []string, form func(string) string) []joinedText {
	between := []string{" ", ""}
	if len(texts) < 2 {
		between = between[:1]
	}
	formed := make([]string, len(texts))
	for i, s := range texts {
		formed[i] = form(s)
	}
	all := make([]joinedText, len(between))
	for n, space := range between {
		var b strings.Builder
		for i, s := range formed {
			if i > 0 {
				b.WriteString(space)
			}
			b.WriteString(s)
			all[n].ends = append(all[n].ends, b.Len())
		}
		all[n].text = b.String()
	}
	return all
}
