package policy

import (
	"errors"
	"strings"
)

// phrases is a tree of phrases, letter by letter with one space between words.
type phrases struct{ nodes []node }

type node struct {
	next map[rune]int32
	ends bool // a phrase ends here
}

func (p *phrases) isEmpty() bool { return len(p.nodes) == 0 }

// addPhrase adds a phrase to the tree.
func (p *phrases) addPhrase(phrase string) error {
	text := foldText(phrase)
	if strings.ContainsFunc(text, func(r rune) bool { return !isWordRune(r) && !strings.ContainsRune(" -'’", r) }) {
		return errors.New("a phrase consists of words only; write other patterns as a /regular expression/")
	}
	text = strings.Map(separateMarks, text)
	if p.isEmpty() {
		p.nodes = make([]node, 1)
	}
	at := int32(0)
	for t := (wordScanner{text: text}); t.nextWord(); {
		if at != 0 {
			at = p.childNode(at, ' ')
		}
		for _, r := range text[t.start:t.end] {
			at = p.childNode(at, r)
		}
	}
	if at == 0 {
		return errors.New("a phrase without words")
	}
	p.nodes[at].ends = true
	return nil
}

// childNode returns the node after r, which it adds if there is none.
func (p *phrases) childNode(at int32, r rune) int32 {
	if next, ok := p.nodes[at].next[r]; ok {
		return next
	}
	next := int32(len(p.nodes))
	p.nodes = append(p.nodes, node{})
	if p.nodes[at].next == nil {
		p.nodes[at].next = map[rune]int32{}
	}
	p.nodes[at].next[r] = next
	return next
}

// position is a position of a text in the tree: before a word, or, split, after
// a single letter, after which only another single letter may follow.
type position struct {
	node  int32
	split bool
}

// findPhrase returns the offset at which a phrase ends in a text in one of the
// views. It walks over the words once with every possible position. They are
// few: a position fixes all the letters that led to it, so no two lead to the
// same one, and none is deeper than the longest phrase.
func (p *phrases) findPhrase(text string) (end int, found bool) {
	var now, then []position
	var reached, before []int32
	for t := (wordScanner{text: text}); t.nextWord(); {
		now = append(now, position{}) // a phrase can begin at any word
		then = then[:0]
		for _, at := range now {
			if at.split && !t.single {
				continue
			}
			reached = append(reached[:0], at.node)
			for _, r := range text[t.start:t.end] {
				reached, before = before, reached
				reached = reached[:0]
				for _, n := range before {
					reached = p.stepNodes(reached, n, r, t.single || t.lettered)
				}
				if len(reached) == 0 {
					break
				}
			}
			for _, n := range reached {
				if p.nodes[n].ends {
					return t.end, true
				}
				if after, ok := p.nodes[n].next[' ']; ok {
					then = append(then, position{after, false})
				}
				if t.single {
					then = append(then, position{n, true})
				}
			}
		}
		now, then = then, now
	}
	return 0, false
}

// stepNodes adds the nodes after r, in every reading of it.
func (p *phrases) stepNodes(to []int32, at int32, r rune, digits bool) []int32 {
	next := p.nodes[at].next
	if n, ok := next[r]; ok {
		to = append(to, n)
	}
	for _, other := range readingsOf(r, digits) {
		if n, ok := next[other]; ok {
			to = append(to, n)
		}
	}
	return to
}
